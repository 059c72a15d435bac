//! An upstream that enforces what it publishes: by its own clock, at the instant the head of a request
//! arrives, for each tenant. What is over its limits is answered with 429, and counted.

use super::published::{Arrival, Published, earliest};
use super::{Answering, serve};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tollgate::{Clock, SystemClock};

/// A server that ends when it is dropped.
pub(crate) struct Enforcing {
    address: SocketAddr,
    books: Arc<Mutex<Books>>,
    arrived: mpsc::UnboundedReceiver<Arrived>,
    _tasks: JoinSet<()>,
}

/// A request that was within the limits.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) tenant: String,
    /// Its number in its lane.
    pub(crate) number: usize,
}

struct Books {
    rules: Vec<Published>,
    clock: SystemClock,
    arrivals: HashMap<String, Vec<Arrival>>,
    violations: u64,
    in_flight: usize,
    /// Requests that are answered when as many are here as may be.
    held: VecDeque<oneshot::Sender<()>>,
    /// How many requests there will be: the last ones are not held.
    expected: usize,
}

impl Enforcing {
    /// One that expects so many requests.
    pub(crate) async fn new(rules: &[Published], expected: usize) -> Self {
        let books = Arc::new(Mutex::new(Books {
            rules: rules.to_vec(),
            clock: SystemClock::new(),
            arrivals: HashMap::new(),
            violations: 0,
            in_flight: 0,
            held: VecDeque::new(),
            expected,
        }));
        let (tell, arrived) = mpsc::unbounded_channel();
        let kept = books.clone();
        let answers: Arc<Answering> = Arc::new(move |request| {
            // Here, not in the future: this is when the head arrived.
            let held = kept.lock().unwrap().arrive(&request, &tell);
            let books = kept.clone();
            Box::pin(async move { answer(request, held, &books).await })
        });
        let (address, _, tasks) = serve(answers).await;
        Self { address, books, arrived, _tasks: tasks }
    }

    /// Where a tenant's calls go, by number.
    pub(crate) fn url(&self, tenant: &str, number: usize) -> String {
        format!("http://{}/{tenant}/{number}", self.address)
    }

    /// What arrives next within the limits.
    pub(crate) async fn next(&mut self) -> Arrived {
        crate::gate::patiently(self.arrived.recv()).await.unwrap()
    }

    pub(crate) fn violations(&self) -> u64 {
        self.books.lock().unwrap().violations
    }

    pub(crate) fn arrivals(&self) -> HashMap<String, Vec<Arrival>> {
        self.books.lock().unwrap().arrivals.clone()
    }
}

/// Whether a request is over the limits, or when it is answered.
type Held = Option<oneshot::Receiver<()>>;

impl Books {
    fn arrive(
        &mut self,
        request: &Request<Incoming>,
        tell: &mpsc::UnboundedSender<Arrived>,
    ) -> Held {
        let now = self.clock.now();
        let path = request.uri().path().strip_prefix('/').unwrap();
        let (tenant, number) = path.split_once('/').unwrap();
        let weight = request.headers().get("x-weight");
        let weight = weight.map_or(1, |weight| weight.to_str().unwrap().parse().unwrap());
        self.in_flight += 1;
        let before = self.arrivals.entry(tenant.to_owned()).or_default();
        let is_crowded = self
            .rules
            .iter()
            .any(|rule| matches!(rule, Published::AtOnce { limit } if self.in_flight > *limit));
        if is_crowded || now < earliest(&self.rules, before, weight) {
            self.violations += 1;
            return None;
        }
        before.push((now, weight));
        drop(tell.send(Arrived { tenant: tenant.to_owned(), number: number.parse().unwrap() }));
        Some(self.hold())
    }

    /// With a limit on requests at once, each is held until there are as many as may be: a limit that
    /// is not used to the full ends in silence.
    fn hold(&mut self) -> oneshot::Receiver<()> {
        let (release, held) = oneshot::channel();
        self.held.push_back(release);
        let arrived: usize = self.arrivals.values().map(Vec::len).sum();
        let is_full = |rule: &Published| match rule {
            Published::AtOnce { limit } => self.held.len() >= *limit,
            _ => true,
        };
        if arrived >= self.expected {
            self.held.clear();
        } else if self.rules.iter().all(is_full) {
            drop(self.held.pop_front());
        }
        held
    }
}

async fn answer(
    request: Request<Incoming>,
    held: Held,
    books: &Mutex<Books>,
) -> Response<Full<Bytes>> {
    let is_within = held.is_some();
    if let Some(held) = held {
        drop(held.await);
    }
    drop(request);
    books.lock().unwrap().in_flight -= 1;
    match is_within {
        true => super::status(200, &[], ""),
        false => super::status(429, &[("retry-after", "1")], "over the limit"),
    }
}
