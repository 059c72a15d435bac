//! A picture of a workflow, and of how far a run of it is, as a flowchart of Mermaid.

use super::progress::{Progress, TaskState};
use super::task::Task;
use super::{Node, Workflow};
use std::fmt::Write;

/// How much of a value a picture shows.
const SHOWN_CHARS_MAX: usize = 32;

/// How each state looks.
const CLASSES: &str = "\
    classDef waiting fill:#eee,stroke:#999,color:#333\n\
    classDef running fill:#cfe2ff,stroke:#0b5ed7,color:#052c65\n\
    classDef done fill:#d1e7dd,stroke:#198754,color:#0a3622\n\
    classDef skipped fill:#fff,stroke:#bbb,color:#777,stroke-dasharray:4\n\
    classDef failed fill:#f8d7da,stroke:#b02a37,color:#58151c\n\
    classDef cancelled fill:#fff3cd,stroke:#997404,color:#664d03\n";

impl Workflow {
    /// The workflow as a flowchart in the language of Mermaid; with how far a run is, states are
    /// classes.
    ///
    /// Tasks are numbered and their names are labels in which only letters, digits and a few marks stand as they
    /// are, so that no name is taken for something else.
    pub fn mermaid(&self, progress: Option<&Progress>) -> String {
        let mut picture = String::from("flowchart TD\n");
        let states = progress.map(Progress::states);
        for (place, (task, node)) in self.tasks().iter().zip(&*self.nodes).enumerate() {
            let state = states.and_then(|states| states.get(place)).copied();
            // Writing into a string does not fail.
            let _ =
                writeln!(picture, "    t{place}[\"{}\"]{}", label(task, node, state), class(state));
        }
        for (place, node) in self.nodes.iter().enumerate() {
            for need in &node.needs {
                let _ = writeln!(picture, "    t{need} --> t{place}");
            }
        }
        if progress.is_some() {
            for line in CLASSES.lines() {
                let _ = writeln!(picture, "    {line}");
            }
        }
        picture
    }
}

fn class(state: Option<TaskState>) -> String {
    state.map(|state| format!(":::{}", state.as_str())).unwrap_or_default()
}

/// The name, the type, over what it maps and when it is done, a line each.
fn label(task: &Task, node: &Node, state: Option<TaskState>) -> String {
    let mut lines = vec![escaped(&task.name), escaped(&task.type_name)];
    if let Some(map) = &node.map {
        let items = state.and_then(TaskState::items).map(|items| format!(", {items} items"));
        lines.push(escaped(&format!("for each of {map}{}", items.unwrap_or_default())));
    }
    if let Some(when) = &task.when {
        let value: String = when.value.to_string().chars().take(SHOWN_CHARS_MAX).collect();
        lines.push(escaped(&format!("when {} {} {value}", when.path, when.is.as_str())));
    }
    lines.join("<br/>")
}

/// A text in a label: what may mean something to Mermaid or to HTML is written by its number.
fn escaped(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_alphanumeric() || matches!(character, ' ' | '-' | '_' | '.' | ',') {
            label.push(character);
        } else {
            let _ = write!(label, "#{};", u32::from(character));
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::workflow::{Comparison, Happened, RunView, Source};
    use proptest::prelude::*;

    #[test]
    fn a_picture_shows_tasks_needs_and_states() {
        let workflow = Workflow::new("w")
            .task(Task::new("fetch", "http.get"))
            .task(Task::new("each", "llm.chat").after("fetch").map("items").when(
                "items.length",
                Comparison::Gt,
                0,
            ))
            .build()
            .unwrap();
        let plain = "flowchart TD\n    \
            t0[\"fetch<br/>http.get\"]\n    \
            t1[\"each<br/>llm.chat<br/>for each of items<br/>when items.length gt 0\"]\n    \
            t0 --> t1\n";
        assert_eq!(workflow.mermaid(None), plain);
        let mut progress = Progress::new(&workflow);
        let read = |_: Source<'_>| Some(&b"{\"items\": [1, 2]}"[..]);
        let run = RunView { id: "r", read: &read };
        let _ = progress.advance(&workflow, Happened::Started, run).unwrap();
        let _ = progress.advance(&workflow, Happened::Done { task: "fetch" }, run).unwrap();
        let picture = workflow.mermaid(Some(&progress));
        assert!(picture.contains("t0[\"fetch<br/>http.get\"]:::done\n"), "{picture}");
        assert!(picture.contains("for each of items, 2 items<br/>when"), "{picture}");
        assert!(picture.contains("]:::running\n"), "{picture}");
        assert!(picture.contains("\n    classDef running "), "{picture}");
    }

    proptest! {
        #[test]
        fn no_name_breaks_a_picture(name in "[^./\\[\\]\\p{Cc}]{1,20}", type_name in "\\PC{1,20}|[\"\\]\n;#`<>&%:]{1,9}") {
            let task = Task::new(&name, &type_name).when("a", Comparison::Eq, type_name.as_str());
            let workflow = Workflow::new("w").task(task).build();
            prop_assume!(workflow.is_ok());
            let picture = workflow.unwrap().mermaid(None);
            let lines: Vec<&str> = picture.lines().collect();
            prop_assert_eq!(lines.len(), 2);
            let label = lines[1].strip_prefix("    t0[\"").and_then(|rest| rest.strip_suffix("\"]")).unwrap();
            let label = label.replace("<br/>", "");
            let is_plain = |c: char| c.is_alphanumeric() || " -_.,#;".contains(c);
            prop_assert!(label.chars().all(is_plain), "{}", label);
        }
    }
}
