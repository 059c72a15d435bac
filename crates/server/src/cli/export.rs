//! `tollgate store export` and `tollgate store import`: a data folder as lines of JSON, and back.

use super::store::{described, sound};
use super::{Exit, ExportArguments, ImportArguments, output};
use anyhow::Context;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate::embedded::{
    self, CheckError, Checked, Disk, ExportError, FolderError, ImportError, RealDisk,
};

/// Behind the name of a file that is not whole.
const PARTIAL: &str = ".partial";

pub(super) fn export(arguments: &ExportArguments) -> anyhow::Result<Exit> {
    let ExportArguments { folder, output, json } = arguments;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::existing(folder)?);
    let exported = match output {
        None => embedded::export(&disk, &mut output::lines()),
        Some(file) if file.exists() => {
            let reason = format!("{} is there already: give another name", file.display());
            return Ok(refused(*json, reason));
        }
        Some(file) => {
            let failed = || format!("the file {} cannot be written", file.display());
            return match to_file(&disk, file).with_context(failed)? {
                Ok(exported) => {
                    let value = done(&exported.checked, exported.lines);
                    let text = format!("{}: {} lines", file.display(), exported.lines);
                    output::outcome(json.then_some(&value), &[text]);
                    Ok(Exit::Done)
                }
                Err(error) => Ok(refused(*json, format!("{}: {error}", folder.display()))),
            };
        }
    };
    match exported {
        Ok(_) => Ok(Exit::Done),
        Err(ExportError::Unsound(damaged @ CheckError::Damaged { .. })) => {
            // Not among the lines.
            output::progress(format_args!("{}: {damaged}", folder.display()));
            Ok(Exit::Refused)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a file that has its name once it is whole; the inner error is damage of the folder.
fn to_file(
    disk: &Arc<dyn Disk>,
    file: &Path,
) -> anyhow::Result<Result<embedded::Exported, CheckError>> {
    let mut partial = file.to_owned().into_os_string();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    let exported = write(disk, &partial);
    if let Ok(Ok(_)) = &exported {
        fs::rename(&partial, file)?;
    } else {
        // What is left of it has another name.
        let _ = fs::remove_file(&partial);
    }
    exported
}

fn write(
    disk: &Arc<dyn Disk>,
    partial: &Path,
) -> anyhow::Result<Result<embedded::Exported, CheckError>> {
    let file = File::create(partial)?;
    match embedded::export(disk, &mut BufWriter::new(&file)) {
        Ok(exported) => {
            file.sync_all()?;
            Ok(Ok(exported))
        }
        Err(ExportError::Unsound(damaged @ CheckError::Damaged { .. })) => Ok(Err(damaged)),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<Exit> {
    let ImportArguments { file, folder, json } = arguments;
    let imported = if file.as_os_str() == "-" {
        embedded::import(io::stdin().lock(), folder)
    } else {
        let opened = File::open(file);
        let opened = opened.with_context(|| format!("{} cannot be read", file.display()))?;
        embedded::import(BufReader::new(opened), folder)
    };
    match imported {
        Ok(imported) => {
            let mut text = described(folder, &imported.checked);
            text.push(format!("imported: {} lines", imported.lines));
            let value = done(&imported.checked, imported.lines);
            output::outcome(json.then_some(&value), &text);
            Ok(Exit::Done)
        }
        Err(ImportError::Line { line, found }) => {
            let reason = format!("{}, line {line}: {found}", file.display());
            Ok(refused(*json, reason))
        }
        Err(error @ ImportError::Folder(FolderError::Taken { .. } | FolderError::InUse { .. })) => {
            Ok(refused(*json, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

fn done(checked: &Checked, lines: u64) -> Value {
    let mut value = sound(checked);
    value["is_done"] = true.into();
    value["lines"] = lines.into();
    value
}

fn refused(json: bool, reason: String) -> Exit {
    let value = json!({ "is_done": false, "reason": &reason });
    output::outcome(json.then_some(&value), &[reason]);
    Exit::Refused
}
