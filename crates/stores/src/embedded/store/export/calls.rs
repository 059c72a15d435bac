//! Calls, as lines: what was handed in, how far they came, what they paid.

use super::text::{Instant, Wrong, is_false, name, optional, read, written};
use serde::{Deserialize, Serialize};
use tollgate_core::lanes::act::BODY_BYTES_MAX;
use tollgate_core::lanes::{
    Attempts, CallId, Death, DeathCause, Kept, KeptFlight, NewCall, Payload,
};
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, Payment, Priority, QueueName, Timestamp, Toll,
    UNITS_MAX,
};

/// A call that has not ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallLine {
    id: u64,
    state: State,
    queue: String,
    lane: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<TollLine>,
    priority: u64,
    /// Its place in its lane: lower ones of its priority come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<AttemptsLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_until: Option<Instant>,
    #[serde(default, skip_serializing_if = "is_false")]
    is_cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flight: Option<FlightLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    death: Option<DeathLine>,
    /// What goes with the body, as it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelope_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// What the other fields say, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It has not joined its lane.
    Delayed,
    /// It is in its lane.
    Waiting,
    /// It is started and not settled.
    InFlight,
    /// It is not tried again unless it is revived.
    Dead,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeathLine {
    cause: CauseLine,
    at: Instant,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CauseLine {
    Failed,
    Crashed,
    Limited,
    GivenUp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TollLine {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    weight: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    hears_feedback: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttemptsLine {
    failures: u32,
    crashes: u32,
    limited: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlightLine {
    token: u64,
    expires: Instant,
    payments: Vec<PaymentLine>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaymentLine {
    weight: u64,
    paid_at: Instant,
    starts: Instant,
    starts_wall: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<u64>,
    sequence: u64,
    promised: u8,
}

impl CallLine {
    /// `None` for a fact that is of no call.
    pub(super) fn of(kept: &Kept) -> Option<Self> {
        let Kept::Call { id, call, arrival, attempts, rests_until, is_cancelled, flight, death } =
            kept
        else {
            return None;
        };
        // The key of a call that has not ended is a fact of its own.
        let NewCall {
            queue,
            lane,
            tolls,
            priority,
            not_before,
            expires,
            dedupe: _,
            supersedes,
            payload,
        } = &**call;
        let (envelope, envelope_base64) = written(payload.envelope());
        let (body, body_base64) = written(payload.body());
        Some(Self {
            id: id.0,
            state: State::of(arrival.is_some(), flight.is_some(), death.is_some()),
            queue: queue.to_string(),
            lane: lane.to_string(),
            tolls: tolls.iter().map(TollLine::of).collect(),
            priority: priority.level().into(),
            place: *arrival,
            not_before: not_before.map(Instant),
            expires: expires.map(Instant),
            supersedes: supersedes.as_ref().map(ToString::to_string),
            attempts: attempts.map(|Attempts { failures, crashes, limited }| AttemptsLine {
                failures,
                crashes,
                limited,
            }),
            rests_until: Some(*rests_until).filter(|it| *it > Timestamp::default()).map(Instant),
            is_cancelled: *is_cancelled,
            flight: flight.as_ref().map(FlightLine::of),
            death: death.map(DeathLine::of),
            envelope,
            envelope_base64,
            body,
            body_base64,
        })
    }

    pub(super) fn read(self) -> Result<Kept, Wrong> {
        let (is_in_flight, is_dead) = (self.flight.is_some(), self.death.is_some());
        if self.state != State::of(self.place.is_some(), is_in_flight, is_dead) {
            let found = "a call is dead with a death, in_flight with a flight, waiting with a place, delayed with none of them";
            return Err(format!("its state is not what its fields say: {found}"));
        }
        let body = read(self.body, self.body_base64.as_deref())?;
        if body.len() > BODY_BYTES_MAX {
            return Err(format!("a body of {} bytes is over {BODY_BYTES_MAX}", body.len()));
        }
        let envelope = read(self.envelope, self.envelope_base64.as_deref())?;
        let payload = Payload::new(&envelope, &body).map_err(|error| error.to_string())?;
        let call = NewCall {
            queue: name(QueueName::new, &self.queue)?,
            lane: name(LaneName::new, &self.lane)?,
            tolls: self.tolls.iter().map(TollLine::read).collect::<Result<_, _>>()?,
            priority: Priority::new(self.priority).map_err(|error| error.to_string())?,
            not_before: self.not_before.map(|Instant(at)| at),
            expires: self.expires.map(|Instant(at)| at),
            dedupe: None,
            supersedes: optional(Key::new, self.supersedes.as_deref())?,
            payload,
        };
        Ok(Kept::Call {
            id: CallId(self.id),
            call: Box::new(call),
            arrival: self.place,
            attempts: self.attempts.map(|AttemptsLine { failures, crashes, limited }| Attempts {
                failures,
                crashes,
                limited,
            }),
            rests_until: self.rests_until.map_or(Timestamp::default(), |Instant(at)| at),
            is_cancelled: self.is_cancelled,
            flight: self.flight.map(FlightLine::read),
            death: self.death.map(DeathLine::read),
        })
    }
}

impl State {
    fn of(has_joined: bool, is_in_flight: bool, is_dead: bool) -> Self {
        match (has_joined, is_in_flight, is_dead) {
            (_, _, true) => Self::Dead,
            (_, true, false) => Self::InFlight,
            (true, false, false) => Self::Waiting,
            (false, false, false) => Self::Delayed,
        }
    }
}

impl DeathLine {
    fn of(death: Death) -> Self {
        let cause = match death.cause {
            DeathCause::Failed => CauseLine::Failed,
            DeathCause::Crashed => CauseLine::Crashed,
            DeathCause::Limited => CauseLine::Limited,
            DeathCause::GivenUp => CauseLine::GivenUp,
        };
        Self { cause, at: Instant(death.at) }
    }

    fn read(self) -> Death {
        let cause = match self.cause {
            CauseLine::Failed => DeathCause::Failed,
            CauseLine::Crashed => DeathCause::Crashed,
            CauseLine::Limited => DeathCause::Limited,
            CauseLine::GivenUp => DeathCause::GivenUp,
        };
        Death { cause, at: self.at.0 }
    }
}

impl TollLine {
    fn of(toll: &Toll) -> Self {
        let Toll { limit, partition, weight, hears_feedback } = toll;
        Self {
            limit: limit.to_string(),
            partition: partition.as_ref().map(ToString::to_string),
            weight: *weight,
            hears_feedback: *hears_feedback,
        }
    }

    fn read(&self) -> Result<Toll, Wrong> {
        let Self { limit, partition, weight, hears_feedback } = self;
        if !(1..=UNITS_MAX).contains(weight) {
            return Err(format!("a toll weighs from 1 to {UNITS_MAX}, and this one {weight}"));
        }
        Ok(Toll {
            limit: name(LimitName::new, limit)?,
            partition: optional(Partition::new, partition.as_deref())?,
            weight: *weight,
            hears_feedback: *hears_feedback,
        })
    }
}

impl FlightLine {
    fn of(flight: &KeptFlight) -> Self {
        let KeptFlight { token, expires, payments } = flight;
        let payments = payments.iter().map(PaymentLine::of).collect();
        Self { token: *token, expires: Instant(*expires), payments }
    }

    fn read(self) -> KeptFlight {
        let Self { token, expires: Instant(expires), payments } = self;
        let payments = payments.into_iter().map(PaymentLine::read).collect();
        KeptFlight { token, expires, payments }
    }
}

impl PaymentLine {
    fn of(payment: &Payment) -> Self {
        let Payment { weight, paid_at, starts: Now { at, wall }, hold, sequence, promised } =
            *payment;
        Self {
            weight,
            paid_at: Instant(paid_at),
            starts: Instant(at),
            starts_wall: Instant(wall),
            hold: hold.map(|HoldId(id)| id),
            sequence,
            promised,
        }
    }

    fn read(self) -> Payment {
        let Self { weight, paid_at, starts, starts_wall, hold, sequence, promised } = self;
        Payment {
            weight,
            paid_at: paid_at.0,
            starts: Now { at: starts.0, wall: starts_wall.0 },
            hold: hold.map(HoldId),
            sequence,
            promised,
        }
    }
}
