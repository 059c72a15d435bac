//! A server looked after from the shell: what commands ask of it, what they print, how they end.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

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
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    fn contains(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}{}", self.text, self.error);
        let said = format!("{}{}", self.text, self.error);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} is not in {said}"));
        self
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let variables = ["TOLLGATE_TOKEN", "TOLLGATE_LOG", "TOLLGATE_URL"];
    for name in variables {
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

    /// Runs a command, given as one would type it; what is quoted has no spaces between its parts.
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
        said.json()
    }
}

#[test]
fn limits_and_meters_are_looked_after() {
    let served = Served::new();
    served
        .run("limit set stripe --rate 100/1m --burst 150")
        .contains(0, &["stripe: 100 per 1m, burst 150"]);
    served
        .run("limit set openai --window 9/1d --concurrency 2")
        .contains(0, &["9 in each 1d and 2 at a time"]);
    served
        .run("limit set ads --rate 200000/1s --ahead 10ms")
        .contains(0, &["200000 per 1s, burst 200000, taken ahead for 10ms"]);
    assert_eq!(served.json("limit show ads")["definition"]["ahead"], "10ms");
    served.run("limit set ads --concurrency 2 --ahead 10ms").contains(1, &["leave ahead out"]);
    served.run("limit set ads --ahead 10ms").contains(2, &["say what it is to be"]);
    served
        .run("limit set tenants --rate 600/1m --spread")
        .contains(0, &["600 per 1m, burst 600, spread"]);
    assert_eq!(served.json("limit show tenants")["definition"]["spread"], true);
    served.run("limit list").contains(0, &["name", "openai", "100 per 1m"]);
    served.run("limit pin stripe --rate 1/s").contains(0, &["pinned over it: 1 per 1s"]);
    served.run("limit override stripe acme --sliding 5/1m").contains(0, &["acme: 5 in any 1m"]);
    served.run("limit override stripe acme --remove").contains(0, &[]);
    served.run("limit unpin stripe").contains(0, &["stripe: 100 per 1m"]);
    let shown = served.json("limit show stripe");
    assert_eq!(shown["definition"]["burst"], 150);
    served.run("meter show stripe").contains(0, &["(global)", "150"]);
    served.run("meter close stripe acme --for 30s --reason 429").contains(0, &["acme", "429"]);
    served.run("meter list stripe").contains(0, &["(global)", "acme"]);
    served.run("meter reopen stripe acme").contains(0, &[]);
    served.run("meter reset stripe acme").contains(0, &["150"]);
    served.run("limit pause stripe").contains(0, &["stripe is paused"]);
    served.run("limit resume stripe").contains(0, &["stripe goes on"]);
    served.run("limit remove stripe").contains(0, &["stripe is removed"]);
    served.run("audit").contains(0, &["limit", "stripe", "openai"]);
    let told = ["stripe/acme", "close for 30s: 429", "reopen", "reset", "pause", "resume"];
    served.run("audit").contains(0, &told);
    let named = served.json("audit --name openai --kind limit,meter");
    assert_eq!(named["changes"].as_array().unwrap().len(), 1);
    assert_eq!(served.json("audit --limit 1")["changes"][0]["name"], "stripe");
    served.run("limit show stripe").contains(1, &["no limit is called", "define it"]);
    assert_eq!(served.run("limit show stripe --json").json()["code"], "unknown_limit");
    served.run("limit set stripe --burst 3").contains(2, &["--rate"]);
    served.run("limit set stripe").contains(2, &["say what it is to be"]);
    served.run("limit set stripe --rate much").contains(2, &["100/1m"]);
}

