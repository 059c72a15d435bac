//! A page of Markdown as its snippets.

use std::fs;
use std::path::Path;

/// The snippets of a page, in order.
pub(crate) struct Page {
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its fence, from 1 on.
    pub(crate) line: usize,
    /// What stands behind the fence: `sh`, `json`, `rust,no_run`.
    pub(crate) language: String,
    /// The file that it is, if the fence names one: `toml summarise.toml`.
    pub(crate) file: Option<String>,
    pub(crate) text: String,
    /// Whether it stands right below the block before it, so that it is its answer.
    pub(crate) is_answer: bool,
}

impl Page {
    pub(crate) fn read(root: &Path, name: &str) -> Self {
        let text =
            fs::read_to_string(root.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        Self { blocks: blocks(&text) }
    }
}

impl Block {
    pub(crate) fn is_rust(&self) -> bool {
        self.language.split(',').next() == Some("rust")
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut is_answer = false;
    while let Some((index, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            is_answer = is_answer && line.trim().is_empty();
            continue;
        };
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let text = inside.collect::<Vec<_>>().join("\n");
        let mut words = language.split_whitespace().map(str::to_owned);
        let (language, file) = (words.next().unwrap_or_default(), words.next());
        blocks.push(Block { line: index + 1, language, file, text, is_answer });
        is_answer = true;
    }
    blocks
}

#[test]
fn a_block_right_below_another_is_its_answer() {
    let text = "# A\n```sh\none\ntwo\n```\n\n```json\n{}\n```\nMore.\n```toml a.toml\n[]\n```\n";
    let found = blocks(text);
    let told: Vec<_> =
        found.iter().map(|it| (it.line, it.language.as_str(), it.is_answer)).collect();
    assert_eq!(told, [(2, "sh", false), (7, "json", true), (11, "toml", false)]);
    assert_eq!((&found[1].file, found[2].file.as_deref()), (&None, Some("a.toml")));
    assert_eq!(found[0].text, "one\ntwo");
}
