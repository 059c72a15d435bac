//! The command as a shell runs it: what it prints, how it ends.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

fn tollgate(arguments: &[&str], token: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments).env_remove("TOLLGATE_TOKEN").env_remove("TOLLGATE_LOG");
    command.envs(token.map(|token| ("TOLLGATE_TOKEN", token)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server on any free port, and the lines that it printed.
fn started(arguments: &[&str]) -> (Child, [String; 2]) {
    let mut server = tollgate(arguments, None).spawn().unwrap();
    let mut printed = BufReader::new(server.stdout.take().unwrap()).lines();
    let lines = [(); 2].map(|()| printed.next().unwrap().unwrap());
    (server, lines)
}

/// Sends a signal, and returns how the server ended and what it logged.
fn ended(server: Child, signal: &str) -> (Option<i32>, String) {
    let process = server.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &process]).status().unwrap().success());
    let Output { status, stderr, .. } = server.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Runs a command that ends by itself: its code, and what it said on the error output.
fn run(arguments: &[&str], token: Option<&str>) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = tollgate(arguments, token).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn says_where_it_listens_and_what_it_keeps() {
    let (server, [address, notice]) = started(&["--memory", "--listen", "127.0.0.1:0"]);
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    assert!(notice.contains("kept in memory"), "{notice}");
    let answer = ask(address, "GET", "/healthz", "");
    assert!(answer.ends_with("{\"status\":\"ok\"}"), "{answer}");
    ended(server, "TERM");
}

/// Sends one request, and returns the answer as it came.
fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let (kind, bytes) = ("application/json", body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
    let head = format!("{head}content-type: {kind}\r\ncontent-length: {bytes}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_it_was_told_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()];
    let paid = r#"{"tolls":[{"limit":"api"}],"receipt":"10m"}"#;
    let (mut server, [address, notice]) = started(&arguments);
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    assert!(notice.contains(arguments[3]), "{notice}");
    let rule = r#"{"rule":"token_bucket","limit":1,"per":"1h"}"#;
    assert!(ask(address, "PUT", "/v1/limits/api", rule).starts_with("HTTP/1.1 200"));
    let granted = ask(address, "POST", "/v1/consume", paid);
    assert!(granted.starts_with("HTTP/1.1 200"), "{granted}");
    let (code, told) = run(&arguments, None);
    assert_eq!(code, Some(2));
    assert!(told.contains("in use"), "{told}");
    server.kill().unwrap();
    server.wait().unwrap();

    let (server, [address, _]) = started(&arguments);
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    let refused = ask(address, "POST", "/v1/consume", paid);
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    let receipt = granted.split("\"receipt\":\"").nth(1).unwrap().split('"').next().unwrap();
    let cancelled = ask(address, "POST", &format!("/v1/receipts/{receipt}/cancel"), "{}");
    assert!(cancelled.starts_with("HTTP/1.1 20"), "{cancelled}");
    let granted = ask(address, "POST", "/v1/consume", paid);
    assert!(granted.starts_with("HTTP/1.1 200"), "{granted}");
    ended(server, "TERM");
}

#[test]
fn a_signal_ends_it_well() {
    for signal in ["INT", "TERM"] {
        let (server, _) = started(&["serve", "--memory", "--listen", "127.0.0.1:0"]);
        let (code, log) = ended(server, signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("shutting down") && log.contains("stopped"), "{log}");
    }
}

#[test]
fn logs_for_programs_are_json() {
    let (server, _) = started(&["--memory", "--listen", "127.0.0.1:0", "--log", "json"]);
    let (_, log) = ended(server, "TERM");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "INFO");
        assert!(line["message"].is_string());
    }
}

#[test]
fn refuses_to_be_reached_from_elsewhere_without_a_token() {
    let (code, told) = run(&["--memory", "--listen", "0.0.0.0:0"], None);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("set TOLLGATE_TOKEN, give the configuration tokens, or listen"),
        "{told}"
    );
    let (code, told) = run(&["--memory", "--listen", "0.0.0.0:0"], Some(""));
    assert_eq!(code, Some(2));
    assert!(told.contains("TOLLGATE_TOKEN") && told.contains("openssl rand"), "{told}");
}

#[test]
fn says_that_the_address_is_taken() {
    let (server, [address, _]) = started(&["--memory", "--listen", "127.0.0.1:0"]);
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    let (code, told) = run(&["--memory", "--listen", address], None);
    assert_eq!(code, Some(2));
    assert!(told.contains(&format!("cannot listen on {address}")), "{told}");
    ended(server, "TERM");
}

