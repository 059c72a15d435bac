//! What the documents promise: the glossary, the invariants with their tests, the changelog's form.

use std::collections::HashSet;

use super::assert_none;
use super::repository::{code, document, rust_files, words};

/// The words of the product, one for each idea.
const GLOSSARY: [&str; 17] = [
    "limit",
    "meter",
    "partition",
    "toll",
    "call",
    "attempt",
    "queue",
    "lane",
    "gate",
    "lease",
    "receipt",
    "act",
    "machine",
    "step",
    "run",
    "workflow",
    "task",
];

/// What a change can be to its users.
const CHANGES: [&str; 4] = ["### Added", "### Changed", "### Fixed", "### Removed"];

#[test]
fn the_glossary_is_used() {
    let glossary = section(document("ARCHITECTURE.md"), "glossary");
    let defined: HashSet<&str> = between(&glossary, "**").flat_map(words).collect();
    let faults = GLOSSARY.iter().filter(|word| !defined.contains(*word));
    assert_none(
        faults.map(|word| format!("**{word}**")),
        "the glossary in ARCHITECTURE.md defines each of these, in bold:",
    );
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let invariants = section(document("ARCHITECTURE.md"), "invariant");
    let rows: Vec<&str> = table_rows(&invariants).collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no table of invariants");
    let functions = function_names();
    assert_none(
        rows.into_iter().filter(|row| !is_held(row, &functions)).map(str::to_owned),
        "the last column names, in backticks, tests that exist:",
    );
}

#[test]
fn every_guarantee_names_a_test_that_exists() {
    let page = document("docs/guarantees.md");
    let tables = page.split("\n\n").filter(|part| part.starts_with('|'));
    let rows: Vec<&str> = tables.flat_map(table_rows).collect();
    assert!(rows.len() > 20, "docs/guarantees.md promises little: {rows:?}");
    let functions = function_names();
    assert_none(
        rows.into_iter().filter(|row| !is_held(row, &functions)).map(str::to_owned),
        "the last column names, in backticks, tests that exist:",
    );
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_exists() {
    let metrics = document("docs/metrics.md");
    let pages = ["deploy/grafana/dashboards/tollgate.json", "deploy/alerts.yaml"];
    let mut named: Vec<&str> = pages.into_iter().flat_map(|page| words(document(page))).collect();
    named.retain(|word| word.starts_with("tollgate_"));
    assert!(named.len() > 20, "the dashboard shows little: {named:?}");
    let parts = ["_bucket", "_sum", "_count"];
    let exists = |name: &str| metrics.contains(&format!("| `{name}` |"));
    let is_part = |name: &str| parts.iter().any(|part| name.strip_suffix(part).is_some_and(exists));
    let faults = named.into_iter().filter(|name| !exists(name) && !is_part(name));
    assert_none(faults.map(str::to_owned), "docs/metrics.md has none of these:");
}

#[test]
fn every_alert_says_for_how_long_how_grave_and_what_to_do_first() {
    let mut names = HashSet::new();
    let alerts: Vec<&str> = document("deploy/alerts.yaml").split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 5, "few alerts: {alerts:?}");
    let wanted = ["expr: ", "for: ", "severity: ", "summary: ", "runbook: "];
    let faults = alerts.iter().filter_map(|alert| {
        let name = alert.lines().next().unwrap_or_default();
        let lacking: Vec<_> = wanted.iter().filter(|part| !alert.contains(**part)).collect();
        let is_well = lacking.is_empty() && names.insert(name);
        (!is_well).then(|| format!("{name}: {lacking:?}"))
    });
    assert_none(faults, "each has a name of its own and says all of it:");
}

#[test]
fn the_dashboard_is_read_and_each_panel_asks_something() {
    let text = document("deploy/grafana/dashboards/tollgate.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = HashSet::new();
    let faults = panels.iter().filter(|panel| {
        let asks = panel["targets"].as_array().is_some_and(|targets| !targets.is_empty());
        !asks || !ids.insert(panel["id"].as_u64())
    });
    assert_none(faults.map(|panel| panel["title"].to_string()), "no id of its own, or no target:");
}

#[test]
fn the_changelog_keeps_its_form() {
    let headings = document("CHANGELOG.md").lines().filter(|line| line.starts_with('#'));
    let headings: Vec<&str> = headings.collect();
    assert_eq!(headings.get(..2), Some(&["# Changelog", "## Unreleased"][..]));
    let faults = headings[2..]
        .iter()
        .filter(|heading| !heading.starts_with("## ") && !CHANGES.contains(heading));
    assert_none(
        faults.map(|heading| heading.to_string()),
        "below a release stand only Added, Changed, Fixed and Removed:",
    );
}

/// The part below the heading that has `word` in it, up to the next heading that is not below it.
fn section(document: &str, word: &str) -> String {
    let depth = |line: &str| line.chars().take_while(|c| *c == '#').count();
    let mut lines = document.lines();
    let heading = lines
        .find(|line| depth(line) > 0 && line.to_lowercase().contains(word))
        .unwrap_or_else(|| panic!("no heading has the word {word:?} in it"));
    let is_below = |line: &&str| depth(line) == 0 || depth(line) > depth(heading);
    lines.take_while(is_below).collect::<Vec<_>>().join("\n")
}

/// The pieces of `text` that stand between two marks, such as `**bold**`.
fn between<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark).skip(1).step_by(2)
}

/// The rows of the tables in `text`, without head and rule.
fn table_rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with('|')).skip(2)
}

/// Whether the last cell of `row` names a test, and each that it names exists.
fn is_held(row: &str, functions: &HashSet<&str>) -> bool {
    let cell = row.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
    let mut tests = between(cell, "`").peekable();
    tests.peek().is_some()
        && tests.all(|test| functions.contains(test.rsplit("::").next().unwrap_or(test)))
}

/// The name of every function in the repository.
fn function_names() -> HashSet<&'static str> {
    let lines = rust_files().flat_map(|file| file.text.lines());
    lines.filter_map(|line| words(code(line)).skip_while(|word| *word != "fn").nth(1)).collect()
}

#[test]
fn a_section_ends_at_the_next_heading_of_its_depth() {
    let document = "# A\n## The glossary\none\n### More\ntwo\n## Invariants\nthree\n";
    assert_eq!(section(document, "glossary"), "one\n### More\ntwo");
}

#[test]
fn an_invariant_without_a_test_does_not_hold() {
    let functions = HashSet::from(["never_over", "never_early"]);
    assert!(is_held("| a `word` | `never_over`, `gate::never_early` |", &functions));
    assert!(!is_held("| a | `never_over`, `never_written` |", &functions));
    assert!(!is_held("| a `never_over` | |", &functions));
}
