//! `tollgate store check`: whether a data folder is sound.

use super::{CheckArguments, Exit, output};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tollgate::embedded::{
    CheckError, Checked, CheckedHistory, DamagedHistory, Disk, RealDisk, check as check_disk,
};

pub(super) fn check(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let folder = &arguments.folder;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::existing(folder)?);
    let (exit, value, text) = match check_disk(&disk) {
        Ok(checked) => (Exit::Done, sound(&checked), described(folder, &checked)),
        Err(damaged @ CheckError::Damaged { .. }) => {
            let text = format!("{}: {damaged}", folder.display());
            (Exit::Refused, damage(&damaged), vec![text, "restore it from a copy".to_owned()])
        }
        Err(error) => return Err(error.into()),
    };
    output::outcome(arguments.json.then_some(&value), &text);
    Ok(exit)
}

/// What a sound folder holds, in lines.
pub(super) fn described(folder: &Path, checked: &Checked) -> Vec<String> {
    let Checked { journal, checkpoint, waiting, in_flight, queues, limits, records, .. } = checked;
    let dead = checked.dead;
    let CheckedHistory { segments, events, bytes, damaged } = &checked.history;
    let mut lines = vec![
        format!("{} is sound", folder.display()),
        format!(
            "journal: {} segments, {} records, {} bytes",
            journal.segments, journal.records, journal.bytes
        ),
    ];
    lines.push(match checkpoint {
        None => "checkpoint: none".to_owned(),
        Some(it) => {
            let before = it.before.as_u32();
            format!(
                "checkpoint: of all before segment {before}, {} records, {} bytes",
                it.records, it.bytes
            )
        }
    });
    if let Some(torn) = &journal.torn {
        lines.push(format!(
            "torn tail: {} bytes at offset {} of {}, a commit that a crash interrupted and nobody was answered; the next start cuts it off",
            torn.bytes, torn.offset, torn.file
        ));
    }
    lines.push(format!("calls: {waiting} waiting, {in_flight} in flight, {dead} dead"));
    lines.push(format!("{queues} queues, {limits} limits, {records} records"));
    lines.push(format!("history: {segments} segments, {events} events, {bytes} bytes"));
    for DamagedHistory { file, found } in damaged {
        lines.push(format!("history, on which no call hangs: {file}: {found}"));
    }
    lines
}

/// What a sound folder holds, in JSON.
pub(super) fn sound(checked: &Checked) -> Value {
    let Checked { journal, checkpoint, waiting, in_flight, queues, limits, records, .. } = checked;
    let dead = checked.dead;
    let checkpoint = checkpoint.map(|it| {
        json!({ "before_segment": it.before.as_u32(), "records": it.records, "bytes": it.bytes })
    });
    let CheckedHistory { segments, events, bytes, damaged } = &checked.history;
    let damaged: Vec<_> =
        damaged.iter().map(|it| json!({ "file": it.file, "found": it.found })).collect();
    let torn = journal
        .torn
        .as_ref()
        .map(|torn| json!({ "file": torn.file, "offset": torn.offset, "bytes": torn.bytes }));
    json!({
        "is_sound": true,
        "journal": {
            "segments": journal.segments,
            "records": journal.records,
            "bytes": journal.bytes,
            "torn_tail": torn,
        },
        "checkpoint": checkpoint,
        "calls": { "waiting": waiting, "in_flight": in_flight, "dead": dead },
        "queues": queues,
        "limits": limits,
        "records": records,
        "history": {
            "segments": segments,
            "events": events,
            "bytes": bytes,
            "damaged": damaged,
        },
    })
}

/// What is wrong with a folder, in JSON.
pub(super) fn damage(error: &CheckError) -> Value {
    match error {
        CheckError::Damaged { file, offset, found } => {
            json!({ "is_sound": false, "file": file, "offset": offset, "found": found })
        }
        error => json!({ "is_sound": false, "found": error.to_string() }),
    }
}
