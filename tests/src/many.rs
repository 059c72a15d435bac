//! Several servers on one database: whatever one of them is told, all of them know and do once.

mod calls;
mod changes;
mod outages;
mod strained;

use crate::http::started::{PATIENCE, Started};
use crate::push;
use crate::servers::postgres::shared;
use serde_json::{Value, json};
use std::future::Future;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate::{Builder, ManualClock, Tollgate};
use tollgate_server::Settings;

/// A schema that no other test has, of this run or of another.
fn schema() -> String {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().file_name().unwrap().to_string_lossy().to_lowercase();
    format!("many_{}", name.replace(|letter: char| !letter.is_ascii_alphanumeric(), ""))
}

/// A server over the database of a url, which may deliver to this machine.
async fn server(url: &str, schema: &str, clock: Option<&ManualClock>) -> Started {
    // Many tests share two processors: what is slow there is not out of reach.
    let builder = Tollgate::builder().prefix(schema).deadline(PATIENCE);
    serving(builder, url, clock).await
}

async fn serving(builder: Builder, url: &str, clock: Option<&ManualClock>) -> Started {
    let builder = clock.iter().fold(builder, |builder, clock| builder.store_time((*clock).clone()));
    let gate = builder.connect(url).await.unwrap();
    let settings = Settings { push: push::settings(), ..Settings::new(([127, 0, 0, 1], 0).into()) };
    let clock = clock.cloned().unwrap_or_default();
    Started::serving((gate, clock), tempfile::tempdir().unwrap(), settings).await
}

/// Two servers that share a database, and its clock.
async fn two() -> [Started; 2] {
    let schema = schema();
    [server(shared(), &schema, None).await, server(shared(), &schema, None).await]
}

/// Two servers that share a database, on a clock that is moved by hand.
async fn two_by_hand() -> [Started; 2] {
    let (schema, clock) = (schema(), ManualClock::new());
    let (clock, url) = (Some(&clock), shared());
    [server(url, &schema, clock).await, server(url, &schema, clock).await]
}

async fn define_queue(server: &Started) {
    server.put("/v1/queues/q", &json!({})).await.success();
}

fn one_slot() -> Value {
    json!({"rule": "concurrency", "limit": 1})
}

/// Returns when it is so.
async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let wait = async {
        while !is_so().await {
            yield_now().await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it does not come to be so");
}
