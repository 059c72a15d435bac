//! `/v1/audit`: who changed which limit or queue, when, and what was before.

use super::Shared;
use super::body::Json;
use super::caller::Caller;
use super::path::{Filter, Listing};
use super::problem::{Problem, kinds};
use super::wire::audit::{AuditPageWire, AuditedWire, KINDS};
use axum::extract::State;
use serde::Deserialize;

/// How many are read at a time: more than a page, for some may not be those that are asked for.
const READ: usize = 1000;

/// Which changes are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditFilter {
    name: Option<String>,
    kind: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

impl Filter for AuditFilter {
    const FIELDS: &'static str = "`name`, `kind`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    Listing(filter, most): Listing<AuditFilter>,
) -> Result<Json<AuditPageWire>, Problem> {
    let mut before = filter.after.as_deref().map(number).transpose()?;
    let kinds = filter.kind.as_deref().map(known_kinds).transpose()?;
    let name = filter.name.as_deref().map(|name| caller.inner(name));
    let (mut changes, mut last) = (Vec::new(), None);
    // It ends with the log, which is no longer than ten such looks.
    loop {
        let found = app.gate.audit(before, READ).await?;
        for audited in &found {
            if name.as_deref().is_some_and(|name| audited.what.name() != name) {
                continue;
            }
            let Some(change) = AuditedWire::new(audited, &caller) else { continue };
            if kinds.as_ref().is_some_and(|kinds| !kinds.contains(&change.kind())) {
                continue;
            }
            if changes.len() == most {
                return Ok(Json(AuditPageWire { changes, next: last }));
            }
            changes.push(change);
            last = Some(audited.number.to_string());
        }
        let Some(oldest) = found.last() else {
            return Ok(Json(AuditPageWire { changes, next: None }));
        };
        before = Some(oldest.number);
    }
}

/// Kinds, separated by commas.
fn known_kinds(text: &str) -> Result<Vec<&str>, Problem> {
    let kinds: Vec<_> = text.split(',').collect();
    match kinds.iter().find(|kind| !KINDS.contains(kind)) {
        None => Ok(kinds),
        Some(unknown) => {
            let unknown: String = unknown.chars().take(128).collect();
            let detail = format!(
                "`kind` is some of {}, separated by commas, and not {unknown:?}",
                KINDS.join(", ")
            );
            Err(Problem::new(kinds::INVALID_QUERY, detail))
        }
    }
}

fn number(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| {
        let detail = "`after` is what an answer had as `next`: send it as it was";
        Problem::new(kinds::INVALID_QUERY, detail)
    })
}
