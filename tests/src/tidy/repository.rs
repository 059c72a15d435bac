//! The files of the repository, read once for all tidy tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// What git would not list either, for a tree that came without git.
const NOT_OURS: [&str; 4] = [".git", "target", "tollgate-data", "node_modules"];

/// One file, its path relative to the repository and with `/` on every system.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// The lines that `is_fault` holds for, as `path:line: text`.
    pub(super) fn lines_where(&self, is_fault: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self.text.lines().enumerate();
        lines
            .filter(|(_, line)| is_fault(line))
            .map(|(index, line)| format!("{}:{}: {}", self.path, index + 1, line.trim()))
            .collect()
    }
}

/// Every file, tracked or new; what is ignored is left out.
pub(super) fn files() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(read_all);
    &FILES
}

/// Every Rust source file.
pub(super) fn rust_files() -> impl Iterator<Item = &'static File> {
    files().iter().filter(|file| file.path.ends_with(".rs"))
}

/// Every source file of the console; what is built of them is left out.
pub(super) fn console_files() -> impl Iterator<Item = &'static File> {
    let files = files().iter().filter(|file| file.path.starts_with("crates/server/console/"));
    let is_source = |file: &&File| {
        let endings = [".ts", ".tsx", ".mjs", ".css"];
        !file.path.contains("/dist/") && endings.iter().any(|ending| file.path.ends_with(ending))
    };
    files.filter(is_source)
}

/// The file at `path`, if there is one.
pub(super) fn file(path: &str) -> Option<&'static File> {
    files().iter().find(|file| file.path == path)
}

/// The text of a document the project cannot be without.
pub(super) fn document(path: &str) -> &'static str {
    &file(path).unwrap_or_else(|| panic!("{path} is missing")).text
}

/// The line up to its comment. A `//` inside a string cuts too: good enough to look for words.
pub(super) fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The words of a line: its names, keywords and numbers.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn read_all() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let paths = listed_by_git(&root).unwrap_or_else(|| found_below(&root));
    let files: Vec<File> = paths.iter().filter_map(|path| read(&root, path)).collect();
    // A wrong folder would let every rule pass for want of files.
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "no workspace in {root:?}");
    files
}

fn read(root: &Path, path: &Path) -> Option<File> {
    // A file deleted but still tracked is gone; a picture has no words that matter.
    let bytes = fs::read(root.join(path)).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(File { path: path.to_string_lossy().replace('\\', "/"), text })
}

fn listed_by_git(root: &Path) -> Option<Vec<PathBuf>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = String::from_utf8(listing.stdout).ok()?;
    let paths: Vec<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
    (listing.status.success() && !paths.is_empty()).then_some(paths)
}

fn found_below(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let is_ours = !NOT_OURS.iter().any(|name| entry.file_name() == *name);
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && is_ours {
                folders.push(entry.path());
            } else if kind.is_file() {
                paths.push(entry.path().strip_prefix(root).unwrap().to_path_buf());
            }
        }
    }
    paths
}
