//! Settings from files, variables and flags.

use super::*;
use crate::access::Role;
use std::path::PathBuf;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), OsString::from(value));
    Environment(variables.iter().map(pair).collect())
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn read(text: &str) -> Result<Config, ConfigError> {
    let (_folder, path) = written(text);
    Config::read(ServerWire::default(), &Environment::default(), Some(&path))
}

/// What is wrong, without the folder in front.
fn wrong(text: &str) -> String {
    let told = read(text).unwrap_err().to_string();
    told.split_once("tollgate.toml").map_or(told.clone(), |(_, rest)| rest.to_owned())
}

/// The defaults with all that is shown behind a mark of a comment.
fn with_examples() -> String {
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with([' ', '\0']) => rest.to_owned(),
        _ => line.to_owned(),
    };
    DEFAULTS.lines().map(uncommented).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_defaults_are_read() {
    let config = Config::read(ServerWire::default(), &Environment::default(), None).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8655");
    assert_eq!(config.place, Place::Folder("./tollgate-data".into()));
    assert_eq!((config.log.as_str(), config.log_format), ("info", LogFormat::Text));
    assert_eq!(config.history, (Span::from_days(7), 1 << 30));
    assert!(config.tls.is_none() && config.tokens.is_empty());
}

#[test]
fn the_examples_are_read_and_are_the_defaults_they_say_they_are() {
    let text = with_examples();
    let file = FileWire::parse("examples", &text).unwrap();
    let ServerWire { listen, data, memory, log, log_format, tls_cert, tls_key, .. } =
        file.server.clone();
    assert!(file.server.store.is_some() && file.server.prefix.as_deref() == Some("tollgate"));
    let is_said = [listen.is_some(), data.is_some(), memory.is_some(), log.is_some()];
    assert_eq!(is_said, [true; 4]);
    assert!(log_format.is_some() && tls_cert.is_some() && tls_key.is_some());
    let tokens = file.tokens().unwrap();
    assert!(tokens[0].roles.allow(Role::Work) && !tokens[0].roles.allow(Role::Read));
    let desired = file.desired().unwrap();
    assert_eq!(desired.limits["stripe"].partitions.len(), 1);
    assert_eq!(desired.limits["stripe"].limit.taken_ahead(), tollgate::Span::from_millis(10));
    let mut queue = desired.queues["charges"].clone();
    queue.tolls.clear();
    assert_eq!(queue, tollgate::lanes::QueueSpec::default());
    let hooks = desired.queues["hooks"].delivery.as_deref().unwrap();
    let hooks = tollgate::Delivery::from_bytes(hooks).unwrap();
    assert_eq!(hooks.destination.as_deref(), Some("https://api.example.com/hooks"));
    assert_eq!((hooks.fatal, hooks.costs.len()), (vec![400, 404], 1));
    assert!(hooks.callback.is_some() && hooks.failure_callback.is_some());
}

#[test]
fn a_flag_wins_over_a_variable_and_that_over_the_file() {
    let (_folder, path) =
        written("[server]\nlisten = \"127.0.0.1:1\"\nmemory = true\nlog = \"warn\"\n");
    let variables = environment(&[("LISTEN", "127.0.0.1:2"), ("DATA", "/kept")]);
    let config = Config::read(ServerWire::default(), &variables, Some(&path)).unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.place, Place::Folder("/kept".into()));
    assert_eq!(config.log, "warn");
    let flags = ServerWire {
        listen: Some("127.0.0.1:3".to_owned()),
        memory: Some(true),
        ..ServerWire::default()
    };
    let config = Config::read(flags, &variables, Some(&path)).unwrap();
    assert_eq!((config.listen.port(), config.place), (3, Place::Memory));
}

fn place_of(flags: ServerWire, variables: &[(&str, &str)], text: &str) -> Place {
    let (_folder, path) = written(text);
    Config::read(flags, &environment(variables), Some(&path)).unwrap().place
}

#[test]
fn whoever_names_a_place_last_is_heard() {
    let store = |url: &str| Some(url.parse().unwrap());
    let shared = |url: &str, prefix: Option<&str>| {
        Place::Shared(url.parse().unwrap(), prefix.map(str::to_owned))
    };
    let (none, file) = (ServerWire::default, "[server]\nstore = \"redis://file\"\n");
    assert_eq!(place_of(none(), &[], file), shared("redis://file", None));
    let variables = [("STORE", "nats://variable"), ("PREFIX", "ours")];
    assert_eq!(place_of(none(), &variables, file), shared("nats://variable", Some("ours")));
    let flags = ServerWire { store: store("postgres://flag"), ..none() }.with_place_meant();
    for text in [file, "[server]\nmemory = true\n", "[server]\ndata = \"/kept\"\n"] {
        let place = place_of(flags.clone(), &[("DATA", "/kept")], text);
        assert_eq!(place, shared("postgres://flag", None));
    }
    assert_eq!(place_of(none(), &[("DATA", "/kept")], file), Place::Folder("/kept".into()));
    assert_eq!(place_of(none(), &[("MEMORY", "true")], file), Place::Memory);
    let flags = ServerWire { memory: Some(true), ..none() };
    assert_eq!(place_of(flags, &variables, file), Place::Memory);
}

