//! Workflows and runs looked after from the shell: what commands ask of a server, what they print, how they end.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Two tasks after each other, the second under a limit for each provider.
const SUMMARISE: &str = r#"{"name":"summarise","idempotency":"id","tasks":[
    {"name":"fetch","type":"http.get"},
    {"name":"ask","type":"llm.chat","after":["fetch"],"keyed_rate_limit":{"key":"provider","limit":100,"per":"1m"}}]}"#;
/// Its task is done only if it is asked to be; a worker is not needed otherwise.
const MAYBE: &str = r#"
name = "maybe"
[[tasks]]
name = "a"
type = "t"
when = { path = "go", is = "eq", value = true }
"#;

/// A server on any free port; it ends with this.
struct Served {
    server: Child,
    url: String,
    folder: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What a command said, and how it ended.
struct Said {
    code: Option<i32>,
    text: String,
    error: String,
}

impl Said {
    fn contains(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}{}", self.text, self.error);
        let said = format!("{}{}", self.text, self.error);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} is not in {said}"));
        self
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    for name in ["TOLLGATE_TOKEN", "TOLLGATE_LOG", "TOLLGATE_URL"] {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        let mut server = command(&arguments).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let url = line.strip_prefix("tollgate listens on ").unwrap().to_owned();
        Self { server, url, folder }
    }

    /// With both workflows.
    fn with_workflows() -> Self {
        let served = Self::new();
        for definition in [SUMMARISE, MAYBE] {
            served.with_input("workflow set -", definition).contains(0, &[]);
        }
        served
    }

    fn run(&self, line: &str) -> Said {
        self.with_input(line, "")
    }

    fn with_input(&self, line: &str, input: &str) -> Said {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut command = command(&arguments);
        let mut running =
            command.env("TOLLGATE_URL", &self.url).stdin(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let Output { status, stdout, stderr } = running.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: status.code(), text: text(stdout), error: text(stderr) }
    }

    fn json(&self, line: &str) -> Value {
        let said = self.run(&format!("{line} --json"));
        said.contains(0, &[]);
        serde_json::from_str(&said.text).unwrap()
    }

    /// Begins a run that waits for a worker; which it is.
    fn begun(&self) -> String {
        let begun = self.json("workflow start summarise --input {\"id\":7,\"provider\":\"x\"}");
        begun["run"].as_str().unwrap().to_owned()
    }
}

#[test]
fn workflows_are_set_listed_shown_and_drawn() {
    let served = Served::new();
    let file = served.folder.path().join("summarise.json");
    fs::write(&file, SUMMARISE).unwrap();
    let set = format!("workflow set {}", file.display());
    served.run(&set).contains(0, &["summarise: version 1, once for each id", "llm.chat"]);
    served.run(&set).contains(0, &["version 1", "it was so before"]);
    served.with_input("workflow set -", MAYBE).contains(0, &["maybe: version 1"]);
    served
        .run("workflow list")
        .contains(0, &["name", "version", "maybe", "summarise", "http.get, llm.chat"]);
    served.run("workflow list --limit 1").contains(0, &["there is more: --after maybe"]);
    served.run("workflow show summarise").contains(0, &["100 per 1m for each provider", "5m"]);
    assert_eq!(served.json("workflow show maybe")["definition"]["tasks"][0]["type"], "t");
    let drawn = served.run("workflow picture summarise");
    let expected = "flowchart TD\n    t0[\"fetch<br/>http.get\"]\n    t1[\"ask<br/>llm.chat\"]\n    t0 --> t1\n";
    assert_eq!(drawn.text, expected);
    assert_eq!(served.json("workflow picture summarise")["picture"], expected);
}

