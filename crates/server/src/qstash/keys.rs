//! Signing keys: a pair for each namespace, made when it is needed first, and kept with the calls.

use super::error::Fault;
use super::names::Names;
use super::shape::reply::SigningKeysWire;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate::lanes::{ActError, Key, PAGE_MAX, Revision, Write};
use tollgate::push::signature::SigningKey;
use tollgate::{Error, Tollgate};

/// Where the records of keys are, with the namespace behind it.
pub(super) const PREFIX: &str = "tollgate/qstash/keys/";
/// Bytes of a new key.
const KEY_BYTES: usize = 32;
/// How a key begins.
const KEY: &str = "sig_";

/// The keys of all namespaces, as far as they are known here.
#[derive(Debug, Default)]
pub(super) struct Keyring {
    known: RwLock<HashMap<Names, Arc<Pair>>>,
}

/// The keys of a namespace.
pub(super) struct Pair {
    current: String,
    next: String,
    /// What signs.
    pub(super) signing: SigningKey,
    /// They are known to everyone, and written nowhere.
    is_lent: bool,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pair(***)")
    }
}

#[derive(Serialize, Deserialize)]
struct PairRecord {
    current: String,
    next: String,
}

impl Pair {
    /// Both as a receiver holds them.
    pub(super) fn wire(&self) -> SigningKeysWire {
        SigningKeysWire { current: self.current.clone(), next: self.next.clone() }
    }

    fn new(record: PairRecord) -> Result<Self, Fault> {
        let signing = SigningKey::from_text(&record.current).map_err(Fault::unavailable)?;
        Ok(Self { current: record.current, next: record.next, signing, is_lent: false })
    }
}

impl Keyring {
    /// The keys that a namespace has, as far as is known here.
    pub(super) fn known(&self, names: &Names) -> Option<Arc<Pair>> {
        self.known.read().get(names).cloned()
    }

    /// Lets those who are in no namespace have these keys, as long as this runs.
    pub(super) fn lend(&self, current: &str, next: &str) -> Result<(), Fault> {
        let record = PairRecord { current: current.to_owned(), next: next.to_owned() };
        let pair = Pair { is_lent: true, ..Pair::new(record)? };
        self.known.write().insert(Names::default(), Arc::new(pair));
        Ok(())
    }

    /// The keys of a namespace: made if there are none.
    pub(super) async fn get(&self, gate: &Tollgate, names: &Names) -> Result<Arc<Pair>, Fault> {
        if let Some(known) = self.known(names) {
            return Ok(known);
        }
        loop {
            let (found, revision) = read(gate, names).await?;
            if let Some(found) = found {
                return self.learn(names, found);
            }
            let made = PairRecord { current: new_key()?, next: new_key()? };
            if write(gate, names, revision, &made).await? {
                return self.learn(names, made);
            }
        }
    }

    /// The next key is the current one from now on, and there is a new next.
    pub(super) async fn rotate(&self, gate: &Tollgate, names: &Names) -> Result<Arc<Pair>, Fault> {
        let known = self.get(gate, names).await?;
        if known.is_lent {
            return Err(Fault::invalid(
                "these are the keys that SDKs know in development: they stay as they are",
            ));
        }
        loop {
            let (found, revision) = read(gate, names).await?;
            let current = found.map_or_else(|| known.next.clone(), |found| found.next);
            let made = PairRecord { current, next: new_key()? };
            if write(gate, names, revision, &made).await? {
                return self.learn(names, made);
            }
        }
    }

    fn learn(&self, names: &Names, record: PairRecord) -> Result<Arc<Pair>, Fault> {
        let pair = Arc::new(Pair::new(record)?);
        self.known.write().insert(names.clone(), pair.clone());
        Ok(pair)
    }

    /// Learns all that is kept: messages may be waiting since before.
    pub(super) async fn load(&self, gate: &Tollgate) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let found = gate.records_of(PREFIX, after.as_deref(), PAGE_MAX).await;
            let found = found.map_err(Fault::unavailable)?;
            for (key, record) in &found {
                let names = Names::behind(key.strip_prefix(PREFIX).unwrap_or_default());
                if self.known(&names).is_some_and(|pair| pair.is_lent) {
                    continue;
                }
                let read = serde_json::from_slice(&record.bytes).map_err(Fault::unavailable)?;
                self.learn(&names, read)?;
            }
            after = found.last().map(|(key, _)| key.to_string());
            if found.len() < PAGE_MAX {
                return Ok(());
            }
        }
    }
}

async fn read(gate: &Tollgate, names: &Names) -> Result<(Option<PairRecord>, Revision), Fault> {
    let record = gate.record(&key(names)).await.map_err(Fault::unavailable)?;
    let Some(record) = record else { return Ok((None, Revision(0))) };
    let read = serde_json::from_slice(&record.bytes).map_err(Fault::unavailable)?;
    Ok((Some(read), record.revision))
}

/// Says whether the record was as expected.
async fn write(
    gate: &Tollgate,
    names: &Names,
    expected: Revision,
    record: &PairRecord,
) -> Result<bool, Fault> {
    let bytes = serde_json::to_vec(record).map_err(Fault::unavailable)?;
    let key = Key::new(&key(names)).map_err(Fault::invalid)?;
    match gate.keep(Write { key, expected, bytes: Some(bytes.into()) }).await {
        Ok(_) => Ok(true),
        Err(Error::Act(ActError::RevisionDiffers { .. })) => Ok(false),
        Err(error) => Err(Fault::unavailable(error)),
    }
}

fn key(names: &Names) -> String {
    format!("{PREFIX}{}", names.prefix())
}

fn new_key() -> Result<String, Fault> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(Fault::unavailable)?;
    Ok(format!("{KEY}{}", URL_SAFE_NO_PAD.encode(bytes)))
}
