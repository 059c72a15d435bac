//! Records of calls: accepted, started, settled, ended, kept.

use super::{instant, now};
use tollgate_core::lanes::{
    Attempts, CallId, Death, DeathCause, Effect, End, Kept, KeptFlight, Lease, LineWaits, NewCall,
    Payload,
};
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, Payment, Priority, QueueName, Span, Toll,
};

const ID: CallId = CallId(300);
const LEASE: Lease = Lease { call: ID, token: 7 };

#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn golden() -> Vec<(&'static str, Effect)> {
    vec![
        (
            "07 00000000 00ac02 8080c8a19b92f5d918 00046d61696c02c3bc00",
            plainest(Payload::default()),
        ),
        (
            "1c 06000000 02007b7d 6f6b 00ac02 8080c8a19b92f5d918 00046d61696c02c3bc00",
            plainest(in_envelope()),
        ),
        (
            "07 05000000 68656c6c6f01ac02 8a80c8a19b92f5d918 \
             f9 046d61696c 02c3bc 02 020673747269706501 0106737472697065026575e807 14 09 0164 0173 06",
            fullest(),
        ),
        ("07 00000000 00ac02 8080c8a19b92f5d918 50 046d61696c 02c3bc 00 28 0164", deduped()),
        ("08 ac02ffffffffffffffffff01", Effect::Joined { id: ID, arrival: u64::MAX }),
        ("09 ac0207 8580c8a19b92f5d918 05f6af9dc2df01", started([].into_iter().collect())),
        ("20 ac0207 8580c8a19b92f5d918 05f6af9dc2df01 02 0080ade204 0105", started(waits())),
        ("21 8580c8a19b92f5d918 05", Effect::Timed(now())),
        (
            "50 ac02 8580c8a19b92f5d918 05 02 0080ade204 0105",
            Effect::Kept(Kept::Start { id: ID, started: now(), waits: waits() }),
        ),
        (
            "50 ac02 8580c8a19b92f5d918 05 00",
            Effect::Kept(Kept::Start { id: ID, started: now(), waits: LineWaits::default() }),
        ),
        (
            "0a ac0207 8580c8a19b92f5d918 0509",
            Effect::Renewed { lease: LEASE, now: now(), expires: instant(0) },
        ),
        (
            "0b ac0207 8580c8a19b92f5d918 050201c801",
            Effect::Settled {
                lease: LEASE,
                actual: [1, 200].as_slice().into(),
                now: now(),
                report: [].into(),
            },
        ),
        (
            "0b ac0207 8580c8a19b92f5d918 0500",
            Effect::Settled {
                lease: LEASE,
                actual: [].as_slice().into(),
                now: now(),
                report: [].into(),
            },
        ),
        (
            "1d ac0207 8580c8a19b92f5d918 0500 026f6b",
            Effect::Settled {
                lease: LEASE,
                actual: [].as_slice().into(),
                now: now(),
                report: (*b"ok").into(),
            },
        ),
        (
            "0c ac0201 8580c8a19b92f5d918 05c60f",
            Effect::Closed { id: ID, line: 1, until: instant(1_000), now: now() },
        ),
        (
            "0d ac020102ffffffff0f 8980c8a19b92f5d918",
            Effect::CameBack { id: ID, attempts: attempts(), eligible: instant(9) },
        ),
        ("0e ac02", Effect::CancelAsked(ID)),
        ("0f ac0200", ended(End::Done)),
        ("0f ac0201", ended(End::Dead)),
        ("0f ac0202", ended(End::Cancelled)),
        ("0f ac0203", ended(End::Expired)),
        ("0f ac0204", ended(End::Superseded)),
        ("0f ac0205", ended(End::Dropped)),
        ("15 ac020102ffffffff0f00", died(DeathCause::Failed)),
        ("15 ac020102ffffffff0f01", died(DeathCause::Crashed)),
        ("15 ac020102ffffffff0f02", died(DeathCause::Limited)),
        ("15 ac020102ffffffff0f03", died(DeathCause::GivenUp)),
        ("16 01ac0206", Effect::Revived { id: ID, arrival: Some(6), not_before: None }),
        (
            "16 02ac02 8980c8a19b92f5d918",
            Effect::Revived { id: ID, arrival: None, not_before: Some(instant(9)) },
        ),
        (
            "43 05000000 68656c6c6f04ac02 8080c8a19b92f5d918 00046d61696c02c3bc00",
            Effect::Kept(kept_at_rest((*b"hello").into())),
        ),
        (
            "46 06000000 02007b7d 6f6b 04ac02 8080c8a19b92f5d918 00046d61696c02c3bc00",
            Effect::Kept(kept_at_rest(in_envelope())),
        ),
        (
            "43 00000000 0bac02 8080c8a19b92f5d918 \
             00 046d61696c 02c3bc 00 06 0102ffffffff0f 07 3c 02 00020439373505 0102043937350507",
            Effect::Kept(kept_in_flight()),
        ),
        (
            "43 00000000 13ac02 8080c8a19b92f5d918 00046d61696c02c3bc00 06 0102ffffffff0f 0212",
            Effect::Kept(kept_dead()),
        ),
    ]
}

