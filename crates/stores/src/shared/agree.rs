//! Agreeing with a store since when it remembers, and telling it again the rules that it has lost.

use super::cells::{CellKey, Cells, Change, Decide, Found, Kind, Wanted};
use super::codec::{self, Definitions, Epoch};
use super::memory::{Known, Memory};
use super::quick::Quick;
use super::wants;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinSet;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::till::Timeline;
use tollgate_core::{Now, Timestamp};

/// Rules as they were last seen, and where.
type Rules = (CellKey, Known);

/// Agrees with a store. It is remembered only when all is told: cut short, it is begun again.
pub(super) async fn agree(cells: &Arc<dyn Cells>, memory: &Mutex<Memory>) -> Answer<()> {
    let (remembered, known) = {
        let memory = memory.lock();
        (memory.epoch(), memory.all_known())
    };
    let (at_once, later) =
        if cells.writes_together() { (known, Vec::new()) } else { (Vec::new(), known) };
    let mut agree = Agree { remembered, known: at_once, agreed: Err(undecided()) };
    let keys = agree.keys();
    cells.change(Wanted { read: &[], change: &keys }, &mut agree).await?;
    let agreed = agree.agreed?;
    if is_loss(remembered, Some(agreed)) {
        tell_one_by_one(cells, later).await?;
    }
    memory.lock().agree(agreed);
    Ok(())
}

/// Tells rules where cells are written one by one. Those of partitions first: without those of its limit
/// nothing passes there, and with those alone too much might.
async fn tell_one_by_one(cells: &Arc<dyn Cells>, known: Vec<Rules>) -> Answer<()> {
    let (own, common): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|(key, _)| key.kind == Kind::Own);
    for rules in [own, common] {
        let (mut rules, mut under_way) = (rules.into_iter(), JoinSet::new());
        loop {
            let more = cells.changes_max().saturating_sub(under_way.len());
            for (key, known) in rules.by_ref().take(more) {
                let cells = cells.clone();
                under_way.spawn(async move {
                    let wanted = Wanted { read: &[], change: &[key] };
                    cells.change(wanted, &mut Lost(known)).await
                });
            }
            let Some(told) = under_way.join_next().await else { break };
            told.unwrap_or_else(|_| Err(undecided()))?;
        }
    }
    Ok(())
}

fn undecided() -> StoreError {
    StoreError::Failed { reason: "the store decided nothing".to_owned() }
}

/// Who knew it before knows that something is lost; who did not cannot.
fn is_loss(remembered: Option<Epoch>, there: Option<Epoch>) -> bool {
    remembered.is_some_and(|known| there.is_none_or(|there| there.begun != known.begun))
}

/// Agrees since when a store remembers, and tells it all rules that it has lost.
struct Agree {
    remembered: Option<Epoch>,
    known: Vec<Rules>,
    agreed: Answer<Epoch>,
}

impl Agree {
    fn keys(&self) -> Vec<CellKey> {
        let known = self.known.iter().map(|(key, _)| key.clone());
        [wants::epoch()].into_iter().chain(known).collect()
    }
}

impl Decide for Agree {
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change> {
        let read = found.change.first().cloned().flatten().map(|bytes| Epoch::read(&bytes));
        let Ok(there) = read.transpose() else {
            let reason = "since when the store remembers cannot be read: another version, or something else, wrote under the same prefix".to_owned();
            self.agreed = Err(StoreError::Failed { reason });
            return Vec::new();
        };
        let is_loss = is_loss(self.remembered, there);
        let mut agreed = there.unwrap_or(Epoch { begun: now.at, lost: None });
        if is_loss && agreed.lost.is_none() {
            agreed.lost = Some(now);
        }
        self.agreed = Ok(agreed);
        let mut changes = Vec::new();
        if there != Some(agreed) {
            changes.push(Change { at: 0, value: Some(agreed.written()), life: None });
        }
        if is_loss {
            let rules = found.change.iter().skip(1).zip(&self.known).enumerate();
            changes
                .extend(rules.filter_map(|(at, (there, (_, known)))| told(at + 1, there, known)));
        }
        changes
    }

    fn take_back(&mut self, _: usize, _: Now, _: Option<&[u8]>) -> Option<Change> {
        // Whatever of it was written is right by itself.
        None
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// Rules that a store has lost.
struct Lost(Known);

impl Decide for Lost {
    fn decide(&mut self, _: Now, found: &Found) -> Vec<Change> {
        found.change.first().and_then(|there| told(0, there, &self.0)).into_iter().collect()
    }

    fn take_back(&mut self, _: usize, _: Now, _: Option<&[u8]>) -> Option<Change> {
        None
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// What tells a store rules that were known, if it has none. If somebody else has told it already, the
/// newest that anybody knew are to hold.
fn told(at: usize, there: &Option<Vec<u8>>, known: &Known) -> Option<Change> {
    if let Some(there) = there {
        let there = codec::timeline_read(there, &mut Definitions::default()).ok()?;
        if newness(&known.rules) <= newness(&there) {
            return None;
        }
    }
    Some(Change { at, value: Some(known.bytes.clone()), life: None })
}

/// When rules changed last, and how often they and those of partitions did.
fn newness(rules: &Timeline) -> (Option<Timestamp>, u64) {
    (rules.turns().last().map(|turn| turn.since.at), rules.changed)
}
