//! Every snippet of the book runs: each page against a fresh server of its own, from top to bottom, as a
//! reader would.
//!
//! Commands go to bash with the address of that server in place of the one on the page. An answer that
//! stands right below its commands is compared with what came; what differs each time (instants,
//! waits, leases) may. Rust is compiled by the doctests of the façade, and here it is seen that no page
//! is left out there.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::panic, reason = "a test that cannot go on fails, and says why")]

mod answer;
mod database;
mod page;
mod reader;
mod text;

use page::{Block, Page};
use reader::Reader;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages whose snippets are run by somebody else.
const ELSEWHERE: [(&str, &str); 2] = [
    ("docs/backups.md", "run by `the_commands_of_the_document_run_in_their_order`"),
    ("docs/effect.md", "Rust alone, which the doctests run"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one page, and fails with its first line that does not do what the page says.
fn runs(name: &str) {
    let page = Page::read(&root(), name);
    assert!(!page.blocks.is_empty(), "{name} has no snippets: leave it out");
    let mut reader = match name {
        "docs/postgres.md" | "docs/postgres-sql.md" => Reader::in_a_database(),
        "docs/cli.md" => Reader::beside_a_database(),
        _ => Reader::new(),
    };
    for block in &page.blocks {
        if let Err(fault) = reader.take(block) {
            let Block { line, text, .. } = block;
            panic!("{name}:{line}: {fault}\n\n{text}");
        }
    }
    assert_eq!(reader.nothing_is_left_unsaid(), Ok(()), "at the end of {name}");
}

macro_rules! pages {
    ($($test:ident => $name:literal,)*) => {
        /// The pages that are run here.
        const PAGES: &[&str] = &[$($name),*];
        $(#[test]
        fn $test() {
            runs($name);
        })*
    };
}

pages! {
    the_readme_runs => "README.md",
    the_quick_start_runs => "docs/quickstart.md",
    the_concepts_run => "docs/concepts.md",
    the_rules_run => "docs/rules.md",
    the_recipes_run => "docs/recipes.md",
    coming_from_elsewhere_runs => "docs/coming-from.md",
    the_http_api_runs => "docs/http.md",
    the_commands_run => "docs/cli.md",
    flows_run => "docs/flows.md",
    operating_runs => "docs/operating.md",
    postgres_runs => "docs/postgres.md",
    enqueueing_in_sql_runs => "docs/postgres-sql.md",
    push_runs => "docs/push.md",
    the_qstash_api_runs => "docs/qstash.md",
    shared_limits_run => "docs/shared.md",
    the_metrics_run => "docs/metrics.md",
}

#[test]
fn no_page_with_snippets_is_left_out() {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().unwrap()));
    let pages = docs.filter(|name| name.ends_with(".md")).chain(["README.md".to_owned()]);
    let known: BTreeSet<&str> =
        PAGES.iter().copied().chain(ELSEWHERE.map(|(name, _)| name)).collect();
    let with_snippets = |name: &String| !Page::read(&root(), name).blocks.is_empty();
    let missed: Vec<String> =
        pages.filter(|name| !known.contains(name.as_str()) && with_snippets(name)).collect();
    assert!(missed.is_empty(), "run these, or say why not: {missed:?}");
}

#[test]
fn the_rust_of_every_page_is_a_doctest() {
    let facade = fs::read_to_string(root().join("crates/tollgate/src/lib.rs")).unwrap();
    let has_rust = |name: &&&str| Page::read(&root(), name).blocks.iter().any(Block::is_rust);
    let is_missed = |name: &&&str| !facade.contains(&format!("include_str!(\"../../../{name}\")"));
    let missed: Vec<_> = PAGES.iter().filter(has_rust).filter(is_missed).collect();
    assert!(missed.is_empty(), "include these in crates/tollgate/src/lib.rs: {missed:?}");
}

#[test]
fn what_prometheus_and_grafana_read_can_be_read() {
    let folders = ["deploy", "deploy/grafana/provisioning/dashboards"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "yaml")).collect();
    assert!(files.iter().any(|file| file.ends_with("alerts.yaml")), "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let read = serde_saphyr::from_str::<serde_json::Value>(&text);
        assert!(read.is_ok_and(|value| value.is_object()), "{}", file.display());
    }
}
