//! A limit as it stands, with its history, and pages of limits.

use super::instant::InstantWire;
use super::limit::DefinitionWire;
use super::totals::LimitTotalsWire;
use serde::Serialize;
use tollgate::{Change, Limit, LimitState};

/// Most overrides that are shown with a limit: there may be one for each of a million tenants.
const OVERRIDES_SHOWN_MAX: usize = 1000;

/// A limit with all that is known of it.
#[derive(Debug, Serialize)]
pub(in crate::http) struct LimitStateWire {
    name: String,
    definition: DefinitionWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<DefinitionWire>,
    overrides: Vec<OverrideWire>,
    overrides_count: usize,
    history: Vec<ChangeWire>,
    /// An operator holds it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    /// What happened at its meters since the server started; left out in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<LimitTotalsWire>,
}

#[derive(Debug, Serialize)]
struct OverrideWire {
    partition: String,
    definition: DefinitionWire,
}

#[derive(Debug, Serialize)]
struct ChangeWire {
    at: InstantWire,
    who: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<DefinitionWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<DefinitionWire>,
}

/// Some limits, each without what may be long.
#[derive(Debug, Serialize)]
pub(in crate::http) struct LimitPageWire {
    pub(in crate::http) limits: Vec<LimitLineWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// A limit in a list.
#[derive(Debug, Serialize)]
pub(in crate::http) struct LimitLineWire {
    pub(in crate::http) name: String,
    definition: DefinitionWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<DefinitionWire>,
}

/// What `DELETE` answers.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RemovedWire {
    pub(in crate::http) removed: bool,
}

impl LimitStateWire {
    /// A limit under the name that the caller gives it.
    pub(in crate::http) fn new(name: &str, state: &LimitState) -> Self {
        let LimitLineWire { name, definition, pinned } = LimitLineWire::new(name, state);
        let shown = state.overrides.iter().take(OVERRIDES_SHOWN_MAX);
        let overrides = shown.map(|(partition, limit)| OverrideWire {
            partition: partition.clone(),
            definition: limit.into(),
        });
        Self {
            name,
            definition,
            pinned,
            overrides: overrides.collect(),
            overrides_count: state.overrides.len(),
            history: state.history.iter().map(ChangeWire::from).collect(),
            paused: state.is_paused,
            totals: state.totals.map(LimitTotalsWire::from),
        }
    }
}

impl LimitLineWire {
    /// A limit under the name that the caller gives it.
    pub(in crate::http) fn new(name: &str, state: &LimitState) -> Self {
        Self {
            name: name.to_owned(),
            definition: (&state.defined).into(),
            pinned: shown(state.pinned.as_ref()),
        }
    }
}

impl From<&Change> for ChangeWire {
    fn from(change: &Change) -> Self {
        Self {
            at: InstantWire(change.at),
            who: change.who.clone(),
            before: shown(change.before.as_ref()),
            after: shown(change.after.as_ref()),
        }
    }
}

fn shown(limit: Option<&Limit>) -> Option<DefinitionWire> {
    limit.map(DefinitionWire::from)
}
