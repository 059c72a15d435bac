//! The rules of the house that no linter knows: each test is one rule.

mod documents;
mod files;
mod repository;
mod shape;

/// Fails with the rule and, below it, every place that breaks it.
#[track_caller]
fn assert_none(faults: impl IntoIterator<Item = String>, rule: &str) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{rule}\n  {}\n", faults.join("\n  "));
}
