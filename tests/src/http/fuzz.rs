//! Requests that are nearly right: none is answered with 5xx, none panics, none hangs, and every answer
//! is JSON that says what is wrong. More of them with `PROPTEST_CASES=100000`.

mod lines;
mod mutation;
mod seeds;
mod texts;

use super::client::{Answer, Client};
use super::started::Started;
use mutation::broken;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestCaseError, TestRunner};
use seeds::{Seed, seeds};
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt::{self, Debug};
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tollgate::Span;
use tollgate_server::codes;

/// Requests of each property, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 600;
/// Longest time until a request is answered.
const PATIENCE: Duration = Duration::from_secs(60);
/// A request that has no answer by then waits for a limit, a call, or the rest of itself.
const SOON: Duration = Duration::from_millis(100);
/// Longer than any request may wait: the clock of these servers is moved by hand.
const LONGEST_WAIT: Span = Span::from_minutes(11);
/// The threads that handlers run on are called so, with the number of their server.
const THREADS: &str = "fuzzed-server-";

/// The names of threads that panicked, once for each time.
static PANICKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A request, shown as it is sent.
#[derive(Clone)]
struct Sent(Vec<u8>);

impl Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A server and the threads that it runs on.
struct Fuzzed {
    runtime: Runtime,
    server: Started,
    threads: String,
}

impl Fuzzed {
    fn start() -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        note_panics();
        let threads = format!("{THREADS}{}", STARTED.fetch_add(1, Ordering::SeqCst));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(2).thread_name(&threads).enable_all();
        let runtime = builder.build().unwrap();
        let server = runtime.block_on(Started::kept());
        Self { runtime, server, threads }
    }

    /// How often a thread of this server has panicked.
    fn panics(&self) -> usize {
        PANICKED.lock().unwrap().iter().filter(|name| **name == self.threads).count()
    }

    fn seeds(&self) -> Vec<Seed> {
        self.runtime.block_on(seeds(&self.server))
    }

    /// Checks each of some inputs; a failure shows the smallest, and its seed.
    fn run<S: Strategy>(&self, inputs: &S, check: impl AsyncFn(S::Value)) {
        let mut runner = TestRunner::new(config());
        let ran = runner.run(inputs, |input| {
            let before = self.panics();
            self.runtime.block_on(check(input));
            match self.panics() == before {
                true => Ok(()),
                false => Err(TestCaseError::fail("the server panicked")),
            }
        });
        if let Err(error) = ran {
            panic!("{error}");
        }
        self.runtime.block_on(lives(&self.server));
    }
}

fn config() -> ProptestConfig {
    let config = ProptestConfig::with_source_file(file!());
    let is_told = std::env::var_os("PROPTEST_CASES").is_some();
    // Shrinking sends requests as well: not for longer than a reader would wait.
    let cases = if is_told { config.cases } else { CASES };
    ProptestConfig { cases, max_shrink_time: 60_000, ..config }
}

/// Notes which servers panic. A connection ends silently with its task.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let thread = thread::current();
            if let Some(name) = thread.name().filter(|name| name.starts_with(THREADS)) {
                PANICKED.lock().unwrap().push(name.to_owned());
            }
            before(panicked);
        }));
    });
}

/// The server still does all that it is for.
async fn lives(server: &Started) {
    server.get("/healthz").await.success();
    server.put("/v1/queues/last", &json!({})).await.success();
    server.post("/v1/queues/last/calls", &json!({"lane": "a"})).await.success();
    let claimed = server.post("/v1/queues/last/claim", &json!({})).await.success();
    let settle = json!({"lease": claimed["calls"][0]["lease"], "outcome": "done"});
    assert_eq!(server.settle(&settle).await["settled"], true);
}

/// The answer to bytes that are a whole request; `None` if the server closed the connection.
async fn answer(server: &Started, bytes: &[u8]) -> Option<Answer> {
    let mut client = server.client().await;
    client.send(bytes).await;
    let mut answer = Box::pin(client.answer());
    for _ in 0..PATIENCE.as_millis() / SOON.as_millis() {
        if let Ok(answer) = timeout(SOON, &mut answer).await {
            return answer;
        }
        server.clock.advance(LONGEST_WAIT);
    }
    panic!("there is no answer");
}

/// Fails unless this is an answer that a client can rely on.
fn is_sound(answer: &Answer) {
    let kind = answer.header("content-type");
    match answer.status {
        200 if kind == Some("text/event-stream") => {}
        // A picture.
        200 if kind == Some("text/plain; charset=utf-8") => {}
        // The console, where nothing is left of a path.
        200 if kind == Some("text/html; charset=utf-8") => {}
        200..=202 => {
            assert_eq!(kind, Some("application/json"));
            // Only read, for a call's body is told as it came, and may have numbers that fit no type.
            let json: Result<&RawValue, _> = serde_json::from_str(&answer.text);
            assert!(json.is_ok(), "{json:?}: {}", answer.text);
        }
        status => {
            assert!((400..500).contains(&status), "{status}: {}", answer.text);
            let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
            let known = codes().find(|(known, _)| *known == code);
            assert_eq!(known.map(|(_, status)| status), Some(status), "{}", answer.text);
            assert!(!answer.problem(status, &code).is_empty());
        }
    }
}

/// Whether this is the answer to a head that cannot be read: it has no body, for no one knows what was
/// asked.
fn is_unreadable(answer: &Answer) -> bool {
    matches!(answer.status, 400 | 414 | 431) && answer.text.is_empty()
}

#[test]
fn a_request_that_is_nearly_right_is_answered_well() {
    let fuzzed = Fuzzed::start();
    let requests = broken(fuzzed.seeds()).prop_map(|seed| Sent(seed.bytes()));
    fuzzed.run(&requests, async |Sent(bytes)| {
        let answer = answer(&fuzzed.server, &bytes).await.expect("the connection was closed");
        if !is_unreadable(&answer) {
            is_sound(&answer);
        }
    });
}

#[test]
fn the_seeds_of_fuzzing_are_right() {
    let fuzzed = Fuzzed::start();
    fuzzed.runtime.block_on(async {
        for seed in seeds(&fuzzed.server).await {
            let answer = answer(&fuzzed.server, &seed.bytes()).await.unwrap();
            is_sound(&answer);
            // What was removed, settled or never there is right all the same.
            let is_right = matches!(answer.status, 200..=202 | 404 | 409 | 429);
            assert!(is_right, "{} {}: {}", seed.method, seed.target, answer.text);
        }
    });
}

#[test]
fn any_bytes_on_a_connection_are_borne() {
    let fuzzed = Fuzzed::start();
    let seeds = fuzzed.seeds();
    let flips = vec((any::<Index>(), any::<u8>()), 0..6);
    let input = (0..seeds.len(), flips, weighted(0.2, any::<Index>()));
    let sent = input.prop_map(move |(nth, flips, end)| {
        let mut bytes = seeds[nth].bytes();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.map_or(bytes.len(), |end| end.index(bytes.len())));
        Sent(bytes)
    });
    fuzzed.run(&sent, async |Sent(bytes)| {
        let mut client: Client = fuzzed.server.client().await;
        client.send(&bytes).await;
        // What is not whole has no answer yet, and its connection is closed with the client.
        if let Ok(Some(answer)) = timeout(SOON, client.answer()).await
            && !is_unreadable(&answer)
        {
            is_sound(&answer);
        }
    });
}
