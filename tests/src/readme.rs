//! What the documents point at exists: every link between files, every command of the README.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The documents at the root, in `docs` and in `bench`, and the list of them for programs.
fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs"), root().join("bench")];
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_document = |path: &PathBuf| {
        path.extension().is_some_and(|it| it == "md") || path.ends_with("llms.txt")
    };
    let documents: Vec<_> = paths.filter(is_document).collect();
    assert!(documents.iter().any(|path| path.ends_with("README.md")), "{documents:?}");
    documents
}

/// The targets of the links in a document that lead to files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

/// The targets of links that stay here, also those within a page.
fn links_within(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// The headings of a page, without code in which a line begins like one.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("\n```").step_by(2);
    let lines = prose.flat_map(str::lines);
    lines.filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}

/// What a heading is called in a link, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase();
    let kept = letters.chars().filter(|it| it.is_alphanumeric() || "-_ ".contains(*it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
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
fn every_link_to_a_part_of_a_page_leads_there() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let parts = links_within(&text).filter_map(|link| link.split_once('#'));
        for (file, part) in parts.filter(|(file, _)| file.is_empty() || file.ends_with(".md")) {
            let own = document.file_name().unwrap().to_str().unwrap();
            let file = if file.is_empty() { own } else { file };
            let target = fs::read_to_string(document.parent().unwrap().join(file)).unwrap();
            let has = headings(&target).any(|heading| anchor(heading) == part);
            assert!(has, "{} links to {file}#{part}", document.display());
        }
    }
}

#[test]
fn the_contents_and_the_list_for_programs_have_every_page() {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = docs.map(|name| name.into_string().unwrap());
    let contents = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let list = fs::read_to_string(root().join("llms.txt")).unwrap();
    for page in pages.filter(|name| name.ends_with(".md")) {
        assert!(list.contains(&format!("](docs/{page})")), "llms.txt leaves out {page}");
        let is_listed = page == "README.md" || contents.contains(&format!("]({page})"));
        assert!(is_listed, "docs/README.md leaves out {page}");
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
fn a_heading_is_called_as_github_calls_it() {
    assert_eq!(anchor("PUT /v1/limits/{name}"), "put-v1limitsname");
    assert_eq!(anchor("Several servers, one database"), "several-servers-one-database");
    let text = "# A\n```sh\n# no heading\n```\n## B c\n";
    assert_eq!(headings(text).collect::<Vec<_>>(), ["A", "B c"]);
}

#[test]
fn commands_and_links_are_found() {
    let text = "See [a](docs/a.md#b), [c](https://c.example) and [d](#d).\n```sh\n./test   # all\ncurl x \\\n     -d y\n```\n";
    assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md#b"]);
    assert_eq!(commands(text), ["./test   # all", "curl x \\"]);
}
