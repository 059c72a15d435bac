//! The end of the server: nobody is left without an answer.

use super::client::request;
use super::{Served, one_toll};
use serde_json::json;

#[tokio::test]
async fn those_who_wait_are_told_that_the_server_stops() {
    let served = Served::limited(json!({ "rule": "token_bucket", "limit": 1, "per": "1h" })).await;
    assert_eq!(served.consume(one_toll()).await.status, 200);
    let wait = json!({ "tolls": [{ "limit": "api" }], "on_exceeded": "wait", "max_wait": "10m" });
    let wait = json!({ "max_wait": "10m", "on_exceeded": "wait", "tolls": wait["tolls"] });
    // What it waits for is an hour away, and so is refused at once; slots have no time.
    let slots = json!({ "rule": "concurrency", "limit": 1 });
    assert_eq!(served.ask("PUT", "/v1/limits/api", &slots).await.status, 200);
    let _held = served.gate.consume(tollgate::global("api")).await.unwrap();
    let mut client = served.connect().await;
    client.write(&request("POST", "/v1/consume", &wait.to_string())).await;
    served.until_waiting(1).await;
    served.stop.send(()).unwrap();
    let answer = client.read().await;
    assert_eq!((answer.status, answer.code()), (503, "shutting_down"));
    served.serving.await.unwrap();
}
