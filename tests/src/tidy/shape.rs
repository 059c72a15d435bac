//! Which crate may know which, what the core keeps away from, and that every file is part of a crate.

use super::assert_none;
use super::repository::{code, file, files, rust_files};

/// Each crate and those of our crates it may use. What is not listed here has no place yet.
const MAY_USE: [(&str, &[&str]); 6] = [
    ("tollgate-core", &[]),
    ("tollgate-stores", &["tollgate-core"]),
    ("tollgate-engine", &["tollgate-core"]),
    ("tollgate", &["tollgate-core", "tollgate-engine", "tollgate-stores"]),
    ("tollgate-client", &["tollgate-core", "tollgate-engine"]),
    ("tollgate-server", &["tollgate", "tollgate-client"]),
];

/// How Rust code reaches a clock, the outside, a thread or a log.
const EFFECTS: [&str; 12] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "tokio",
    "tracing::",
];

#[test]
fn dependencies_point_one_way() {
    let manifests = files()
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"));
    let faults = manifests.flat_map(|manifest| wrong_dependencies(&manifest.text));
    assert_none(faults, "server uses tollgate, which joins engine and stores; both use core:");
}

#[test]
fn core_reads_no_clock_and_does_no_io() {
    let core = rust_files().filter(|file| file.path.starts_with("crates/core/src/"));
    let faults = core.flat_map(|file| {
        file.lines_where(|line| EFFECTS.iter().any(|effect| code(line).contains(effect)))
    });
    assert_none(faults, "core decides and does nothing else; hand it what it needs:");
}

#[test]
fn no_dead_files() {
    let faults = rust_files()
        .map(|file| file.path.as_str())
        .filter(|path| path.starts_with("crates/") || path.starts_with("tests/"))
        .filter(|path| path.contains("/src/") && !is_root(path) && !is_declared(path))
        .map(str::to_owned);
    assert_none(faults, "no parent declares these as a module; declare or delete them:");
}

fn wrong_dependencies(manifest: &str) -> Vec<String> {
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
    let name = name.unwrap_or_default().trim_matches('"');
    let Some((_, allowed)) = MAY_USE.iter().find(|(user, _)| *user == name) else {
        return vec![format!("{name:?} has no place in MAY_USE of tests/src/tidy/shape.rs")];
    };
    let is_wrong = |used: &&str| used.starts_with("tollgate") && !allowed.contains(used);
    let wrong = dependencies(manifest).into_iter().filter(is_wrong);
    wrong.map(|used| format!("{name} must not use {used}")).collect()
}

/// The names under `[dependencies]`, also those of one target or with a table of their own.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_inside = false;
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end().trim_end_matches(']');
            is_inside = table == "dependencies" || table.ends_with(".dependencies");
            names.extend(table.strip_prefix("dependencies."));
        } else if is_inside && line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            names.extend(line.split(['.', '=', ' ']).next());
        }
    }
    names
}

fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") || path.contains("/src/bin/")
}

fn is_declared(path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let module = name.trim_end_matches(".rs");
    let parents = if folder.ends_with("/src") {
        vec![format!("{folder}/lib.rs"), format!("{folder}/main.rs")]
    } else {
        vec![format!("{folder}.rs")]
    };
    parents.iter().filter_map(|parent| file(parent)).any(|parent| declares(&parent.text, module))
}

fn declares(text: &str, module: &str) -> bool {
    let declaration = format!("mod {module};");
    text.lines().any(|line| code(line).trim_end().ends_with(&declaration))
}

#[test]
fn a_dependency_is_found_in_every_form() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\nc = \"1\"\n\
        # d = \"1\"\n[dev-dependencies]\ne = \"1\"\n[target.'cfg(unix)'.dependencies]\n\
        f = { path = \"f\" }\n[dependencies.g]\nversion = \"1\"\n";
    assert_eq!(dependencies(manifest), ["b", "c", "f", "g"]);
}

#[test]
fn a_crate_may_not_use_one_above_it() {
    let manifest = "name = \"tollgate-engine\"\n[dependencies]\n";
    assert!(wrong_dependencies(&format!("{manifest}tollgate-core.workspace = true")).is_empty());
    assert_eq!(wrong_dependencies(&format!("{manifest}tollgate-stores.workspace = true")).len(), 1);
    assert_eq!(wrong_dependencies("name = \"tollgate-newcomer\"").len(), 1);
}

#[test]
fn every_case_of_the_conformance_suite_is_run() {
    const CASES: &str = "crates/core/src/contract/conformance/";
    let list = rust_files().find(|file| file.path == format!("{CASES}cases.rs"));
    let list = &list.expect("the list of cases").text;
    let cases = rust_files().filter(|file| file.path.starts_with(CASES));
    let names = cases.flat_map(|file| {
        let names = file.text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        names.filter_map(|rest| rest.split('(').next()).map(str::to_owned).collect::<Vec<_>>()
    });
    let is_listed =
        |name: &String| list.lines().any(|line| line.trim().trim_end_matches([',', ';']) == *name);
    assert_none(names.filter(|name| !is_listed(name)), "list these in cases.rs:");
}