#[test]
fn queues_and_calls_are_looked_after() {
    let served = Served::new();
    served.run("limit set api --rate 1/1h").contains(0, &[]);
    served
        .run("queue set q --failures 3 --backoff 2s --on-dead hold")
        .contains(0, &["failures_max: 3"]);
    assert_eq!(served.json("queue show q")["definition"]["on_dead"], "hold");
    for body in ["{\"n\":1}", "two", "3"] {
        served
            .run(&format!("enqueue q --lane acme --toll api=1 --body {body}"))
            .contains(0, &["waits in queue q"]);
    }
    served.run("queue list").contains(0, &["q", "3"]);
    served.run("queue weigh q acme 7").contains(0, &["weight 7"]);
    served.run("queue lanes q").contains(0, &["acme", "7"]);
    served.run("queue pause q --lane acme").contains(0, &["acme is paused"]);
    served
        .run("explain 0")
        .contains(0, &["call 0 of lane acme in queue q is waiting", "its lane is paused"]);
    served.run("queue resume q --lane acme").contains(0, &["acme goes on"]);
    served.run("explain 2").contains(0, &["2 of its lane go before it", "expected: in "]);
    served
        .run("call list q --state waiting --limit 2")
        .contains(0, &["acme", "api=1", "--after 1"]);
    served.run("call show 1").contains(0, &["body: \"two\""]);
    served.run("top --once").contains(0, &["q/acme", "3"]);
    assert_eq!(served.json("top")["lanes"][0]["waiting"], 3);
    served.run("drain q --timeout 1ms").contains(1, &["3 calls left"]);
    served.run("queue remove q").contains(1, &["q"]);
    served.run("call cancel 0 1 2").contains(0, &["2 is cancelled"]);
    served.run("call cancel 987").contains(1, &["987"]);
    served.run("drain q").contains(0, &["q is empty"]);
    served
        .run("history --queue q --end cancelled")
        .contains(0, &["call 2 of q/acme", "ended: cancelled"]);
    served.run("queue remove q").contains(0, &["q is removed"]);
    served.run("drain q").contains(1, &["q"]);
}

#[test]
fn dead_letters_and_schedules_are_looked_after() {
    let served = Served::new();
    served.run("queue set q").contains(0, &[]);
    served.run("dead list q").contains(0, &["no calls"]);
    served.run("dead retry --queue q --every 1ms").contains(0, &["0 calls wait again"]);
    served.run("dead delete --queue q").contains(0, &["0 calls are deleted"]);
    served.run("dead retry").contains(2, &["--queue"]);
    let set = "schedule set report --queue q --lane a --body 7 --cron @daily --zone Europe/Berlin";
    served.run(set).contains(0, &["@daily (Europe/Berlin)", "in "]);
    served.run("schedule list").contains(0, &["report"]);
    served.run("schedule pause report").contains(0, &[]);
    assert_eq!(served.json("schedule show report")["paused"], true);
    served.run("schedule resume report").contains(0, &[]);
    served.run("schedule remove report").contains(0, &["report is removed"]);
    served.run("schedule show report").contains(1, &["report"]);
}

#[test]
fn a_file_of_calls_is_handed_in_and_goes_on_where_it_was_refused() {
    let served = Served::new();
    served.run("queue set q").contains(0, &[]);
    let call = |n: u32| format!("{{\"lane\":\"a\",\"body\":{n}}}\n");
    let file = served.folder.path().join("calls.ndjson");
    let good: String = (0..2_500).map(call).collect();
    fs::write(&file, &good).unwrap();
    let from_file = format!("enqueue q --file {}", file.display());
    served.run(&from_file).contains(0, &["2500 calls were accepted"]);
    assert_eq!(served.json("queue show q")["waiting"], 2_500);
    let bad = good.clone() + "{\"lane\":\"\"}\n";
    let said = served.with_input("enqueue q --file - --json", &bad);
    said.contains(1, &[]);
    assert_eq!((&said.json()["accepted"], &said.json()["line"]), (&2_000.into(), &2_501.into()));
    let said = served.with_input("enqueue q --file - --skip 2000", &good);
    said.contains(0, &["500 calls were accepted"]);
    let said = served.with_input("enqueue q --file -", &(call(1) + "nothing\n"));
    said.contains(2, &["line 2 is not JSON", "--skip 1"]);
    let said = served.with_input("enqueue q --file - --json", &(call(1) + "nothing\n"));
    assert_eq!((said.code, &said.json()["accepted"]), (Some(2), &1.into()));
    served.run("enqueue q").contains(2, &["--lane"]);
    served.run("enqueue q --file nowhere.ndjson").contains(2, &["cannot read nowhere.ndjson"]);
}

#[test]
fn a_run_that_goes_on_with_its_key_hands_in_nothing_twice() {
    let served = Served::new();
    served.run("queue set q").contains(0, &[]);
    let call = |n: u32| format!("{{\"lane\":\"a\",\"body\":{n}}}\n");
    // As an editor of another system leaves it.
    let lines = format!("\u{feff}{}\n  \n{}", call(1), call(2));
    for (key, waiting) in [("--key k", 2), ("--key k", 2), ("", 4), ("", 6)] {
        let said = served.with_input(&format!("enqueue q --file - {key}"), &lines);
        said.contains(0, &["2 calls were accepted"]);
        assert_eq!(served.json("queue show q")["waiting"], waiting, "{key}");
    }
    let unknown = "{\"lane\":\"a\",\"tolls\":[{\"limit\":\"nobody\"}]}\n";
    let said = served.with_input("enqueue q --file -", &(lines + unknown));
    said.contains(1, &["line 5: ", "nobody", "0 calls were accepted", "--skip 0 --key "]);
}

