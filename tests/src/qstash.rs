//! The QStash API over real sockets, on a clock that is moved by hand, with a receiver that answers when it
//! is told to.

mod dead;
mod flow;
mod logs;
mod messages;
mod operated;
mod schedules;

use crate::http::client::Answer;
use crate::http::started::{Kept, PATIENCE, Started};
use crate::push::upstream::holding::{Held, Holding};
use crate::push::upstream::status;
use serde_json::Value;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate::Span;
use tollgate::lanes::{CallId, CallState};
use tollgate::push::PushSettings;
use tollgate::push::address::AddressPolicy;
use tollgate_server::{Settings, TokenSpec};

/// Longer than any test lets pass: a clock that jumps leaves no time to renew leases.
const LONG: Span = Span::from_hours(12);

/// A server that delivers to a receiver.
struct World {
    server: Started,
    receiver: Holding,
}

impl World {
    async fn new() -> Self {
        Self::with_tokens(Vec::new()).await
    }

    async fn with_tokens(tokens: Vec<TokenSpec>) -> Self {
        Self::with(Settings { tokens, ..settings() }).await
    }

    async fn with(settings: Settings) -> Self {
        let server = Started::on(Kept::InFolder, settings).await;
        Self { server, receiver: Holding::new().await }
    }

    /// Hands in a message; its id.
    async fn publish(&self, headers: &[(&str, &str)]) -> String {
        self.hand_in("publish", headers).await
    }

    /// Hands in messages with a key, as many; their ids.
    async fn flow(&self, key: &str, value: &str, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.publish(&keyed(key, value)).await);
        }
        ids
    }

    /// Hands in a message by one of the doors; its id.
    async fn hand_in(&self, door: &str, headers: &[(&str, &str)]) -> String {
        let path = format!("/v2/{door}/{}", self.receiver.url("/"));
        let answer = self.server.ask("POST", &path, headers, "hello").await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["messageId"].as_str().unwrap().to_owned()
    }

    async fn ask(&self, request: &str) -> Answer {
        let (method, path) = request.split_once(' ').unwrap();
        self.server.ask(method, path, &[], "").await
    }

    /// The JSON of a success.
    async fn told(&self, request: &str) -> Value {
        self.ask(request).await.success()
    }

    /// The status of a refusal, which says why.
    async fn refused(&self, request: &str) -> u16 {
        let answer = self.ask(request).await;
        assert!(
            answer.json()["error"].as_str().is_some_and(|why| !why.is_empty()),
            "{}",
            answer.text
        );
        answer.status
    }

    async fn key(&self, key: &str) -> Value {
        self.told(&format!("GET /v2/flowControl/{key}")).await
    }

    /// Some fields of a key.
    async fn fields<const N: usize>(&self, key: &str, names: [&str; N]) -> [Value; N] {
        let whole = self.key(key).await;
        names.map(|name| whole[name].clone())
    }

    /// Returns once a message waits for this reason.
    async fn until_waits(&self, message: &str, reason: &str) {
        self.server.until_reason(number(message), reason).await;
    }

    /// Returns once a message is in a state; `None`: has ended for good.
    async fn until_state(&self, message: &str, state: Option<CallState>) {
        let call = CallId(number(message).parse().unwrap());
        let wait = async {
            while self.server.gate.call(call).await.unwrap().map(|call| call.state) != state {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the message is elsewhere");
    }

    /// Lets so many seconds pass.
    fn pass(&self, seconds: u64) {
        self.server.clock.advance(Span::from_secs(seconds));
    }
}

/// A server that delivers to this machine.
fn settings() -> Settings {
    let addresses = AddressPolicy { allowed: vec!["127.0.0.1".parse().unwrap()] };
    let push = PushSettings { addresses, timeout: LONG, lease: LONG, ..PushSettings::default() };
    Settings { push, ..Settings::new(([127, 0, 0, 1], 0).into()) }
}

/// The number of a message's call.
fn number(message: &str) -> &str {
    message.strip_prefix("msg_").unwrap()
}

/// The headers of a message with one key.
fn keyed<'a>(key: &'a str, value: &'a str) -> [(&'a str, &'a str); 2] {
    [("upstash-flow-control-key", key), ("upstash-flow-control-value", value)]
}

/// Answers a request with this status.
fn answer(held: Held, code: u16) {
    held.answer(status(code, &[], ""));
}

/// The message that a request delivers.
fn delivered(held: &Held) -> String {
    held.asked.header("upstash-message-id").unwrap().to_owned()
}
