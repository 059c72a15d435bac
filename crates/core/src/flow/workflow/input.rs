//! What tasks get and runs give, put together from what tasks gave.

use super::input_path::InputPath;
use super::task_error::TaskError;
use super::{ITEMS_MAX, Node, TaskState};
use crate::lanes::act::BODY_BYTES_MAX;
use crate::lanes::path::{Found, read};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a task that maps over nothing gave.
const EMPTY_LIST: &[u8] = b"[]";
/// What nothing is in JSON.
const NULL: &str = "null";

/// The list of what the items of a map gave, in their order. What gave no bytes gave null.
pub fn list_of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut list = vec![b'['];
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            list.push(b',');
        }
        list.extend_from_slice(if item.is_empty() { NULL.as_bytes() } else { item });
    }
    list.push(b']');
    list
}

/// What was read of a task that is done: a map over an empty list has nothing that could be read.
pub(super) fn output_of<'r>(
    state: TaskState,
    read: impl FnOnce() -> Option<&'r [u8]>,
) -> Option<&'r [u8]> {
    if state.items() == Some(0) { Some(EMPTY_LIST) } else { read() }
}

/// An object of what tasks gave, by their names; or the name of one that gave no JSON.
pub(super) fn object_of<'n>(parts: &[(&'n str, &[u8])]) -> Result<Vec<u8>, &'n str> {
    let mut object = vec![b'{'];
    for (number, (name, output)) in parts.iter().enumerate() {
        if number > 0 {
            object.push(b',');
        }
        let value = if output.is_empty() { Ok(NULL) } else { json_in(output) };
        let key = serde_json::to_vec(name).map_err(|_| *name)?;
        object.extend_from_slice(&key);
        object.push(b':');
        object.extend_from_slice(value.map_err(|_| *name)?.as_bytes());
    }
    object.push(b'}');
    Ok(object)
}

fn json_in(bytes: &[u8]) -> serde_json::Result<&str> {
    serde_json::from_slice::<&RawValue>(bytes).map(RawValue::get)
}

/// What comes of a task, by its input.
pub(super) enum Prepared<'r> {
    /// Its condition is false.
    Skipped,
    One(Cow<'r, [u8]>),
    Items(Vec<Cow<'r, [u8]>>),
}

/// Asks a task's condition and takes the list apart that it maps over.
pub(super) fn prepare<'r>(
    task: &str,
    node: &Node,
    input: Cow<'r, [u8]>,
) -> Result<Prepared<'r>, TaskError> {
    if input.len() > BODY_BYTES_MAX {
        return Err(TaskError::InputTooLong { task: task.to_owned(), bytes: input.len() });
    }
    match input {
        Cow::Borrowed(bytes) => Ok(match judge(task, node, bytes)? {
            Judged::Skipped => Prepared::Skipped,
            Judged::Whole => Prepared::One(bytes.into()),
            Judged::Items(items) => {
                Prepared::Items(items.iter().map(|item| item.get().as_bytes().into()).collect())
            }
        }),
        Cow::Owned(bytes) => {
            let items: Vec<_> = match judge(task, node, &bytes)? {
                Judged::Skipped => return Ok(Prepared::Skipped),
                Judged::Whole => return Ok(Prepared::One(bytes.into())),
                Judged::Items(items) => {
                    items.iter().map(|item| item.get().as_bytes().to_vec().into()).collect()
                }
            };
            Ok(Prepared::Items(items))
        }
    }
}

/// What an input says about a task.
enum Judged<'i> {
    Skipped,
    Whole,
    Items(Vec<&'i RawValue>),
}

fn judge<'i>(task: &str, node: &Node, input: &'i [u8]) -> Result<Judged<'i>, TaskError> {
    let when = node.when.as_ref().map(|when| when.path.in_body());
    let paths: Vec<_> = when.into_iter().chain(node.map.as_ref().map(InputPath::in_body)).collect();
    if paths.is_empty() {
        return Ok(Judged::Whole);
    }
    let found =
        read(input, &paths).map_err(|_| TaskError::InputNotJson { task: task.to_owned() })?;
    if let (Some(condition), Some(found)) = (&node.when, found.first())
        && !condition.holds(found)
    {
        return Ok(Judged::Skipped);
    }
    match (&node.map, found.last()) {
        (Some(path), Some(found)) => items_in(task, path, found).map(Judged::Items),
        _ => Ok(Judged::Whole),
    }
}

fn items_in<'i>(
    task: &str,
    path: &InputPath,
    found: &Found<'i>,
) -> Result<Vec<&'i RawValue>, TaskError> {
    let no_list = || TaskError::NoList {
        task: task.to_owned(),
        path: path.clone(),
        found: found.to_string(),
    };
    let Found::List(list) = *found else { return Err(no_list()) };
    // Counted before they are kept: a list of nothings takes no memory.
    let nothings: Vec<IgnoredAny> = serde_json::from_str(list).map_err(|_| no_list())?;
    let items = nothings.len();
    if items > ITEMS_MAX {
        let (task, path) = (task.to_owned(), path.clone());
        return Err(TaskError::TooManyItems { task, path, items });
    }
    serde_json::from_str(list).map_err(|_| no_list())
}
