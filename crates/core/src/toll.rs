//! Tolls: what a call owes at a meter, and what is refused at the door.

use crate::lanes::BodyPath;
use crate::limit::Definition;
use crate::name::{LimitName, Partition};

/// Most tolls of one call: more limits than that on one call are a mistake.
pub const TOLLS_MAX: usize = 8;

/// What a call owes at one meter each time it starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toll {
    /// Which limit.
    pub limit: LimitName,
    /// Which of its meters; `None` for the global one.
    pub partition: Option<Partition>,
    /// How many units; at least 1.
    pub weight: u64,
    /// Whether an upstream that asks for a pause closes this meter.
    pub hears_feedback: bool,
}

/// Why tolls can never be paid as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TollError {
    /// There is no such limit.
    #[error("there is no limit {limit}: define it first")]
    UnknownLimit {
        /// What was named.
        limit: LimitName,
    },
    /// A toll of nothing.
    #[error("a toll at {limit} weighs nothing: leave it out, or give it a weight")]
    WeightZero {
        /// Where.
        limit: LimitName,
    },
    /// A toll that can never pass.
    #[error(
        "a weight of {weight} can never pass {limit}, which holds {capacity}: split the call, or raise the limit"
    )]
    WeightOverCapacity {
        /// Where.
        limit: LimitName,
        /// How much, of all tolls at that meter together.
        weight: u64,
        /// The most that passes.
        capacity: u64,
    },
    /// The queue reads from the body what is owed, and the body is not JSON.
    #[error(
        "the queue reads what is owed at {limit} from {path}, and the body is not JSON: send JSON, or use a queue that reads nothing from it"
    )]
    BodyNotJson {
        /// Where.
        limit: LimitName,
        /// What is read first.
        path: BodyPath,
    },
    /// The body does not say which partition it is.
    #[error(
        "the queue reads the partition at {limit} from {path}, where the body has {found}: send a text of 1 to 512 bytes or a whole number there, or give the queue's toll a default"
    )]
    NoPartition {
        /// Where.
        limit: LimitName,
        /// From where it is read.
        path: BodyPath,
        /// What is there.
        found: String,
    },
    /// The body does not say how much it is.
    #[error(
        "the queue reads the weight at {limit} from {path}, where the body has {found}: send a whole number from 1 on there, or give the queue's toll a default and a max"
    )]
    NoWeight {
        /// Where.
        limit: LimitName,
        /// From where it is read.
        path: BodyPath,
        /// What is there.
        found: String,
    },
    /// A limit whose meters lie apart from all others, owed with something else.
    #[error(
        "{limit} is spread, and cannot be combined with others: ask for it alone, or define one that is not spread, under another name"
    )]
    Spread {
        /// Which limit.
        limit: LimitName,
    },
    /// More tolls than a call may owe.
    #[error("{count} tolls are more than the {TOLLS_MAX} a call may owe")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// Refuses what can never pass, by the rules that each toll's meter follows. Two tolls at one meter add up.
pub fn check<'a>(
    tolls: &[Toll],
    definition: impl Fn(&Toll) -> Option<&'a Definition>,
) -> Result<(), TollError> {
    check_count(tolls)?;
    for toll in tolls {
        let limit = || toll.limit.clone();
        let Some(definition) = definition(toll) else {
            return Err(TollError::UnknownLimit { limit: limit() });
        };
        if toll.weight == 0 {
            return Err(TollError::WeightZero { limit: limit() });
        }
        let is_same =
            |other: &&Toll| other.limit == toll.limit && other.partition == toll.partition;
        let same = tolls.iter().filter(is_same);
        let weight = same.fold(0_u64, |sum, other| sum.saturating_add(other.weight));
        let capacity = definition.capacity();
        if weight > capacity {
            return Err(TollError::WeightOverCapacity { limit: limit(), weight, capacity });
        }
    }
    Ok(())
}

/// Refuses what no limit could ever let pass, whatever limits there are.
pub fn check_shape(tolls: &[Toll]) -> Result<(), TollError> {
    check_count(tolls)?;
    match tolls.iter().find(|toll| toll.weight == 0) {
        Some(toll) => Err(TollError::WeightZero { limit: toll.limit.clone() }),
        None => Ok(()),
    }
}

fn check_count(tolls: &[Toll]) -> Result<(), TollError> {
    match tolls.len() {
        count if count > TOLLS_MAX => Err(TollError::TooMany { count }),
        _ => Ok(()),
    }
}