#[test]
fn a_workflow_that_cannot_be_is_refused_and_a_file_that_cannot_be_read_fails() {
    let served = Served::new();
    let set = |line: &str, text: &str| served.with_input(line, text);
    set("workflow set - --name w", r#"{"tasks":[]}"#).contains(1, &["has no tasks: add one"]);
    set("workflow set - --name w", r#"{"tasks":[],"rate":1}"#).contains(2, &["`rate`"]);
    set("workflow set -", "tasks = []").contains(2, &["does not say `name`"]);
    set("workflow set -", "tasks: []").contains(2, &["does not say `name`"]);
    set("workflow set -", "tasks: [").contains(2, &["neither JSON"]);
    set("workflow set -", "{").contains(2, &["it is not JSON"]);
    served.run("workflow set nowhere.json").contains(2, &["nowhere.json cannot be read"]);
    served.run("workflow show w").contains(1, &["no workflow w", "tollgate workflow set"]);
    served.run("workflow picture w").contains(1, &["no workflow w"]);
    served.run("workflow start w").contains(1, &["no workflow w"]);
}

#[test]
fn a_run_is_begun_looked_at_taken_back_and_begun_again() {
    let served = Served::with_workflows();
    served.run("run list").contains(0, &["no runs"]);
    let run = served.begun();
    let again = "workflow start summarise --input {\"id\":7}";
    served.run(again).contains(0, &[&format!("run {run} is there already")]);
    served.run("run list --name summarise").contains(0, &[&run, "0 of 2 tasks done", "7"]);
    served.run("run list --name maybe").contains(0, &["no runs"]);
    served.run(&format!("run show {run}")).contains(0, &["fetch  running", "ask    waiting"]);
    served.run(&format!("run picture {run}")).contains(0, &["flowchart TD", ":::running"]);
    served.run(&format!("run timeline {run}")).contains(0, &["no attempts"]);
    served.run(&format!("run result {run}")).contains(1, &["has not ended"]);
    served.run(&format!("run rerun {run} --from ask")).contains(1, &["cancel it first"]);
    served.run(&format!("run signal {run} go --payload 1")).contains(1, &["takes no signals"]);
    served.run(&format!("run cancel {run}")).contains(0, &["is taken back"]);
    served.run(&format!("run cancel {run}")).contains(0, &["had ended before"]);
    served.run(&format!("run result {run} --wait 5s")).contains(1, &["cancelled"]);
    assert_eq!(served.json("run list --ended")["runs"][0]["run"], *run);
    served.run(&format!("run rerun {run}")).contains(1, &["did not fail"]);
    served.run(&format!("run rerun {run} --from x")).contains(1, &["no task x"]);
    served.run(&format!("run rerun {run} --from fetch")).contains(0, &["0 of 2 tasks done"]);
}

#[test]
fn a_run_that_is_waited_for_tells_by_its_exit_how_it_ended() {
    let served = Served::with_workflows();
    let done = served.run("workflow start maybe --input {\"go\":false} --wait 30s");
    assert_eq!((done.code, done.text.trim()), (Some(0), "null"), "{}", done.error);
    // The limit is one for each provider, and the input names none.
    let keyed = SUMMARISE.replace("\"after\":[\"fetch\"],", "").replace("summarise", "keyed");
    served.with_input("workflow set -", &keyed).contains(0, &[]);
    let failed = served.run("workflow start keyed --input {\"id\":1} --wait 30s");
    failed.contains(1, &["failed at ask", "provider"]);
    let json = served.run("workflow start keyed --input {\"id\":2} --wait 30s --json");
    let ended: Value = serde_json::from_str(&json.text).unwrap();
    assert_eq!((json.code, &ended["ending"]["outcome"]), (Some(1), &json!("failed")));
    let waits = "workflow start summarise --input {\"id\":7,\"provider\":\"x\"} --wait 10ms";
    served.run(waits).contains(1, &["has not ended"]);
}

#[test]
fn the_input_is_a_text_a_file_or_the_standard_input() {
    let served = Served::with_workflows();
    let file = served.folder.path().join("input.json");
    fs::write(&file, "{\"id\":\"of the file\"}").unwrap();
    let start = format!("workflow start summarise --file {}", file.display());
    served.run(&start).contains(0, &["has begun"]);
    let stdin = "workflow start summarise --file -";
    served.with_input(stdin, "{\"id\":\"piped\"}").contains(0, &["has begun"]);
    served.run("run list").contains(0, &["of the file", "piped"]);
    served.run("workflow start summarise").contains(1, &["reads its idempotency key from id"]);
    served.run("workflow start summarise --input {").contains(2, &["the input is not JSON"]);
    let both = format!("{start} --input 1");
    served.run(&both).contains(2, &["cannot be used with"]);
}

#[test]
fn what_is_no_run_is_refused() {
    let served = Served::new();
    for line in [
        "show nobody",
        "timeline nobody",
        "picture nobody",
        "result nobody",
        "signal nobody go",
        "cancel nobody",
        "rerun nobody --from a",
    ] {
        served.run(&format!("run {line}")).contains(1, &["there is no run"]);
    }
    served.run("run result nobody --wait 11m").contains(2, &["the longest is 10m"]);
    served.run("run signal nobody go --payload {").contains(2, &["the payload is not JSON"]);
}
