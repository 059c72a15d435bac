//! What a store must do to carry limits that several processes share: keep values under keys, and
//! change several of them as one.
//!
//! Whoever decides stands above: it is handed what was read, in the store's time, and says what
//! becomes of it. A store knows neither limits nor meters.

use super::quick::Quick;
use smol_str::SmolStr;
use std::future::Future;
use std::pin::Pin;
use tollgate_core::contract::Answer;
use tollgate_core::{Now, Span};

/// Something under way at a store.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a cell is of. In this order cells are locked, and written where they cannot be written
/// together: what guards a change comes before what it guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Since when the store remembers: one cell.
    Epoch,
    /// Bytes that are kept beside a limit: who defined it.
    Record,
    /// The rules of a limit.
    Limit,
    /// The rules of one partition of a limit.
    Own,
    /// A receipt that was settled.
    Settled,
    /// A meter.
    Meter,
    /// A receipt that was settled, of a limit that is spread: it lies with the meter.
    SpreadSettled,
    /// A meter of a limit that is spread: it lies apart from all others.
    SpreadMeter,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Self; 8] = [
        Self::Epoch,
        Self::Record,
        Self::Limit,
        Self::Own,
        Self::Settled,
        Self::Meter,
        Self::SpreadSettled,
        Self::SpreadMeter,
    ];

    /// One letter, as keys begin with it. Never changes.
    pub fn letter(self) -> char {
        match self {
            Self::Epoch => 'e',
            Self::Limit => 'l',
            Self::Own => 'o',
            Self::Record => 'r',
            Self::Settled => 's',
            Self::Meter => 'm',
            Self::SpreadSettled => 'y',
            Self::SpreadMeter => 'x',
        }
    }

    /// Whether such a cell lies apart if its limit is spread.
    pub(crate) fn may_lie_apart(self) -> bool {
        matches!(self, Self::Settled | Self::Meter) || self.is_spread()
    }

    /// Whether such a cell lies apart from all others.
    pub fn is_spread(self) -> bool {
        matches!(self, Self::SpreadSettled | Self::SpreadMeter)
    }
}

/// Names one cell. Both names are any UTF-8 up to 1,024 bytes, zero bytes included; short ones need no memory
/// of their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// What it is of.
    pub kind: Kind,
    /// The limit's name, most often.
    pub name: SmolStr,
    /// Which of its cells, where it has several: the partition, most often.
    pub part: Option<SmolStr>,
}

/// What becomes of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which of [`Wanted::change`].
    pub at: usize,
    /// Its new value; `None`: it is removed.
    pub value: Option<Vec<u8>>,
    /// For how long it is needed from now; after that the store may forget it by itself. `None`: for
    /// good.
    pub life: Option<Span>,
}

/// The cells of one change. Sorted, without doubles, and in one of the two at most.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Those that are only read: as they are at some instant of the change.
    pub read: &'a [CellKey],
    /// Those that may be changed.
    pub change: &'a [CellKey],
}

/// The values of cells, in the order of [`Wanted`]; `None` where there is no cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Of those that are only read.
    pub read: Vec<Option<Vec<u8>>>,
    /// Of those that may be changed.
    pub change: Vec<Option<Vec<u8>>>,
}

/// Decides what becomes of cells.
pub trait Decide: Send {
    /// Says what changes, of what was found, at this instant of the store's time. May be asked several
    /// times if others were faster: only what it said last was done.
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change>;

    /// Of a store that cannot write several cells together: says what takes its part back from a cell
    /// that was written as [`Self::decide`] last said and that others may have changed since; `None`: it
    /// stays as they left it. A store may put back a cell that nobody has changed since as it was,
    /// without asking.
    fn take_back(&mut self, at: usize, now: Now, found: Option<&[u8]>) -> Option<Change>;

    /// The same change in a form that a store may decide by itself, if it is one of that kind: then
    /// [`Self::witness`] is asked once, of what was found before.
    fn quick(&self) -> Option<&Quick>;

    /// As [`Self::decide`], of what the store has decided and written by itself: says of how many cells it
    /// would say that they change.
    fn witness(&mut self, now: Now, found: &Found) -> usize {
        self.decide(now, found).len()
    }
}

/// Values under keys, in a store that several processes share.
pub trait Cells: Send + Sync {
    /// Reads cells, has it decided what becomes of them, and writes that: all of it or nothing, and so
    /// that no other change comes between. The clock is the store's, read after whatever locks are
    /// needed are held.
    ///
    /// A store that is out of reach says so within its deadline. Dropped, it may have been done.
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>>;

    /// The names of cells of a kind that are there, each once, sorted by their bytes, after one, up to
    /// so many.
    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>>;

    /// Whether the cells of one change are written together. If not, requests go apart, so that few
    /// changes are of more than one cell.
    fn writes_together(&self) -> bool;

    /// Whether meters of limits that are spread lie apart, so that they are changed by themselves. If not,
    /// no cell is of such a kind.
    fn spreads(&self) -> bool;

    /// How many changes of one process are worth having under way at a time.
    fn changes_max(&self) -> usize;

    /// Among how many changes those who ask at once are divided, where the store makes one after the other: while one is
    /// under way, the next waits for its share of them, for some milliseconds at most. 1 where changes are made
    /// beside each other, or one costs more than what is in it: they go as soon as there is room.
    fn shares(&self) -> usize;

    /// Whether it decides by itself what is [`Quick`]: such a change is one step, and holds up nobody while it is
    /// under way.
    fn decides_itself(&self) -> bool;
}
