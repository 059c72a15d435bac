//! Connections: many requests on one, slow clients, and an end that loses no answer.

use super::client::request;
use super::started::{JSON, Kept, Started};
use std::future::pending;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate::Limit;
use tollgate_server::{OPENAPI, Settings};

/// Rounds of two requests. A reply that waits for the first to be acknowledged waits for 40 ms, so
/// that all of them would take far longer than they get.
const ROUNDS: usize = 200;
const ROUNDS_TIME: Duration = Duration::from_secs(4);

#[tokio::test]
async fn pipelined_replies_are_not_held_back() {
    // A commit takes as long as it takes: what is looked at is the connection.
    let server = Started::on(Kept::InMemory, Settings::new(([127, 0, 0, 1], 0).into())).await;
    server.gate.limit("stripe", Limit::per_second(1_000_000)).await.unwrap();
    let body = "{\"tolls\":[{\"limit\":\"stripe\"}]}";
    let one = request("POST", "/v1/consume", &[JSON], body);
    let mut client = server.client().await;
    let rounds = async {
        for _ in 0..ROUNDS {
            client.send(&one.repeat(2)).await;
            for _ in 0..2 {
                client.answer().await.unwrap().success();
            }
        }
    };
    timeout(ROUNDS_TIME, rounds).await.expect("replies are held back");
}

#[tokio::test]
async fn many_requests_fit_one_connection() {
    let server = Started::new().await;
    let mut client = server.client().await;
    client.send(&request("GET", "/healthz", &[], "").repeat(500)).await;
    for _ in 0..500 {
        client.answer().await.unwrap().success();
    }
}

#[tokio::test]
async fn a_mistake_does_not_end_the_connection() {
    let server = Started::new().await;
    let mut client = server.client().await;
    for _ in 0..3 {
        client.send(&request("POST", "/v1/consume", &[JSON], "{")).await;
        client.answer().await.unwrap().problem(400, "malformed_json");
        client.send(&request("GET", "/nowhere", &[], "")).await;
        client.answer().await.unwrap().problem(404, "unknown_route");
    }
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let server = Started::new().await;
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let wide = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(100_000));
    for (bytes, status) in [
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
        ("GET / HTTP/9.9\r\n\r\n", 400),
        ("GET  /\r\n\r\n", 400),
        (&many, 431),
        (&long, 431),
        (&wide, 431),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The server may have said no and closed before all was sent.
        let _ = stream.write_all(bytes.as_bytes()).await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, format!("HTTP/1.1 {status}").as_bytes(), "{bytes:.40}");
    }
    server.get("/healthz").await.success();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_head_is_let_go() {
    let server = Started::new().await;
    let mut client = server.client().await;
    client.send(b"GET /healthz HTTP/1.1\r\nhost:").await;
    assert!(client.answer().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_body_is_let_go() {
    let server = Started::new().await;
    let mut client = server.client().await;
    let head = request("POST", "/v1/consume", &[JSON, ("content-length", "12")], "");
    client.send(&head).await;
    client.send(b"{\"tolls\":").await;
    let told = client.answer().await.unwrap().problem(408, "body_too_slow");
    assert!(told.contains("10 s"), "{told}");
    assert!(client.answer().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_its_answers_is_let_go() {
    let server = Started::new().await;
    let asked = 1000;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // More answers than the system keeps for a client that does not read them.
    stream.write_all(&request("GET", "/openapi.json", &[], "").repeat(asked)).await.unwrap();
    // The clock moves on by itself once nobody has anything left to do.
    let _ = timeout(Duration::from_secs(60), pending::<()>()).await;
    let mut read = Vec::new();
    // It may be a reset, with what was not sent left behind.
    let _ = stream.read_to_end(&mut read).await;
    assert!(read.len() < asked * OPENAPI.len(), "all was kept for it");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let mut server = Started::new().await;
    let mut client = server.client().await;
    client.send(&request("GET", "/healthz", &[], "")).await;
    client.answer().await.unwrap().success();
    server.begin_stop();
    assert!(client.answer().await.is_none());
    let address = server.address;
    server.ended().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_answer_under_way_is_finished_before_the_end() {
    let mut server = Started::new().await;
    let mut client = server.client().await;
    let body = "{\"tolls\":[]}";
    client.send(&request("POST", "/v1/consume", &[JSON, ("content-length", "12")], "")).await;
    // Answered on another connection: the first request is surely under way.
    server.get("/healthz").await.success();
    server.begin_stop();
    client.send(body.as_bytes()).await;
    client.answer().await.unwrap().problem(422, "no_toll");
    server.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_does_not_hold_up_the_end() {
    let mut server = Started::new().await;
    let mut client = server.client().await;
    client.send(&request("POST", "/v1/consume", &[JSON, ("content-length", "12")], "")).await;
    server.get("/healthz").await.success();
    server.begin_stop();
    server.ended().await;
}
