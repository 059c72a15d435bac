//! Asks that start now or are refused, in a form that a store may decide by itself where its cells are.

use std::sync::Arc;
use tollgate_core::{Definition, Span};

/// A change that is nothing but asks, each all or nothing, in order.
#[derive(Debug, Clone)]
pub struct Quick {
    /// What was taken for the values of the cells that are only read: if one is another, nothing holds.
    pub expects: Vec<Option<Vec<u8>>>,
    /// Meters that are not there may have been lost: such a change is not for the store to decide.
    pub needs_all: bool,
    /// Who asks.
    pub asks: Vec<QuickAsk>,
}

/// An ask that pays now or not at all.
#[derive(Debug, Clone)]
pub struct QuickAsk {
    /// How many such ask, one after the other.
    pub count: usize,
    /// How long its receipt lives: so long slots are held.
    pub life: Span,
    /// What it owes, each line at another meter.
    pub lines: Vec<QuickLine>,
}

/// What an ask owes at one meter.
#[derive(Debug, Clone)]
pub struct QuickLine {
    /// Which of the cells that may be changed.
    pub at: usize,
    /// Names the rules that the meter must have been left under; a new one is.
    pub rules: Arc<str>,
    /// The number of the last change of its rules, which the meter must have gone along with; a new one has.
    pub seen: u64,
    /// The rules.
    pub definition: Arc<Definition>,
    /// How much: no more than the rules let pass at once.
    pub weight: u64,
}
