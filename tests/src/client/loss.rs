//! Connections that are lost: what is sent again, and what is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate_client::{Client, ClientError, Limit, Outcome, global};

/// A server that reads each request and closes the connection, but for those after the first `lost`: they
/// are answered.
async fn losing(lost: usize, answer: &'static str) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let nth = counted.fetch_add(1, Ordering::SeqCst);
            take_one(stream, (nth >= lost).then_some(answer)).await;
        }
    });
    (client, seen)
}

/// A server that grants the first request a receipt, loses the next three, and takes the fifth.
async fn granting() -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::builder(&url).retries(0).build().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    tokio::spawn(async move {
        let grant = r#"{"delay_ms":0,"limit":1,"remaining":0,"reset_after_ms":0,"receipt":"r"}"#;
        for answer in [Some(grant), None, None, None, Some("{}")] {
            let (stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            take_one(stream, answer).await;
        }
    });
    (client, seen)
}

#[tokio::test]
async fn a_pass_is_let_go_of_though_connections_are_lost() {
    let (client, seen) = granting().await;
    client.consume(global("slots")).await.unwrap().cancel().await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 5);
    let (client, seen) = granting().await;
    drop(client.consume(global("slots")).await.unwrap());
    client.shut_down().await;
    assert_eq!(seen.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_worker_whose_answers_are_too_long_asks_for_fewer_and_then_ends_with_the_cure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (asked, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let mut request = String::new();
            while !request.ends_with('}') {
                let count = stream.read(&mut bytes).await.unwrap();
                request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            let body = request.split("\r\n\r\n").nth(1).unwrap();
            let claim: serde_json::Value = serde_json::from_str(body).unwrap();
            asked.send(claim["max"].as_u64().unwrap()).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let worked = client.worker("q").concurrency(8).run(async |_| Outcome::done()).await;
    let error = worked.unwrap_err();
    assert!(error.to_string().contains("smaller concurrency"), "{error}");
    let asked = [(); 4].map(|()| heard.try_recv().unwrap());
    assert_eq!((asked, heard.try_recv().is_err()), ([8, 4, 2, 1], true));
}

async fn take_one(mut stream: TcpStream, answer: Option<&str>) {
    let mut bytes = vec![0; 4096];
    assert!(stream.read(&mut bytes).await.unwrap() > 0);
    if let Some(answer) = answer {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_is_safe_is_sent_again_when_the_connection_is_lost() {
    let (client, seen) = losing(2, r#"{"limits":[]}"#).await;
    assert_eq!(client.limits().await.unwrap(), []);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    let (client, seen) = losing(1, "{}").await;
    client.limit("stripe", Limit::per_second(1)).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_would_be_paid_twice_is_sent_once() {
    let (client, seen) = losing(1, "{}").await;
    let error = client.consume(global("stripe")).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tries_are_bounded() {
    let (client, seen) = losing(usize::MAX, "{}").await;
    assert!(matches!(client.limits().await.unwrap_err(), ClientError::Unreachable { .. }));
    assert_eq!(seen.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn what_is_no_tollgate_is_told_so() {
    let (client, _) = losing(0, "<html>").await;
    let error = client.limits().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let builder = Client::builder(&url).timeout(std::time::Duration::from_millis(100));
    let error = builder.build().unwrap().limits().await.unwrap_err();
    let error_of_a_start_later = {
        let builder = Client::builder(&url).timeout(std::time::Duration::from_millis(100));
        let client = builder.build().unwrap();
        let hour = tollgate_client::Span::from_secs(3_600);
        client.consume_delayed(global("stripe"), hour).await.unwrap_err()
    };
    for error in [error, error_of_a_start_later] {
        assert!(error.to_string().contains("no answer within 100ms"), "{error}");
    }
}

#[tokio::test]
async fn a_claim_that_could_settle_but_not_claim_is_refused() {
    let problem = r#"{"calls":[],"settled":[],"problem":{"status":404,"code":"unknown_queue","detail":"no q"}}"#;
    let (client, seen) = losing(0, problem).await;
    let worked = client.worker("q").run(async |_| Outcome::done()).await;
    assert_eq!(worked.unwrap_err().code(), Some("unknown_queue"));
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}
