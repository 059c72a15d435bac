//! The command with a store that others share, as a shell runs it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A process of ours, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tollgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    for name in ["TOKEN", "LOG", "STORE", "PREFIX", "DATA", "MEMORY"] {
        command.env_remove(format!("TOLLGATE_{name}"));
    }
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn refused(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(!told.contains("hush"), "{told}");
    told
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server of Redis that keeps nothing on disk.
fn redis(port: u16, folder: &Path) -> Running {
    let (text, dir) = (port.to_string(), folder.to_str().unwrap());
    let mut redis = Command::new("redis-server");
    redis.args(["--port", &text, "--bind", "127.0.0.1", "--dir", dir, "--save", ""]);
    Running(redis.stdout(Stdio::null()).spawn().expect("install redis-server"))
}

/// Asks for something, and returns the answer as it came.
fn ask(address: &str, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"))
}

/// Pays one toll.
fn consume(address: &str, limit: &str) -> String {
    give(address, "POST /v1/consume", &format!("{{\"tolls\":[{{\"limit\":\"{limit}\"}}]}}"))
}

/// Asks for something with a body.
fn give(address: &str, what: &str, body: &str) -> String {
    let head = "HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json";
    send(address, &format!("{what} {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn send(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_url_that_is_none_is_refused_and_its_password_is_not_shown() {
    for (url, said) in [
        ("mysql://me:hush@a", "redis://…, postgres://… or nats://…"),
        ("hush", "redis://…, postgres://… or nats://…"),
        ("redis://:hush@a:b:c", "the url of Redis cannot be used"),
        ("postgres://me:hush@a:b:c", "the url of PostgreSQL cannot be read"),
        ("nats://me:hush@a:b:c", "NATS cannot be connected to"),
    ] {
        let told = refused(&mut tollgate(&["serve", "--store", url, "--listen", "127.0.0.1:0"]));
        assert!(told.contains(said), "{told}");
        let mut command = tollgate(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(refused(command.env("TOLLGATE_STORE", url)).contains(said), "{url}");
    }
    let told = refused(&mut tollgate(&["serve", "--store", "redis://:hush@a", "--memory"]));
    assert!(told.contains("cannot be used with"), "{told}");
}

#[test]
fn a_server_that_is_there_before_its_store_has_its_limits_in_force_once_that_comes() {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let file = folder.path().join("tollgate.toml");
    std::fs::write(&file, "[limits.api]\nrule = \"concurrency\"\nlimit = 2\n").unwrap();
    let url = format!("redis://127.0.0.1:{port}");
    let config = ["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut command = tollgate(&[&["serve", "--store", &url][..], &config[..]].concat());
    let mut server = Running(command.spawn().unwrap());
    let mut printed = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let [address, place, serves] = [(); 3].map(|()| printed.next().unwrap().unwrap());
    let address = address.strip_prefix("tollgate listens on http://").unwrap();
    assert!(place.contains(&format!("redis://127.0.0.1:{port}, ")), "{place}");
    assert!(serves.contains("limits only: no queues, calls, schedules, push or QStash"));
    let mut log = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let warned = log.find(|line| line.contains("the server is not ready")).unwrap();
    assert!(warned.contains("limits_wait=true"), "{warned}");
    assert!(ask(address, "/readyz").starts_with("HTTP/1.1 503"));
    assert!(ask(address, "/v1/limits/api").contains("store_unreachable"));

    let _redis = redis(port, folder.path());
    log.find(|line| line.contains("limits is in force")).unwrap();
    let answer = ask(address, "/v1/limits/api");
    assert!(answer.contains("\"who\":\"config\""), "{answer}");
    assert!(ask(address, "/readyz").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_server_waits_for_its_database_and_says_so_without_its_password() {
    let url = format!("postgres://me:hush@127.0.0.1:{}/app", free_port());
    let mut command = tollgate(&["serve", "--store", &url, "--listen", "127.0.0.1:0"]);
    let mut server = Running(command.spawn().unwrap());
    let log = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    // Twice: it is asked for again and again.
    let warned: Vec<String> = log.filter(|line| line.contains("not there yet")).take(2).collect();
    for line in &warned {
        assert!(line.contains("store=postgres://127.0.0.1") && !line.contains("hush"), "{line}");
    }
    assert_eq!((warned.len(), server.0.try_wait().unwrap()), (2, None));
}

/// A server whose file says so much of the limit `api`.
struct Declaring {
    server: Running,
    address: String,
    log: Log,
    /// What it said of definitions that differ until its own was in force.
    warned: Vec<String>,
}

type Log = Box<dyn Iterator<Item = String>>;

impl Declaring {
    fn new(url: &str, folder: &Path, limit: u64) -> Self {
        let file = folder.join(format!("{limit}.toml"));
        let rule = "rule = \"token_bucket\"\nper = \"1h\"";
        std::fs::write(&file, format!("[limits.api]\n{rule}\nlimit = {limit}\n")).unwrap();
        let config = ["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        let mut command = tollgate(&[&["serve", "--store", url][..], &config[..]].concat());
        let mut server = Running(command.spawn().unwrap());
        let mut printed = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let address = printed.next().unwrap().unwrap();
        let address = address.strip_prefix("tollgate listens on http://").unwrap().to_owned();
        let log = BufReader::new(server.0.stderr.take().unwrap()).lines();
        let mut log: Log = Box::new(log.map(Result::unwrap));
        // It waits for a store that is not there yet, too.
        let until = log.by_ref().take_while(|line| !line.contains("limit changed"));
        let warned = until.filter(|line| line.contains("otherwise")).collect();
        Self { server, address, log, warned }
    }

    /// The rest of its log, once it was told to end.
    fn rest(mut self) -> Vec<String> {
        let process = self.server.0.id().to_string();
        assert!(Command::new("kill").arg(process).status().unwrap().success());
        self.server.0.wait().unwrap();
        self.log.collect()
    }
}

#[test]
fn two_definitions_of_a_limit_are_named_once_for_each_change() {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let _redis = redis(port, folder.path());
    let url = format!("redis://127.0.0.1:{port}");
    let mut old = Declaring::new(&url, folder.path(), 100);
    assert!(consume(&old.address, "api").contains("\"limit\":100"));
    let new = Declaring::new(&url, folder.path(), 200);
    // The newest counts at once, and whoever defined it otherwise finds out as it asks.
    assert!(consume(&old.address, "api").contains("\"limit\":200"));
    let found = old.log.find(|line| line.contains("another process defined a limit")).unwrap();
    for _ in 0..5 {
        assert!(consume(&old.address, "api").contains("\"limit\":200"));
    }
    assert!(old.warned.is_empty() && new.warned.len() == 1, "{:?}", new.warned);
    for line in [&found, &new.warned[0]] {
        for part in ["WARN", "limit=\"api\"", "100 per 1h", "200 per 1h", "who=\"config\""] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    for log in [old.rest(), new.rest()] {
        assert!(log.iter().all(|line| !line.contains("otherwise")), "{log:?}");
    }
}

#[test]
fn a_limit_that_is_spread_is_asked_alone_and_stays_spread() {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let _redis = redis(port, folder.path());
    let server = Declaring::new(&format!("redis://127.0.0.1:{port}"), folder.path(), 100);
    let address = &server.address;
    let definition = r#"{"rule":"token_bucket","limit":5,"per":"1h","spread":true}"#;
    let defined = give(address, "PUT /v1/limits/tenants", definition);
    assert!(defined.contains(r#""spread":true"#), "{defined}");
    let paid = consume(address, "tenants");
    assert!(paid.contains(r#""remaining":4"#), "{paid}");
    let combined = r#"{"tolls":[{"limit":"tenants"},{"limit":"api"}]}"#;
    let told = give(address, "POST /v1/consume", combined);
    assert!(told.starts_with("HTTP/1.1 422") && told.contains("limit_spread_combined"), "{told}");
    let together = definition.replace(",\"spread\":true", "");
    let told = give(address, "PUT /v1/limits/tenants", &together);
    assert!(told.starts_with("HTTP/1.1 409") && told.contains("limit_spread_stays"), "{told}");
}
