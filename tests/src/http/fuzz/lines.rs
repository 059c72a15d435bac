//! Streams of calls: wherever they are cut on the way, the same calls come of them.

use super::Fuzzed;
use crate::http::client::request;
use crate::http::started::{JSON, Started};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// A stream as it is sent, and the calls in it.
#[derive(Debug, Clone)]
struct Stream {
    calls: Vec<Value>,
    pieces: Vec<Vec<u8>>,
}

fn streams() -> impl Strategy<Value = Stream> {
    let text = prop_oneof![".{0,12}", "[\\\\\"\n\r\u{2028}é😀]{0,12}"];
    let body = prop_oneof![text.prop_map(Value::from), any::<i64>().prop_map(Value::from)];
    let call = ("[a-zé ]{1,8}", body);
    let call = call.prop_map(|(lane, body)| json!({"lane": lane, "body": {"value": body}}));
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just(" \t\r\n \n")];
    (vec((call, end), 0..12), any::<bool>(), vec(any::<Index>(), 0..20)).prop_map(
        |(lines, is_ended, cuts)| {
            let mut bytes: Vec<u8> = Vec::new();
            for (call, end) in &lines {
                bytes.extend(format!("{call}{end}").bytes());
            }
            if !is_ended {
                bytes.truncate(bytes.trim_ascii_end().len());
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let pieces = cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect();
            Stream { calls: lines.into_iter().map(|(call, _)| call).collect(), pieces }
        },
    )
}

#[test]
fn a_stream_gives_the_same_calls_wherever_it_is_cut() {
    let (fuzzed, number) = (Fuzzed::start(), AtomicUsize::new(0));
    let server = &fuzzed.server;
    fuzzed.run(&streams(), async |Stream { calls, pieces }| {
        let queue = format!("/v1/queues/{}", number.fetch_add(1, Ordering::SeqCst));
        server.put(&queue, &json!({"order": {"parallel": 100}})).await.success();
        assert_eq!(handed_in(server, &queue, &pieces).await, calls.len() as u64);
        let claim = request("POST", &format!("{queue}/claim"), &[JSON], "{\"max\":100}");
        let mut found = server.send(&claim).await.success()["calls"].as_array().unwrap().clone();
        found.sort_by_key(|call| call["id"].as_str().unwrap().parse::<u64>().unwrap());
        let found = found.iter().map(|call| json!({"lane": call["lane"], "body": call["body"]}));
        assert_eq!(found.collect::<Vec<_>>(), calls);
    });
}

/// Sends a stream in pieces, each a chunk and a packet; how many calls were accepted.
async fn handed_in(server: &Started, queue: &str, pieces: &[Vec<u8>]) -> u64 {
    let mut client = server.client().await;
    let head = format!(
        "POST {queue}/calls HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-ndjson\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    client.send(head.as_bytes()).await;
    for piece in pieces {
        let size = format!("{:x}\r\n", piece.len());
        client.send(&[size.as_bytes(), piece, b"\r\n"].concat()).await;
    }
    client.send(b"0\r\n\r\n").await;
    let answer = timeout(super::PATIENCE, client.answer()).await.unwrap().unwrap();
    answer.success()["accepted"].as_u64().unwrap()
}
