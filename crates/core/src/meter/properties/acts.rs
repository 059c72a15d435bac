//! What can happen to meters, at random.

use super::rules::rates;
use crate::limit::Definition;
use proptest::prelude::*;
use proptest::sample::Index;

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Pays at one meter, if it passes now.
    Pay { meter: usize, weight: Pick },
    /// Pays for a start when the meter lets it pass.
    Reserve { meter: usize, weight: Pick },
    /// Pays at both meters for a start when both let it pass.
    ReserveBoth { weights: [Pick; 2] },
    /// Settles a receipt at so many parts in eight of what was paid.
    Settle { receipt: Index, eighths: u64 },
    /// Time passes.
    Wait(Wait),
    /// Closes a meter for so many parts in eight of its period.
    Close { meter: usize, eighths: u64 },
    /// Ends a closure.
    Reopen { meter: usize },
    /// Forgets the meters that are as good as new.
    Purge,
    /// Gives a meter another definition.
    Change { meter: usize, definition: Definition },
}

/// A weight between 1 and the capacity.
#[derive(Debug, Clone)]
pub(super) enum Pick {
    Small(u64),
    Any(Index),
    Whole,
}

/// How far the clock goes.
#[derive(Debug, Clone)]
pub(super) enum Wait {
    Nanos(u64),
    /// Parts in sixteen of the time that the first meter takes from empty to full.
    Sixteenths(u64),
    /// Parts in 256 of it.
    Fine(u64),
    /// Until a weight passes at a meter.
    Opening(usize, Pick),
    /// Until a nanosecond before.
    Before(usize, Pick),
}

impl Pick {
    pub(super) fn of(&self, capacity: u64) -> u64 {
        match self {
            Self::Small(weight) => (*weight).min(capacity),
            Self::Any(index) => 1 + index.index(usize::try_from(capacity).unwrap()) as u64,
            Self::Whole => capacity,
        }
    }
}

pub(super) fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        3 => (1..=3_u64).prop_map(Pick::Small),
        2 => any::<Index>().prop_map(Pick::Any),
        1 => Just(Pick::Whole),
    ]
}

fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        2 => (0..=3_u64).prop_map(Wait::Nanos),
        3 => (0..=40_u64).prop_map(Wait::Sixteenths),
        2 => (0..2_usize, pick()).prop_map(|(meter, weight)| Wait::Opening(meter, weight)),
        1 => (0..2_usize, pick()).prop_map(|(meter, weight)| Wait::Before(meter, weight)),
    ]
}

/// Paying, reserving and waiting.
pub(super) fn payments() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..2_usize, pick()).prop_map(|(meter, weight)| Act::Pay { meter, weight }),
        1 => (0..2_usize, pick()).prop_map(|(meter, weight)| Act::Reserve { meter, weight }),
        2 => [pick(), pick()].prop_map(|weights| Act::ReserveBoth { weights }),
        4 => wait().prop_map(Act::Wait),
    ]
}

/// Payments, settled for less or for more.
pub(super) fn settlements() -> impl Strategy<Value = Act> {
    let settle = |eighths| {
        (any::<Index>(), eighths).prop_map(|(receipt, eighths)| Act::Settle { receipt, eighths })
    };
    prop_oneof![6 => payments(), 3 => settle(0..=7_u64), 1 => settle(9..=20_u64)]
}

/// Everything.
pub(super) fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => settlements(),
        1 => (0..2_usize, 0..=20_u64).prop_map(|(meter, eighths)| Act::Close { meter, eighths }),
        1 => (0..2_usize).prop_map(|meter| Act::Reopen { meter }),
        2 => Just(Act::Purge),
        1 => (0..2_usize, rates())
            .prop_map(|(meter, definition)| Act::Change { meter, definition }),
    ]
}
