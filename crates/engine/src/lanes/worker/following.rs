//! What follows from a start and hangs on records: they are looked at for all starts that are settled together.

use super::Engine;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;
use tollgate_core::Key;
use tollgate_core::contract::{Answer, Lanes};
use tollgate_core::lanes::{Act, Record};

/// What follows from a start, by what records say.
pub(crate) trait Following: fmt::Debug + Send + Sync {
    /// What is next, by the records that were looked at so far, in the order in which it asked for them.
    fn next(&self, found: &[Option<Record>]) -> Result<Next, Error>;

    /// It was made.
    fn made(&self);
}

/// What is next before something follows.
#[derive(Debug)]
pub(crate) enum Next {
    /// These records are to be looked at, too.
    Look(Vec<Key>),
    /// This follows.
    Act(Act),
}

/// Finds what follows, for each.
pub(super) async fn acts<S: Lanes + 'static>(
    engine: &Engine<S>,
    following: Vec<Arc<dyn Following>>,
) -> Answer<Vec<Result<Act, Error>>> {
    let mut acts: Vec<_> = following.iter().map(|_| Ok(Act::default())).collect();
    let mut open: Vec<_> = following.into_iter().map(|by| (by, Vec::new())).enumerate().collect();
    while !open.is_empty() {
        let (mut keys, mut asking) = (Vec::new(), Vec::new());
        for (place, (by, found)) in open {
            match by.next(&found) {
                Ok(Next::Look(more)) => {
                    asking.push((place, (by, found), more.len()));
                    keys.extend(more);
                }
                Ok(Next::Act(act)) => acts[place] = Ok(act),
                Err(error) => acts[place] = Err(error),
            }
        }
        open = Vec::with_capacity(asking.len());
        if asking.is_empty() {
            break;
        }
        let mut records = engine.store().records(keys).await?.into_iter();
        for (place, (by, mut found), asked) in asking {
            found.extend(records.by_ref().take(asked));
            open.push((place, (by, found)));
        }
    }
    Ok(acts)
}