#[test]
fn lines_that_may_have_been_accepted_are_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.ndjson");
    fs::write(&file, "{\"lane\":\"a\"}\n{\"lane\":\"b\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let mut running = command(&["enqueue", "q", "--file", file, "--server", &url]);
    let running = running.spawn().unwrap();
    let mut keys = Vec::new();
    // Each try is read, and never answered.
    for _ in 0..5 {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        keys.extend(lines.find(|line| line.starts_with("idempotency-key")));
    }
    let Output { status, stderr, .. } = running.wait_with_output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(
        told.contains("lines 1–2 may have been accepted, too: go on with --skip 0 --key "),
        "{told}"
    );
    keys.dedup();
    assert_eq!(keys.len(), 1, "tries differ: {keys:?}");
}

#[test]
fn a_queue_with_little_room_gets_what_fits() {
    let served = Served::new();
    served.run("queue set q --depth 3").contains(0, &[]);
    let calls = "{\"lane\":\"a\"}\n".repeat(4);
    let mut arguments = vec!["enqueue", "q", "--file", "-", "--json", "--server"];
    arguments.push(&served.url);
    let mut running = command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    running.stdin.take().unwrap().write_all(calls.as_bytes()).unwrap();
    while served.json("queue show q")["waiting"] != 3 {}
    let stopped = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    let Output { status, stdout, .. } = running.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&stdout).unwrap();
    // It ends while an answer to the third is on its way, or while it asks for the fourth again,
    // which no answer has refused yet: it is unsure of that one line, and of no other.
    let skip = told["skip"].as_u64().unwrap();
    let unsure = [told["unsure"]["first"].as_u64(), told["unsure"]["last"].as_u64()];
    assert!(
        unsure == [None; 2] && skip == 3 || unsure == [Some(skip + 1); 2] && skip <= 3,
        "{told}"
    );
    assert!(unsure[1].unwrap_or(skip) >= 3, "three were accepted: {told}");
    assert_eq!((status.code(), &told["accepted"]), (Some(2), &skip.into()), "{told}");
}

#[test]
fn what_a_command_does_not_say_is_left_as_it_was() {
    let served = Served::new();
    served.run("queue set q --lease 7s --backoff 3s --depth 9").contains(0, &[]);
    served.run("queue set q --backoff-max 8s").contains(0, &["lease: 7s"]);
    let definition = served.json("queue show q")["definition"].clone();
    assert_eq!((&definition["lease"], &definition["depth_max"]), (&"7s".into(), &9.into()));
    assert_eq!(definition["backoff"]["first"], "3s", "{definition}");
    served.run("queue set q --replace").contains(0, &[]);
    assert_ne!(served.json("queue show q")["definition"]["lease"], "7s");
    let with_version = format!("queue show q --server {}/v1/", served.url);
    served.run(&with_version).contains(0, &["q"]);
    served.run("limit set api --rate 1/1s").contains(0, &[]);
    served.run("limit pause api").contains(0, &["api is paused"]);
    served.run("limit show api").contains(0, &["(paused: nothing passes)"]);
}

#[test]
fn commands_end_as_it_went_and_say_it_once() {
    let served = Served::new();
    served.run("queue set q").contains(0, &[]);
    let id = served.json("enqueue q --lane a")["ids"][0].as_str().unwrap().to_owned();
    let said = served.run(&format!("call cancel {id} 987654 --json"));
    said.contains(1, &[]);
    let told = said.json();
    assert_eq!(told["cancelled"], Value::from(vec![id]));
    assert_eq!(told["problems"][0]["problem"]["code"], "unknown_call", "{told}");
    let said = served.run("enqueue nowhere --lane a");
    said.contains(1, &["tollgate: there is no queue nowhere", "`tollgate queue set` defines one"]);
    served.run("dead retry 987654").contains(1, &["0 of 1 calls wait again"]);
    served.run("call list q --limit many").contains(2, &["`limit`"]);
    served.run("enqueue q --lane a").contains(0, &[]);
    served.run("queue pause q").contains(0, &[]);
    served.run("drain q --timeout 1ms").contains(1, &["1 calls left", "it is paused"]);
}

#[test]
fn events_are_told_as_they_happen() {
    let served = Served::new();
    served.run("queue set q").contains(0, &[]);
    let mut listening = command(&["events", "--count", "1", "--json", "--server", &served.url]);
    let mut listening = listening.spawn().unwrap();
    let mut line = String::new();
    // It may begin to listen after the first.
    while listening.try_wait().unwrap().is_none() {
        served.run("enqueue q --lane a").contains(0, &[]);
    }
    BufReader::new(listening.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["event"], &event["queue"]), (&"enqueued".into(), &"q".into()));
}

