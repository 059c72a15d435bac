//! The engine's errors as problems.

use super::flows::of_flow;
use super::kinds::{self, Kind};
use super::{HeaderValue, Problem};
use crate::http::wire::problem::RefusalWire;
use axum::http::header::RETRY_AFTER;
use tollgate::lanes::{ActError, MeterError, QueueError, StoreError as KeptError, TollError};
use tollgate::{AskError, Error, LimitError, NameError, Refusal, StoreError};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut problem = match &error {
            Error::Refused(refusal) => refused(refusal),
            Error::Invalid(error) => Self::new(of_ask(error), error.to_string()),
            Error::Store(StoreError::LimitsOnly) => Self::new(
                kinds::LIMITS_ONLY,
                "this server keeps limits alone, for it was started with --memory, or with --store and redis://… or nats://…: start one with --data or --store postgres://…, and it keeps calls, too",
            ),
            Error::Store(error) => of_store(error),
            Error::Meter(error) => Self::new(of_meter(error), error.to_string()),
            Error::Act(error) => of_act(error),
            Error::Queue(error) => Self::new(of_queue(error), error.to_string()),
            Error::Flow(error) => of_flow(error),
            other => Self::new(kinds::STORE_FAILED, other.to_string()),
        };
        problem.0.error = Some(error);
        problem
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let problem = Problem::new(kinds::REFUSED, refusal.to_string());
    let problem = problem.refusal(RefusalWire::from(refusal));
    match refusal.retry_after {
        Some(span) => problem.header(RETRY_AFTER, HeaderValue::from(span.as_secs_ceil())),
        None => problem,
    }
}

fn of_ask(error: &AskError) -> Kind {
    match error {
        AskError::UnknownLimit { .. } => kinds::UNKNOWN_LIMIT,
        AskError::WeightOverCapacity { .. } => kinds::WEIGHT_OVER_CAPACITY,
        AskError::WeightZero { .. } => kinds::WEIGHT_ZERO,
        AskError::NoToll => kinds::NO_TOLL,
        AskError::TooManyTolls { .. } => kinds::TOO_MANY_TOLLS,
        AskError::DelayWithSlots { .. } => kinds::DELAY_WITH_SLOTS,
        AskError::Name(error) => of_name(error),
        AskError::Limit { error, .. } => of_limit(error),
        AskError::ForecastTooLarge { .. } => kinds::FORECAST_TOO_LARGE,
        AskError::ActualTooLarge { .. } => kinds::ACTUAL_TOO_LARGE,
        AskError::NotPaid { .. } => kinds::NOT_PAID,
        AskError::NothingHeld => kinds::NOTHING_HELD,
        AskError::ReceiptSpent => kinds::RECEIPT_SPENT,
        AskError::Toll(error) => of_toll(error),
        AskError::InstantInSchedule => kinds::INSTANT_IN_SCHEDULE,
        AskError::OfRuns { .. } => kinds::QUEUE_OF_RUNS,
        AskError::CallOfRun { .. } => kinds::CALL_OF_RUN,
        AskError::QueuePushed { .. } => kinds::QUEUE_PUSHED,
        AskError::QueueNotPushed { .. } => kinds::QUEUE_NOT_PUSHED,
        AskError::Delivery(_) | AskError::Destination(_) => kinds::DESTINATION_INVALID,
        AskError::DestinationMissing { .. } => kinds::DESTINATION_MISSING,
        AskError::Envelope(_) => kinds::ENVELOPE_TOO_LONG,
        AskError::ReservedQueue | AskError::ReservedKey => kinds::RESERVED_NAME,
        _ => kinds::INVALID_ASK,
    }
}

fn of_limit(error: &LimitError) -> Kind {
    match error {
        LimitError::NoRule => kinds::LIMIT_NO_RULE,
        LimitError::TooManyRules { .. } => kinds::LIMIT_TOO_MANY_RULES,
        LimitError::TwoConcurrencies => kinds::LIMIT_TWO_CONCURRENCIES,
        LimitError::Zero { .. } => kinds::LIMIT_ZERO,
        LimitError::TooLarge { .. } => kinds::LIMIT_TOO_LARGE,
        LimitError::Period { .. } => kinds::LIMIT_PERIOD,
        LimitError::GuardTooLong { .. } => kinds::LIMIT_GUARD_TOO_LONG,
        LimitError::GuardTakesTheBurst { .. } => kinds::LIMIT_GUARD_TAKES_THE_BURST,
        LimitError::GuardOnCalendar => kinds::LIMIT_GUARD_ON_CALENDAR,
        LimitError::AheadOnCalendar => kinds::LIMIT_AHEAD_ON_CALENDAR,
        LimitError::AheadWithSlots => kinds::LIMIT_AHEAD_WITH_SLOTS,
        LimitError::BurstFillsTooSlowly { .. } => kinds::LIMIT_BURST_FILLS_TOO_SLOWLY,
        LimitError::UnknownZone { .. } => kinds::LIMIT_UNKNOWN_ZONE,
        LimitError::NotACalendarPeriod { .. } => kinds::LIMIT_NOT_A_CALENDAR_PERIOD,
        LimitError::Misplaced { .. } => kinds::LIMIT_MISPLACED,
        _ => kinds::INVALID_ASK,
    }
}

