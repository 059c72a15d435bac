//! What every file looks like: first line, length, names, and what has no place in it.

use super::assert_none;
use super::repository::{File, code, console_files, files, rust_files, words};

/// A file this long has two subjects.
const LINES_MAX: usize = 500;

/// File names that say nothing about what is inside.
const EMPTY_FILE_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "misc", "mod", "types", "util", "utils"];

/// Endings of type names that say nothing about the type.
const EMPTY_ENDINGS: [&str; 7] = ["Manager", "Helper", "Helpers", "Util", "Utils", "Info", "Impl"];

// The words below are put together from parts, so that this file does not break its own rules.

/// Words that put work off.
const LATER_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Code that puts work off.
const LATER_CODE: [&str; 3] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];

/// How Rust code sleeps.
const SLEEPS: [&str; 2] = [concat!("thread::", "sleep"), concat!("time::", "sleep")];

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// Functions that a trait of others' names, which we implement.
const FOREIGN_NAMES: [&str; 1] = ["fn get_db("];

#[test]
fn every_file_says_what_it_is_for() {
    let silent = rust_files().filter(|file| !file.text.starts_with("//! "));
    assert_none(paths(silent), "the first line says what the file is for, after `//!`:");
}

#[test]
fn every_file_of_the_console_says_what_it_is_for() {
    let silent = console_files().filter(|file| {
        let first = file.text.lines().next().unwrap_or_default();
        !first.starts_with("// ") && !first.starts_with("/* ")
    });
    assert_none(paths(silent), "the first line says what the file is for, after `//` or `/*`:");
}

#[test]
fn no_file_is_long() {
    let all = rust_files().chain(console_files());
    let long = all.filter(|file| file.text.lines().count() > LINES_MAX);
    assert_none(paths(long), &format!("split these by subject, they pass {LINES_MAX} lines:"));
}

#[test]
fn no_module_is_called_utils() {
    let unnamed = rust_files().chain(console_files()).filter(|file| {
        let stem = file.path.rsplit('/').next().and_then(|name| name.split('.').next());
        stem.is_some_and(|stem| EMPTY_FILE_NAMES.contains(&stem))
    });
    assert_none(paths(unnamed), "name these after their subject:");
}

#[test]
fn no_name_is_an_empty_word() {
    let crates = rust_files().filter(|file| file.path.starts_with("crates/"));
    let faults = crates.flat_map(|file| {
        file.lines_where(|line| {
            let is_own = !FOREIGN_NAMES.iter().any(|name| line.contains(name));
            has_empty_type_name(code(line)) || code(line).contains("fn get_") && is_own
        })
    });
    assert_none(faults, "say what it is; no `get_`, Manager, Helper, Util, Info, Impl:");
}

#[test]
fn nothing_is_left_for_later() {
    let faults = rust_files().chain(console_files()).flat_map(|file| {
        file.lines_where(|line| {
            words(line).any(|word| LATER_WORDS.contains(&word))
                || LATER_CODE.iter().any(|later| line.contains(later))
        })
    });
    assert_none(faults, "do it now, or write it into the tracker:");
}

#[test]
fn tests_do_not_sleep() {
    let faults = rust_files().filter(|file| !may_sleep(&file.path)).flat_map(|file| {
        let lines = file.lines_where(|line| SLEEPS.iter().any(|sleep| code(line).contains(sleep)));
        let imports = imports(&file.text).into_iter().filter(|import| brings_sleep(import));
        lines.into_iter().chain(imports.map(|import| format!("{}: {import}", file.path)))
    });
    assert_none(faults, "move a manual clock or wait for the event; only the clock may sleep:");
}

#[test]
fn no_word_of_a_machine() {
    let faults = files().iter().flat_map(|file| file.lines_where(names_a_machine_folder));
    assert_none(faults, "this path exists on one machine only:");
}

fn paths<'a>(files: impl Iterator<Item = &'a File>) -> impl Iterator<Item = String> {
    files.map(|file| file.path.clone())
}

/// The imports of a file, each on one line.
fn imports(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(code).collect();
    let statements = code.join(" ");
    let statements = statements.split(';').filter_map(|statement| {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let begins = words.iter().rposition(|word| *word == "use")?;
        Some(words[begins..].join(" "))
    });
    statements.collect()
}

/// Whether an import, grouped or renamed or of everything, lets a file sleep without saying so where it does.
fn brings_sleep(import: &str) -> bool {
    let is_clock = words(import).any(|word| ["thread", "time"].contains(&word));
    let is_sleep = words(import).any(|word| word.starts_with(concat!("sl", "eep")));
    is_clock && (is_sleep || import.contains("time::*") || import.contains("thread::*"))
}

fn may_sleep(path: &str) -> bool {
    let clocks = [
        "crates/engine/src/clock",
        "crates/client/src/clock.rs",
        "crates/server/src/clock.rs",
        "crates/stores/src/shared/clock.rs",
    ];
    path.starts_with("bench/") || clocks.iter().any(|clock| path.starts_with(clock))
}

fn has_empty_type_name(line: &str) -> bool {
    let mut words = words(line);
    let keyword = words.find(|word| ["struct", "enum", "trait", "type"].contains(word));
    let name = keyword.and_then(|_| words.next()).unwrap_or_default();
    EMPTY_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a path begins with one of the folders; in the middle of a path or URL they are harmless.
fn names_a_machine_folder(line: &str) -> bool {
    let goes_on = |before: &str| {
        before.ends_with(|last: char| last.is_alphanumeric() || "_-.~})]*".contains(last))
    };
    MACHINE_FOLDERS
        .iter()
        .flat_map(|folder| line.match_indices(folder))
        .any(|(start, _)| !goes_on(&line[..start]))
}

#[test]
fn an_import_that_brings_sleep_is_found_however_it_is_written() {
    let nap = concat!("sl", "eep");
    let found = |text: &str| imports(text).iter().any(|import| brings_sleep(import));
    for text in [
        format!("use tokio::time::{{Duration, {nap}}};"),
        format!(
            "use a::b;\nuse tokio::{{\n    net::TcpStream,\n    time::{{{nap}_until, Instant}},\n}};"
        ),
        format!("pub(crate) use std::thread::{{self, {nap} as rest}};"),
        "use tokio::time::*;".to_owned(),
    ] {
        assert!(found(&text), "{text}");
    }
    for text in [
        "use tokio::time::{Duration, timeout};".to_owned(),
        format!("use tokio::time;\npulse.{nap}(AGAIN).await;"),
        format!("// use tokio::time::{{{nap}}};"),
    ] {
        assert!(!found(&text), "{text}");
    }
}

#[test]
fn an_empty_type_name_is_found_behind_its_keyword() {
    assert!(has_empty_type_name("pub(crate) struct LaneManager<T> {"));
    assert!(has_empty_type_name("pub type Info = u8;"));
    assert!(!has_empty_type_name("pub struct Lanes { manager: LaneManager }"));
}

#[test]
fn a_machine_folder_counts_only_where_a_path_begins() {
    for folder in MACHINE_FOLDERS {
        assert!(names_a_machine_folder(&format!("{folder}x")));
        assert!(names_a_machine_folder(&format!("see `{folder}x`")));
        assert!(names_a_machine_folder(&format!("file://{folder}x")));
        assert!(!names_a_machine_folder(&format!("https://example.com{folder}x")));
        assert!(!names_a_machine_folder(&format!(".{folder}x")));
    }
}