#[test]
fn who_finds_no_server_is_told_the_cure() {
    let served = Served::new();
    let url = served.url.clone();
    drop(served);
    let Output { status, stderr, .. } =
        command(&["limit", "list", "--server", &url]).output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(told.contains("is it running?") && told.contains("tollgate serve"), "{told}");
}

#[test]
fn shells_are_told_what_there_is() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let Output { status, stdout, .. } = command(&["completions", shell]).output().unwrap();
        let text = String::from_utf8(stdout).unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(text.contains("enqueue") && text.contains("limit"), "{text}");
    }
}

#[test]
fn a_file_is_compared_and_then_applied() {
    let served = Served::new();
    let file = served.folder.path().join("tollgate.toml");
    let write = |limit: u32| {
        let text = format!(
            "[limits.stripe]\nrule = \"token_bucket\"\nlimit = {limit}\nper = \"1m\"\n\n[limits.stripe.partitions.big]\nrule = \"concurrency\"\nlimit = 3\n\n[queues.charges]\nlease = \"5s\"\ntolls = [{{ limit = \"stripe\" }}]\n"
        );
        fs::write(&file, text).unwrap();
    };
    write(100);
    let apply = format!("apply {}", file.display());
    let checked = served.run(&format!("{apply} --check"));
    checked.contains(1, &["+ limit stripe: {", "+ queue charges: {", "3 changes would be made"]);
    served.run("limit show stripe").contains(1, &["stripe"]);
    served.run(&apply).contains(0, &["3 changes were made"]);
    served.run("limit show stripe").contains(0, &["100 per 1m", "big: 3 at a time"]);
    served.run(&format!("{apply} --check")).contains(0, &["all is as the file says"]);
    write(50);
    let json = served.run(&format!("{apply} --check --json"));
    assert_eq!((json.code, &json.json()["applied"]), (Some(1), &Value::Bool(false)));
    assert_eq!(json.json()["changes"][0]["after"]["limit"], 50);
    let said = served.run(&apply);
    said.contains(0, &["~ limit stripe", "limit: 100 -> 50", "1 change was made"]);
    fs::write(&file, "[limits.stripe]\nrule = \"none\"\n").unwrap();
    served.run(&apply).contains(2, &["tollgate.toml:1: limits.stripe: "]);
}

#[test]
fn a_queue_that_is_delivered_is_set_shown_and_applied() {
    let served = Served::new();
    let set = "queue set hooks --destination https://a.example/x --header x-key=7919";
    let said = served.run(&format!("{set} --method PUT --timeout 30s --backoff-jitter 25"));
    said.contains(
        0,
        &["\"jitter\":25", "\"url\":\"https://a.example/x\"", "\"method\":\"PUT\"", "***"],
    );
    assert!(!said.text.contains("7919"), "{}", said.text);
    served.run("queue set hooks --lease 5s").contains(1, &["destination.headers.x-key", "***"]);
    served.run(&format!("{set} --lease 5s")).contains(0, &["lease: 5s", "\"method\":\"PUT\""]);
    served.run("queue pause hooks").contains(0, &["hooks is paused"]);
    served.run("enqueue hooks --lane a --destination https://b.example").contains(0, &["call 0"]);
    served.run("call show 0").contains(0, &["destination: {\"url\":\"https://b.example\"}"]);
    let file = served.folder.path().join("tollgate.toml");
    let write = |key: &str| {
        let text = format!(
            "[queues.hooks]\nlease = \"5s\"\n[queues.hooks.destination]\nurl = \"https://a.example/x\"\nheaders = {{ x-key = \"{key}\" }}\n"
        );
        fs::write(&file, text).unwrap();
    };
    write("7919");
    let apply = format!("apply {}", file.display());
    let said = served.run(&apply);
    said.contains(0, &["~ queue hooks", "1 change was made"]);
    assert!(!said.text.contains("7919"), "{}", said.text);
    let again = served.run(&apply);
    again.contains(0, &["? queue hooks: it has secrets", "all is as the file says"]);
    let changes = || served.run("audit --json").json()["changes"].as_array().unwrap().len();
    let before = changes();
    served.run(&apply);
    assert_eq!(changes(), before, "a server compares what is not shown");
    write("7920");
    served.run(&format!("{apply} --check")).contains(0, &["? queue hooks"]);
    assert_eq!(changes(), before);
    served.run(&apply);
    assert_eq!(changes(), before + 1);
}