fn of_act(error: &ActError) -> Problem {
    let kind = match error {
        ActError::LeaseLost { .. } => kinds::LEASE_LOST,
        ActError::NotPaid { .. } => kinds::NOT_PAID,
        ActError::UnknownQueue { .. } => kinds::UNKNOWN_QUEUE,
        ActError::Toll { error, .. } => of_toll(error),
        ActError::QueueFull { .. } => kinds::QUEUE_FULL,
        ActError::TooManyChanges { .. } | ActError::TooManyBytes { .. } => kinds::TOO_MANY_CHANGES,
        ActError::BodyTooLong { .. } => kinds::CALL_BODY_TOO_LONG,
        ActError::ReportTooLong { .. } => kinds::REPORT_TOO_LONG,
        ActError::Name(error) => of_name(error),
        _ => kinds::INVALID_ASK,
    };
    let detail = match error {
        // Who settles several is told of each in its place.
        ActError::LeaseLost { .. } => {
            "the lease is lost: it was settled or has expired, and another worker may have the call"
                .to_owned()
        }
        ActError::NotPaid { limit, .. } => {
            format!("the call pays nothing at {limit}: settle what it paid")
        }
        other => other.to_string(),
    };
    let problem = Problem::new(kind, detail);
    match error {
        // Nobody knows when there is room; a producer that asks every second is no burden.
        ActError::QueueFull { .. } => problem.header(RETRY_AFTER, HeaderValue::from(1)),
        _ => problem,
    }
}

fn of_toll(error: &TollError) -> Kind {
    match error {
        TollError::UnknownLimit { .. } => kinds::UNKNOWN_LIMIT,
        TollError::WeightZero { .. } => kinds::WEIGHT_ZERO,
        TollError::WeightOverCapacity { .. } => kinds::WEIGHT_OVER_CAPACITY,
        TollError::TooMany { .. } => kinds::TOO_MANY_TOLLS,
        TollError::BodyNotJson { .. } => kinds::BODY_NOT_JSON,
        TollError::NoPartition { .. } => kinds::NO_PARTITION,
        TollError::NoWeight { .. } => kinds::NO_WEIGHT,
        TollError::Spread { .. } => kinds::LIMIT_SPREAD_COMBINED,
        _ => kinds::INVALID_ASK,
    }
}

fn of_name(error: &NameError) -> Kind {
    match error {
        NameError::Empty { .. } => kinds::NAME_EMPTY,
        _ => kinds::NAME_TOO_LONG,
    }
}

fn of_queue(error: &QueueError) -> Kind {
    match error {
        QueueError::Parallel { .. } => kinds::QUEUE_PARALLEL,
        QueueError::Lease { .. } => kinds::QUEUE_LEASE,
        QueueError::NoAttempts => kinds::QUEUE_NO_ATTEMPTS,
        QueueError::Jitter { .. } => kinds::QUEUE_JITTER,
        QueueError::Delivery { .. } => kinds::QUEUE_DELIVERY,
        QueueError::NoDepth => kinds::QUEUE_NO_DEPTH,
        QueueError::TooManyTolls { .. } => kinds::QUEUE_TOO_MANY_TOLLS,
        QueueError::TollWeight { .. } => kinds::QUEUE_TOLL_WEIGHT,
        QueueError::TollLike { .. } => kinds::QUEUE_TOLL_LIKE,
        QueueError::TollWhen { .. } => kinds::QUEUE_TOLL_WHEN,
        QueueError::NotEmpty { .. } => kinds::QUEUE_NOT_EMPTY,
        _ => kinds::INVALID_ASK,
    }
}

fn of_meter(error: &MeterError) -> Kind {
    match error {
        MeterError::TooManyOverrides { .. } => kinds::TOO_MANY_OVERRIDES,
        MeterError::SpreadStays { .. } => kinds::LIMIT_SPREAD_STAYS,
        _ => kinds::INVALID_ASK,
    }
}

fn of_store(error: &StoreError) -> Problem {
    let problem = Problem::new(kind_of_store(error), error.to_string());
    match error {
        // Nobody knows when it is back; one who asks every second is told within the next.
        StoreError::Kept(KeptError::Unreachable { .. }) => {
            problem.header(RETRY_AFTER, HeaderValue::from(1))
        }
        _ => problem,
    }
}

fn kind_of_store(error: &StoreError) -> Kind {
    match error {
        StoreError::LimitsFull { .. } => kinds::LIMITS_FULL,
        StoreError::MetersFull { .. } => kinds::METERS_FULL,
        StoreError::WaitingFull { .. } => kinds::WAITING_FULL,
        StoreError::ReceiptsFull { .. } => kinds::RECEIPTS_FULL,
        StoreError::MetersNotListed => kinds::METERS_NOT_LISTED,
        StoreError::Kept(KeptError::Full { .. }) => kinds::STORE_FULL,
        StoreError::Kept(KeptError::Unreachable { .. }) => kinds::STORE_UNREACHABLE,
        _ => kinds::STORE_FAILED,
    }
}