fn started(waits: LineWaits) -> Effect {
    Effect::Started { lease: LEASE, now: now(), expires: instant(30_000_000_000), waits }
}

/// Ten milliseconds at the first meter, five nanoseconds at the second.
fn waits() -> LineWaits {
    [(0, Span::from_millis(10)), (1, Span::from_nanos(5))].into_iter().collect()
}

/// A body in an envelope.
fn in_envelope() -> Payload {
    Payload::new(b"{}", b"ok").unwrap()
}

fn plainest(payload: Payload) -> Effect {
    let call = Box::new(NewCall { payload, ..call() });
    Effect::Accepted { id: ID, call, arrival: None, remembered: instant(0) }
}

/// With every option.
fn fullest() -> Effect {
    let toll = |partition: Option<&str>, weight, hears_feedback| Toll {
        limit: LimitName::new("stripe").unwrap(),
        partition: partition.map(|partition| Partition::new(partition).unwrap()),
        weight,
        hears_feedback,
    };
    let call = Box::new(NewCall {
        tolls: [toll(None, 1, true), toll(Some("eu"), 1_000, false)].into(),
        priority: Priority::MAX,
        not_before: Some(instant(20)),
        expires: Some(instant(5)),
        dedupe: Some(Key::new("d").unwrap()),
        supersedes: Some(Key::new("s").unwrap()),
        payload: (*b"hello").into(),
        ..call()
    });
    Effect::Accepted { id: ID, call, arrival: Some(6), remembered: instant(10) }
}

/// With each second option.
fn deduped() -> Effect {
    let (not_before, dedupe) = (Some(instant(20)), Key::new("d").ok());
    let call = Box::new(NewCall { not_before, dedupe, ..call() });
    Effect::Accepted { id: ID, call, arrival: None, remembered: instant(0) }
}

fn call() -> NewCall {
    NewCall {
        queue: QueueName::new("mail").unwrap(),
        lane: LaneName::new("ü").unwrap(),
        tolls: [].into(),
        priority: Priority::default(),
        not_before: None,
        expires: None,
        dedupe: None,
        supersedes: None,
        payload: Payload::default(),
    }
}

fn attempts() -> Attempts {
    Attempts { failures: 1, crashes: 2, limited: u32::MAX }
}

fn ended(end: End) -> Effect {
    Effect::Ended { id: ID, end }
}

fn kept_at_rest(payload: Payload) -> Kept {
    Kept::Call {
        id: ID,
        call: Box::new(NewCall { payload, ..call() }),
        arrival: None,
        attempts: None,
        rests_until: instant(0),
        is_cancelled: true,
        flight: None,
        death: None,
    }
}

fn kept_in_flight() -> Kept {
    let payment = |hold| Payment {
        weight: 4,
        paid_at: instant(1),
        starts: Now { at: instant(2), wall: instant(3) },
        hold,
        sequence: 5,
        promised: 0b10,
    };
    let payments = [payment(None), payment(Some(HoldId(7)))].into();
    Kept::Call {
        id: ID,
        call: Box::new(call()),
        arrival: Some(6),
        attempts: Some(attempts()),
        rests_until: instant(0),
        is_cancelled: false,
        flight: Some(KeptFlight { token: 7, expires: instant(30), payments }),
        death: None,
    }
}

fn kept_dead() -> Kept {
    Kept::Call {
        id: ID,
        call: Box::new(call()),
        arrival: Some(6),
        attempts: Some(attempts()),
        rests_until: instant(0),
        is_cancelled: false,
        flight: None,
        death: Some(Death { cause: DeathCause::Limited, at: instant(9) }),
    }
}

fn died(cause: DeathCause) -> Effect {
    Effect::Died { id: ID, attempts: attempts(), cause }
}
