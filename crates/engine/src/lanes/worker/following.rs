//! What follows from a start and hangs on records: they are looked at for all starts that are settled together.

use super::Engine;
use crate::error::Error;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tollgate_core::Key;
use tollgate_core::contract::{Answer, Lanes};
use tollgate_core::lanes::{Act, QueueSpec, Record};

/// What follows from a start, by what records say.
pub(crate) trait Following: fmt::Debug + Send + Sync {
    /// What is next, by the records that were looked at so far, in the order in which it asked for them.
    fn next(&self, found: &[Option<Record>]) -> Result<Next, Error>;

    /// How queues of calls that follow are: one that is not there is made.
    fn queues(&self) -> QueueSpec;

    /// It was made.
    fn made(&self);
}

/// What is next before something follows.
#[derive(Debug)]
pub(crate) enum Next {
    /// These records are to be looked at, too.
    Look(Vec<Key>),
    /// This follows.
    Act(Box<Act>),
}

/// Finds what follows, for each.
pub(super) async fn acts<S: Lanes + 'static>(
    engine: &Engine<S>,
    following: Vec<Arc<dyn Following>>,
) -> Answer<Vec<Result<Act, Error>>> {
    let mut acts: Vec<_> = following.iter().map(|_| Ok(Act::default())).collect();
    let mut open: Vec<_> = following.into_iter().map(|by| (by, Vec::new())).enumerate().collect();
    while !open.is_empty() {
        let (mut keys, mut asking) = (Keys::default(), Vec::new());
        for (place, (by, found)) in open {
            match by.next(&found) {
                Ok(Next::Look(more)) => {
                    let asked: Vec<_> = more.into_iter().map(|key| keys.place(key)).collect();
                    asking.push((place, (by, found), asked));
                }
                Ok(Next::Act(act)) => acts[place] = Ok(*act),
                Err(error) => acts[place] = Err(error),
            }
        }
        open = Vec::with_capacity(asking.len());
        if asking.is_empty() {
            break;
        }
        let records = engine.store().records(keys.all).await?;
        for (place, (by, mut found), asked) in asking {
            let asked = asked.into_iter().map(|place| records.get(place).cloned().flatten());
            found.extend(asked);
            open.push((place, (by, found)));
        }
    }
    Ok(acts)
}

/// Keys that are asked for together, each once: the children of a run all ask for it.
#[derive(Default)]
struct Keys {
    all: Vec<Key>,
    places: HashMap<Key, usize>,
}

impl Keys {
    fn place(&mut self, key: Key) -> usize {
        *self.places.entry(key).or_insert_with_key(|key| {
            self.all.push(key.clone());
            self.all.len() - 1
        })
    }
}
