//! `tollgate backup` and `tollgate restore`: a data folder is copied, while a server uses it and back.

use super::store::{damage, described, sound};
use super::{BackupArguments, Exit, RestoreArguments, descriptors, output};
use serde_json::json;
use std::path::Path;
use tollgate::embedded::{self, CheckError, Copied, CopyError, FolderError};
use tollgate::{Clock, Span, SystemClock};

pub(super) fn backup(arguments: &BackupArguments) -> anyhow::Result<Exit> {
    let BackupArguments { folder, target, json } = arguments;
    told(target, *json, || embedded::backup(folder, target))
}

pub(super) fn restore(arguments: &RestoreArguments) -> anyhow::Result<Exit> {
    let RestoreArguments { backup, folder, json } = arguments;
    told(folder, *json, || embedded::restore(backup, folder))
}

/// Copies, and says what came of it.
fn told(
    target: &Path,
    json: bool,
    copy: impl FnOnce() -> Result<Copied, CopyError>,
) -> anyhow::Result<Exit> {
    // A large folder has more files than a process may commonly have open.
    descriptors::raise_limit();
    let clock = SystemClock::new();
    let begun = clock.now();
    let copied = copy();
    let took = clock.now().since(begun);
    let (exit, value, text) = match copied {
        Ok(copied) => (Exit::Done, done(&copied, took), lines(target, &copied, took)),
        Err(error) if is_refusal(&error) => {
            let mut value = match &error {
                CopyError::Unsound(unsound) => damage(unsound),
                _ => json!({}),
            };
            value["is_done"] = false.into();
            value["reason"] = error.to_string().into();
            (Exit::Refused, value, vec![error.to_string()])
        }
        Err(error) => return Err(error.into()),
    };
    output::outcome(json.then_some(&value), &text);
    Ok(exit)
}

/// Whether what is there stands in the way, and not what the system could not do.
fn is_refusal(error: &CopyError) -> bool {
    matches!(
        error,
        CopyError::Unsound(CheckError::Damaged { .. })
            | CopyError::Folder(FolderError::Taken { .. } | FolderError::InUse { .. })
    )
}

fn lines(target: &Path, copied: &Copied, took: Span) -> Vec<String> {
    let Copied { checked, files, bytes } = copied;
    let mut lines = described(target, checked);
    let took = Span::from_millis(took.as_millis_ceil());
    lines.push(format!("copied: {files} files, {bytes} bytes, in {took}"));
    lines
}

fn done(copied: &Copied, took: Span) -> serde_json::Value {
    let Copied { checked, files, bytes } = copied;
    let mut value = sound(checked);
    value["is_done"] = true.into();
    value["files"] = (*files).into();
    value["bytes"] = (*bytes).into();
    value["took_ms"] = took.as_millis_ceil().into();
    value
}
