//! `/v1/audit`: who changed which limit or queue, when, and what was before.

use super::Shared;
use super::body::Json;
use super::caller::Caller;
use super::path::Page;
use super::problem::{Problem, kinds};
use super::wire::audit::{AuditPageWire, AuditedWire};
use axum::extract::State;

/// How many are read at a time: more than a page, for some may not be the caller's.
const READ: usize = 1000;

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    page: Page,
) -> Result<Json<AuditPageWire>, Problem> {
    let mut before = page.after.as_deref().map(number).transpose()?;
    let (mut changes, mut last) = (Vec::new(), None);
    loop {
        let found = app.gate.audit(before, READ).await?;
        for audited in &found {
            let Some(change) = AuditedWire::new(audited, &caller) else { continue };
            if changes.len() == page.limit {
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

fn number(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| {
        let detail = "`after` is what an answer had as `next`: send it as it was";
        Problem::new(kinds::INVALID_QUERY, detail)
    })
}
