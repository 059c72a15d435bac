//! What a limiter must do to be measured, and the table in which it says so.

use std::future::Future;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::waiters::{Crowd, Outcome};

/// One limiter under one configuration; a part it does not offer is `None`.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The clock it reads for each decision, as the table shows it.
    pub(crate) clock: &'static str,
    pub(crate) direct: Option<fn(Limit) -> Box<dyn Direct>>,
    pub(crate) integers: Option<OpenKeyed<u64>>,
    pub(crate) strings: Option<OpenKeyed<String>>,
    /// Lets a crowd wait on one limiter: `|crowd| crowd.wait_on(open(crowd.limit))`.
    pub(crate) waiters: Option<fn(&Crowd) -> anyhow::Result<Outcome>>,
}

/// Opens a keyed limiter for a limit and the number of keys to expect.
pub(crate) type OpenKeyed<Key> = fn(Limit, usize) -> Box<dyn Keyed<Key>>;

/// A limit every contender can express: `burst` at once, then one unit each `interval`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) interval: Duration,
    pub(crate) burst: NonZeroU32,
}

/// A limiter with one budget.
///
/// The loop is inside so that a call through `dyn` is paid once for a round, not once a decision.
pub(crate) trait Direct: Send + Sync {
    /// Decides `times` times, one by one, and returns how many were granted.
    fn decide(&self, times: usize) -> usize;
}

/// A limiter with one budget for each key.
pub(crate) trait Keyed<Key>: Send + Sync {
    /// Decides once for each of `keys`, in their order, and returns how many were granted.
    fn decide_each(&self, keys: &[Key]) -> usize;

    /// Runs the clean-up the limiter leaves to its caller; false if it leaves none.
    fn clean_up(&self) -> bool;
}

/// A limiter whose callers can wait for their turn.
pub(crate) trait Waiting: Send + Sync + 'static {
    /// Resolves when one unit is granted.
    fn acquire(&self) -> impl Future<Output = ()> + Send;
}

/// The loop of [`Direct::decide`] for a limiter that decides one at a time.
pub(crate) fn repeat(times: usize, decide: impl Fn() -> bool) -> usize {
    (0..times).filter(|_| decide()).count()
}

/// The loop of [`Keyed::decide_each`] for a limiter that decides one at a time.
pub(crate) fn each<Key>(keys: &[Key], decide: impl Fn(&Key) -> bool) -> usize {
    keys.iter().filter(|key| decide(key)).count()
}
