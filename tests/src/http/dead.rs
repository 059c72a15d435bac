//! Dead calls: listed, revived and deleted, by name and in bulk.

use super::started::Started;
use serde_json::json;
use tollgate::Span;

/// A server with dead calls, one in each of these lanes; their ids.
async fn with_dead(lanes: &[&str]) -> (Started, Vec<String>) {
    let server = Started::with_queue(100).await;
    let calls: Vec<_> = lanes.iter().map(|lane| json!({"lane": lane})).collect();
    let ids = server.enqueue(&json!(calls)).await;
    for call in server.claim(&json!({"max": 100})).await {
        server.settle(&json!({"lease": call["lease"], "outcome": "dead"})).await;
    }
    (server, ids)
}

#[tokio::test]
async fn the_dead_are_listed_with_their_cause() {
    let (server, ids) = with_dead(&["a", "b"]).await;
    let dead = server.get("/v1/dead?queue=q&lane=b").await.success();
    assert_eq!(dead["calls"][0]["id"], json!(ids[1]));
    assert_eq!(dead["calls"][0]["died_of"], "given_up");
    let page = server.get("/v1/dead?queue=q&limit=1").await.success();
    assert_eq!(page["next"], json!(ids[0]));
    server.get("/v1/dead").await.problem(400, "invalid_query");
    server.get("/v1/dead?queue=x").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn the_dead_are_revived_by_name_and_at_a_rate() {
    let (server, ids) = with_dead(&["a", "b", "c"]).await;
    let revive = async |body| server.post("/v1/dead/revive", &body).await.success();
    assert_eq!(revive(json!({"ids": [ids[0], "99"]})).await, json!({"revived": 1}));
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 1);
    assert_eq!(revive(json!({"queue": "q", "every": "1s"})).await, json!({"revived": 2}));
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 1);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 1);
}

#[tokio::test]
async fn the_dead_are_deleted_and_the_living_are_not() {
    let (server, ids) = with_dead(&["a", "b"]).await;
    let living = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    let delete = async |body| server.post("/v1/dead/delete", &body).await.success();
    assert_eq!(delete(json!({"ids": [ids[0], living]})).await, json!({"deleted": 1}));
    assert_eq!(delete(json!({"queue": "q"})).await, json!({"deleted": 1}));
    assert_eq!(server.claim(&json!({"max": 9})).await[0]["id"], json!(living));
    for wrong in [json!({}), json!({"ids": [], "queue": "q"}), json!({"queue": "q", "every": "1s"})]
    {
        server.post("/v1/dead/delete", &wrong).await.problem(400, "invalid_body");
    }
}
