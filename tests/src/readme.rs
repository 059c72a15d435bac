//! What the documents point at exists: every link between files, every command of the README.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The documents at the root, in `docs` and in `bench`.
fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs"), root().join("bench")];
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let documents: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    assert!(documents.iter().any(|path| path.ends_with("README.md")), "{documents:?}");
    documents
}

/// The targets of the links in a document that lead to files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

/// The commands in a document's shell blocks, without those that continue a line.
fn commands(text: &str) -> Vec<&str> {
    let blocks =
        text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let is_command = |line: &&str| line.starts_with(|first: char| !first.is_whitespace());
    blocks.flat_map(str::lines).filter(is_command).collect()
}

#[test]
fn every_link_leads_to_a_file() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let file = link.split('#').next().unwrap_or_default();
            let target = document.parent().unwrap().join(file);
            assert!(target.exists(), "{} links to {link}", document.display());
        }
    }
}

#[test]
fn every_command_of_the_readme_exists() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let commands = commands(&readme);
    assert!(!commands.is_empty());
    for command in commands {
        let program = command.split_whitespace().next().unwrap_or_default();
        let is_there = match program.strip_prefix("./") {
            Some(script) => root().join(script).is_file(),
            None => ["cargo", "curl", "tollgate"].contains(&program),
        };
        assert!(is_there, "{command}");
    }
}

#[test]
fn commands_and_links_are_found() {
    let text = "See [a](docs/a.md#b), [c](https://c.example) and [d](#d).\n```sh\n./test   # all\ncurl x \\\n     -d y\n```\n";
    assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md#b"]);
    assert_eq!(commands(text), ["./test   # all", "curl x \\"]);
}
