//! Events: what is written comes back, and the format stays.

use super::generated::fields;
use super::generated::fields::{end, instant, lane_name, limit_name, list, meter_name, number};
use super::generated::fields::{now, queue_name, small, span};
use super::golden::bytes;
use crate::embedded::codec::{decode_events, encode_events};
use proptest::prelude::*;
use tollgate_core::lanes::{CallId, End, Event, Outcome, Payload, Waits, What};
use tollgate_core::{LaneName, LimitName, Now, Partition, QueueName, Span, Timestamp};

fn event() -> impl Strategy<Value = Event> {
    let of = (now(), number(), queue_name(), lane_name(), what());
    of.prop_map(|(at, call, queue, lane, what)| Event { at, call: CallId(call), queue, lane, what })
}

fn what() -> impl Strategy<Value = What> {
    let settled = (number(), small(), now(), waits(), outcome(), fields::bytes()).prop_map(
        |(token, attempt, started, waits, outcome, report)| What::Settled {
            token,
            attempt,
            started,
            waits,
            outcome,
            report: report.into(),
        },
    );
    prop_oneof![
        (fields::bytes(), fields::bytes()).prop_map(|(envelope, body)| {
            // Without an envelope nothing is told.
            let body = if envelope.is_empty() { Vec::new() } else { body };
            What::Enqueued { payload: Payload::new(&envelope, &body).unwrap() }
        }),
        (number(), small(), waits(), any::<bool>()).prop_map(|(token, attempt, waits, is_told)| {
            What::Started { token, attempt, waits, is_told }
        }),
        settled,
        (end(), small()).prop_map(|(end, attempts)| What::Ended { end, attempts }),
        Just(What::Revived),
        (meter_name(), fields::bytes()).prop_map(|((limit, partition), begins)| {
            What::Unknown { limit, partition, begins: begins.into() }
        }),
        (meter_name(), number(), number()).prop_map(|((limit, partition), wanted, granted)| {
            What::Throttled { limit, partition, wanted, granted }
        }),
    ]
}

fn waits() -> impl Strategy<Value = Waits> {
    list((limit_name(), span())).prop_map(Vec::into_boxed_slice)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Released),
        Just(Outcome::Dead),
        Just(Outcome::Crashed),
        Just(Outcome::Cancelled),
        instant().prop_map(|again_at| Outcome::Failed { again_at }),
        instant().prop_map(|until| Outcome::Limited { until }),
    ]
}

fn written(event: &Event) -> Vec<u8> {
    let mut record = Vec::new();
    assert_eq!(encode_events(std::slice::from_ref(event), &mut record), 1);
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_event_comes_back(event in event(), more in any::<Vec<u8>>()) {
        let record = written(&event);
        prop_assert_eq!(decode_events(&record), Ok((event.clone(), None)));
        let more = [record, more].concat();
        prop_assert_eq!(decode_events(&more), Ok((event, None)), "whatever follows");
    }

    #[test]
    fn an_end_that_comes_with_an_attempt_comes_back(settled in event(), end in end()) {
        let What::Settled { attempt: attempts, .. } = settled.what else { return Ok(()) };
        let ended = Event { what: What::Ended { end, attempts }, ..settled.clone() };
        let mut record = Vec::new();
        prop_assert_eq!(encode_events(&[settled.clone(), ended.clone()], &mut record), 2);
        prop_assert_eq!(decode_events(&record), Ok((settled, Some(ended))));
    }

    #[test]
    fn an_end_of_another_call_or_time_is_apart(one in event(), other in event()) {
        let is_with = one.call == other.call && one.at == other.at;
        prop_assert!(is_with || encode_events(&[one, other], &mut Vec::new()) == 1);
    }

    #[test]
    fn any_bytes_are_an_event_or_refused(tag in 0..13_u8, rest in any::<Vec<u8>>()) {
        let _ = decode_events(&[&[tag], &rest[..]].concat());
    }
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(1_780_000_000_000_000_000 + nanos)
}

fn of(what: What) -> Event {
    Event {
        at: Now { at: at(5), wall: at(2) },
        call: CallId(300),
        queue: QueueName::new("mail").unwrap(),
        lane: LaneName::new("ü").unwrap(),
        what,
    }
}

#[test]
fn what_calls_meet_at_limits_is_written_as_it_always_was() {
    let limit = LimitName::new("stripe").unwrap();
    let unknown = |partition: Option<&str>, begins: &[u8]| {
        let partition = partition.map(|it| Partition::new(it).unwrap());
        of(What::Unknown { limit: limit.clone(), partition, begins: begins.into() })
    };
    let (partition, wanted, granted) = (Some(Partition::new("a").unwrap()), 5, 3);
    let throttled = What::Throttled { limit: limit.clone(), partition, wanted, granted };
    let golden = [
        (
            "0b ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 01 06737472697065 0161 027b7d",
            unknown(Some("a"), b"{}"),
        ),
        ("0b ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 00 06737472697065 00", unknown(None, b"")),
        (
            "0c ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 01 06737472697065 0161 05 03",
            of(throttled),
        ),
    ];
    for (hex, event) in golden {
        assert_eq!(written(&event), bytes(hex), "{event:?}");
        assert_eq!(decode_events(&bytes(hex)), Ok((event, None)));
    }
}

#[test]
fn events_are_written_as_they_always_were() {
    let waits: Waits = [(LimitName::new("stripe").unwrap(), Span::from_nanos(9))].into();
    let started = Now { at: at(4), wall: at(4) };
    let reported = |outcome, report: &[u8]| {
        let (waits, report) = ([].into(), report.into());
        of(What::Settled { token: 7, attempt: 2, started, waits, outcome, report })
    };
    let settled = |outcome| reported(outcome, b"");
    let again_at = at(8);
    let accepted =
        |envelope: &[u8]| of(What::Enqueued { payload: Payload::new(envelope, b"").unwrap() });
    let golden = [
        ("01 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc", accepted(b"")),
        (
            "02 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 06737472697065 09",
            of(What::Started { token: 7, attempt: 2, waits: waits.clone(), is_told: false }),
        ),
        (
            "0a ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 06737472697065 09",
            of(What::Started { token: 7, attempt: 2, waits, is_told: true }),
        ),
        (
            "03 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 00 00 01 06",
            settled(Outcome::Failed { again_at }),
        ),
        (
            "03 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 00 00 06",
            settled(Outcome::Cancelled),
        ),
        (
            "07 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 00 00 03 026f6b",
            reported(Outcome::Dead, b"ok"),
        ),
        (
            "04 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 01 03",
            of(What::Ended { end: End::Dead, attempts: 3 }),
        ),
        ("06 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc", of(What::Revived)),
        ("09 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 0402007b7d", accepted(b"{}")),
    ];
    for (hex, event) in golden {
        assert_eq!(written(&event), bytes(hex), "{event:?}");
        assert_eq!(decode_events(&bytes(hex)), Ok((event, None)));
    }
    let ended = of(What::Ended { end: End::Done, attempts: 2 });
    let mut record = Vec::new();
    encode_events(&[settled(Outcome::Done), ended.clone()], &mut record);
    let both = "05 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 00 00 00 00";
    assert_eq!(record, bytes(both));
    record.clear();
    encode_events(&[reported(Outcome::Done, b"ok"), ended], &mut record);
    let both = "08 ac02 8580c8a19b92f5d91805 046d61696c 02c3bc 07 02 01 00 00 00 00 026f6b";
    assert_eq!(record, bytes(both));
}
