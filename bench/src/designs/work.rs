//! What each design is given to do, and the check that it did it: every call once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context as _, ensure};

/// Calls that a client hands in or asks for at a time.
pub(crate) const BATCH: usize = 1_000;
/// Bytes of each payload; it begins with the number of its call.
pub(crate) const PAYLOAD_BYTES: usize = 200;

/// How many lanes, and how many calls in each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) lanes: usize,
    pub(crate) calls_of_each: usize,
}

impl Work {
    pub(crate) fn calls(self) -> usize {
        self.lanes * self.calls_of_each
    }

    pub(crate) fn batches(self) -> usize {
        self.calls().div_ceil(BATCH)
    }

    /// The calls of a batch. They go round the lanes, as those of many tenants do.
    pub(crate) fn batch(self, number: usize) -> anyhow::Result<Vec<Call>> {
        let calls = number * BATCH..((number + 1) * BATCH).min(self.calls());
        calls.map(|call| Call::new(call, call % self.lanes)).collect()
    }
}

/// A call to be handed in.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) lane: i64,
    pub(crate) payload: Vec<u8>,
}

impl Call {
    fn new(number: usize, lane: usize) -> anyhow::Result<Self> {
        let number = u64::try_from(number)?;
        // Noise, so that nothing is gained by compressing it.
        let mut word = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut payload = number.to_le_bytes().to_vec();
        while payload.len() < PAYLOAD_BYTES {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            payload.extend(word.to_le_bytes());
        }
        Ok(Self { lane: i64::try_from(lane)?, payload })
    }

    pub(crate) fn lane_name(&self) -> String {
        format!("lane-{:07}", self.lane)
    }
}

/// A node of a design, shared by its clients.
pub(crate) trait Node: Send + Sync + 'static {
    /// What a client keeps of a claim, to end it.
    type Held: Default + Send;

    /// Hands in calls; they are on disk when it returns.
    fn enqueue(&self, calls: Vec<Call>) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Ends the calls of the claim before and starts others, up to [`BATCH`].
    fn claim(
        &self,
        ended: Self::Held,
    ) -> impl Future<Output = anyhow::Result<Claimed<Self::Held>>> + Send;
}

/// Calls that were started.
#[derive(Default)]
pub(crate) struct Claimed<Held> {
    pub(crate) held: Held,
    pub(crate) payloads: Vec<Vec<u8>>,
}

/// Which calls were started.
pub(crate) struct Tally {
    seen: Vec<AtomicBool>,
    left: AtomicUsize,
}

impl Tally {
    pub(crate) fn new(work: Work) -> Arc<Self> {
        let seen = (0..work.calls()).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { seen, left: AtomicUsize::new(work.calls()) })
    }

    pub(crate) fn see(&self, payload: &[u8]) -> anyhow::Result<()> {
        ensure!(payload.len() == PAYLOAD_BYTES, "a payload of {} bytes", payload.len());
        let (number, _) = payload.split_first_chunk().context("a payload without a number")?;
        let number = usize::try_from(u64::from_le_bytes(*number))?;
        let seen = self.seen.get(number).with_context(|| format!("no call {number} was made"))?;
        ensure!(!seen.swap(true, Ordering::Relaxed), "call {number} was started twice");
        self.left.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { lanes: 300, calls_of_each: 5 };

    #[test]
    fn batches_hold_every_call_once() {
        let tally = Tally::new(WORK);
        for number in 0..WORK.batches() {
            assert!(!tally.is_complete());
            for call in WORK.batch(number).unwrap() {
                tally.see(&call.payload).unwrap();
            }
        }
        assert!(tally.is_complete());
    }

    #[test]
    fn a_call_that_starts_twice_is_noticed() {
        let tally = Tally::new(WORK);
        let call = Call::new(7, 7).unwrap();
        tally.see(&call.payload).unwrap();
        assert!(tally.see(&call.payload).is_err());
    }
}