#[test]
fn mistakes_in_the_arguments_are_told() {
    for (arguments, said) in [
        (["--listen", "localhost"], "127.0.0.1:8655"),
        (["--log", "xml"], "[possible values: text, json]"),
        (["serve", "--port"], "--port"),
    ] {
        let (code, told) = run(&arguments, None);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(said), "{told}");
    }
    assert_eq!(run(&["--help"], None), (Some(0), String::new()));
}

#[test]
fn a_new_token_is_shown_once_with_the_lines_for_the_file() {
    let arguments = ["token", "new", "--name", "ci", "--role", "work", "--namespace", "acme"];
    let Output { status, stdout, .. } = tollgate(&arguments, None).output().unwrap();
    let printed = String::from_utf8(stdout).unwrap();
    let token = printed.lines().next().unwrap();
    assert!(status.success() && token.starts_with("tollgate_"), "{printed}");
    assert_eq!(printed.matches(token).count(), 1);
    assert!(printed.contains("hash = \"sha256:") && printed.contains("namespace = \"acme\""));
    let (code, told) = run(&["token", "new", "--name", "ci", "--role", "boss"], None);
    assert_eq!(code, Some(2));
    assert!(told.contains("a role is read, enqueue, work or admin"), "{told}");
}

#[test]
fn a_certificate_that_is_not_there_is_named() {
    let listen = ["--memory", "--listen", "127.0.0.1:0"];
    let files = ["--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"];
    let (code, told) = run(&[&listen[..], &files[..]].concat(), None);
    assert_eq!(code, Some(2));
    assert!(told.contains("cannot read /nowhere/cert.pem"), "{told}");
}

#[test]
fn no_secret_is_logged() {
    let mut command = tollgate(&["--memory", "--listen", "127.0.0.1:0"], Some("s3cret-token"));
    let mut server = command.env("TOLLGATE_LOG", "trace").spawn().unwrap();
    let mut printed = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = printed.next().unwrap().unwrap();
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    let send = |head: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let bytes = body.len();
        let rest = format!(
            "host: a\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {bytes}"
        );
        let head = format!("{head}\r\nauthorization: Bearer s3cret-token\r\n{rest}\r\n\r\n");
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let call =
        r#"{"receipt":"1m","tolls":[{"limit":"api","define":{"rule":"concurrency","limit":1}}]}"#;
    let granted = send("POST /v1/consume HTTP/1.1", call);
    let receipt = granted.split("\"receipt\":\"").nth(1).unwrap().split('"').next().unwrap();
    let settled = send(&format!("POST /v1/receipts/{receipt}/settle HTTP/1.1"), "");
    assert!(settled.starts_with("HTTP/1.1 200"), "{settled}");
    let (_, log) = ended(server, "TERM");
    assert!(log.contains("request answered"), "{log}");
    for secret in ["s3cret", receipt] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[test]
fn the_settings_are_printed_and_can_be_read_again() {
    let Output { status, stdout, .. } = tollgate(&["config"], None).output().unwrap();
    assert!(status.success());
    let (folder, file) = (tempfile::tempdir().unwrap(), stdout);
    let path = folder.path().join("tollgate.toml");
    std::fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let (server, _) = started(&["--config", path, "--memory", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended(server, "TERM").0, Some(0));
}

#[test]
fn a_hangup_has_the_file_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.toml");
    let write = |limit: &str| {
        let text = format!("[limits.stripe]\nrule = \"concurrency\"\nlimit = {limit}\n");
        std::fs::write(&path, text).unwrap();
    };
    write("1");
    let arguments = ["--config", path.to_str().unwrap(), "--memory", "--listen", "127.0.0.1:0"];
    let mut server = tollgate(&arguments, None).spawn().unwrap();
    let mut printed = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = printed.next().unwrap().unwrap();
    let address = address.strip_prefix("tollgate listens on http://").unwrap().to_owned();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut hang_up = |awaited: &str| {
        let process = server.id().to_string();
        assert!(Command::new("kill").args(["-s", "HUP", &process]).status().unwrap().success());
        let line = log.find(|line| line.as_ref().unwrap().contains(awaited)).unwrap();
        (line.unwrap(), ask(&address, "GET", "/v1/limits/stripe", ""))
    };
    write("2");
    let (_, answer) = hang_up("was read again");
    assert!(answer.contains("\"definition\":{\"rule\":\"concurrency\",\"limit\":2}"), "{answer}");
    assert!(answer.contains("\"who\":\"config\""), "{answer}");
    write("0");
    let (line, answer) = hang_up("was not taken");
    assert!(line.contains("tollgate.toml:1: limits.stripe: "), "{line}");
    assert!(answer.contains("\"limit\":2"), "{answer}");
    server.kill().unwrap();
    server.wait().unwrap();
}
