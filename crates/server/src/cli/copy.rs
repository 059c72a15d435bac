//! `tollgate store copy`: a data folder into a database that servers share.

use super::store::{described, sound};
use super::{CopyArguments, Environment, Exit, output};
use anyhow::{Context, ensure};
use serde_json::json;
use std::ffi::OsStr;
use std::sync::Arc;
use tollgate::embedded::{CheckError, Disk, ExportError, RealDisk};
use tollgate::store::{DatabaseSettings, MoveError, copy_folder};

pub(super) fn copy(arguments: &CopyArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let CopyArguments { folder, url, prefix, json } = arguments;
    ensure!(url.keeps_calls(), "{url} is no database that keeps calls: name one as postgres://…");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::existing(folder)?);
    let mut settings = DatabaseSettings::default();
    // As a server has it.
    let named = prefix.as_deref().or_else(|| environment.get("PREFIX").and_then(OsStr::to_str));
    settings.schema = named.map_or(settings.schema, str::to_owned);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(copy_folder(disk, url.revealed(), &settings)) {
        Ok(checked) => {
            let mut text = described(folder, &checked);
            text.push(format!("copied to {url}, schema {}", settings.schema));
            let mut value = sound(&checked);
            value["is_done"] = true.into();
            value["schema"] = settings.schema.into();
            output::outcome(json.then_some(&value), &text);
            Ok(Exit::Done)
        }
        Err(
            error @ (MoveError::InUse { .. }
            | MoveError::Folder(ExportError::Unsound(CheckError::Damaged { .. }))),
        ) => {
            let reason = format!("{}: {error}", folder.display());
            let value = json!({ "is_done": false, "reason": &reason });
            output::outcome(json.then_some(&value), &[reason]);
            Ok(Exit::Refused)
        }
        Err(error) => {
            Err(error).with_context(|| format!("{} was not copied to {url}", folder.display()))
        }
    }
}