#[test]
fn a_store_and_another_place_are_not_named_in_one_breath() {
    let told = wrong("[server]\nstore = \"redis://:hush@a\"\ndata = \"/kept\"\n");
    assert!(told.starts_with("store, data: limits are in one place"), "{told}");
    let told = wrong("[server]\nstore = \"redis://:hush@a\"\nmemory = true\n");
    assert!(told.starts_with("store, memory: ") && !told.contains("hush"), "{told}");
    let variables = environment(&[("STORE", "redis://:hush@a"), ("DATA", "/kept")]);
    let error = Config::read(ServerWire::default(), &variables, None).unwrap_err().to_string();
    assert!(error.starts_with("TOLLGATE_STORE, TOLLGATE_DATA: "), "{error}");
    let told = wrong("[server]\nstore = \"redis://:hush@a\"\n[queues.a]\n");
    assert!(told.contains("in Redis and NATS there are limits alone"), "{told}");
}

#[test]
fn a_name_that_is_not_known_is_refused_with_its_line() {
    assert!(
        wrong("[server]\nlisten = \"[::1]:1\"\nport = 1\n").starts_with(":3: unknown field `port`")
    );
    assert!(wrong("[serve]\n").starts_with(":1: unknown field `serve`"));
    let told = wrong("\n[limits.a]\nrule = \"concurrency\"\nlimit = 1\nper_second = 2\n");
    assert!(told.starts_with(":2: limits.a: unknown field `per_second`"), "{told}");
    let told = wrong("[queues.a]\nleese = \"1s\"\n");
    assert!(told.starts_with(":1: queues.a: unknown field `leese`"), "{told}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    for (text, told) in [
        ("[server]\nlisten = 1\n", ":2: invalid type"),
        ("[server\n", ":1: "),
        ("[limits.a]\nrule = \"concurrency\"\nlimit = 0\n", ":1: limits.a: "),
        ("[limits.a]\nrule = \"concurrency\"\nlimit = -1\n", ":1: limits.a: "),
        (
            "[limits.a]\nrule = \"concurrency\"\nlimit = 1\npartitions = 1\n",
            ":1: limits.a: `partitions`",
        ),
        ("[queues.a]\ndepth_max = 0\n", ":1: queues.a: a queue needs a depth"),
        (
            "[[tokens]]\nname = \"a\"\nhash = \"x\"\nroles = [\"read\"]\n",
            ":1: token \"a\": a hash is",
        ),
    ] {
        assert!(wrong(text).starts_with(told), "{text}: {}", wrong(text));
    }
    assert!(wrong("[server]\nlisten = \"here\"\n").contains("give an address and a port"));
    assert!(wrong("[server]\ntls_cert = \"a\"\n").contains("give both or neither"));
    assert!(wrong("[server]\nmemory = true\n[queues.a]\n").contains("limits alone"));
}

#[test]
fn a_variable_that_cannot_be_read_is_named() {
    for (name, value) in
        [("MEMORY", "yes"), ("HISTORY_BYTES", "-1"), ("LOG_FORMAT", "xml"), ("TOKEN", "a b")]
    {
        let variables = environment(&[(name, value)]);
        let told = Config::read(ServerWire::default(), &variables, None).unwrap_err().to_string();
        assert!(told.starts_with(&format!("TOLLGATE_{name}: ")), "{told}");
    }
}

#[test]
fn the_token_of_the_environment_comes_to_those_of_the_file() {
    let hash = format!("sha256:{}", "0".repeat(64));
    let file = format!("[[tokens]]\nname = \"ci\"\nhash = \"{hash}\"\nroles = [\"read\"]\n");
    let (_folder, path) = written(&file);
    let variables = environment(&[("TOKEN", "secret")]);
    let config = Config::read(ServerWire::default(), &variables, Some(&path)).unwrap();
    let names: Vec<_> = config.tokens.iter().map(|token| token.name.as_str()).collect();
    assert_eq!(names, ["ci", "admin"]);
}

#[test]
fn how_calls_are_delivered_is_read_and_what_is_wrong_with_it_is_told() {
    let defaults = Config::read(ServerWire::default(), &Environment::default(), None).unwrap();
    assert_eq!(defaults.push.timeout, Span::from_secs(30));
    assert_eq!(defaults.push.lease, Span::from_secs(30));
    assert!(defaults.push.addresses.allowed.is_empty() && defaults.push.signing.is_none());
    let (_folder, path) = written("[push]\ntimeout = \"5s\"\nallow_addresses = [\"10.0.0.0/8\"]\n");
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let variables = environment(&[
        ("PUSH_ALLOW_ADDRESSES", "127.0.0.1, ::1"),
        ("PUSH_SIGNING_KEY", key),
        ("PUSH_LEASE", "2s"),
    ]);
    let config = Config::read(ServerWire::default(), &variables, Some(&path)).unwrap();
    assert_eq!(config.push.timeout, Span::from_secs(5));
    assert_eq!(config.push.lease, Span::from_secs(2));
    let allowed = config.push.addresses.allowed.iter().map(ToString::to_string);
    assert_eq!(allowed.collect::<Vec<_>>(), ["127.0.0.1/32", "::1/128"]);
    assert!(config.push.signing.is_some());
    for (text, told) in [
        ("[push]\ntimeout = \"soon\"\n", "push.timeout"),
        ("[push]\nlease = \"99ms\"\n", "push.lease"),
        ("[push]\nlease = \"25h\"\n", "push.lease"),
        ("[push]\nallow_addresses = [\"example.com\"]\n", "push.allow_addresses"),
        ("[push]\nsigning_key = \"hush\"\n", "push.signing_key"),
        ("[push]\nanswer_bytes_max = 99999999999\n", "push.answer_bytes_max"),
        ("[push]\nca_file = \"/none\"\n", "push.ca_file"),
        ("[push]\nretries = 1\n", "retries"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("hush"), "{error}");
    }
}
