//! `/v1/consume` over keep-alive beside handlers that do nothing, in alternating rounds: one on the
//! same server, and one on the barest server of the same library.
//!
//! Each server runs on a thread of its own, so that its processor time is its own; one more thread
//! asks, over a few connections, one request after the other on each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tollgate::{Limit, Tollgate};
use tollgate_server::{Server, Settings};

use crate::folder::Folder;
use crate::process::thread_cpu_ns;
use crate::table::{Table, grouped};

const CONNECTIONS: usize = 16;
const REQUESTS_EACH: usize = 2_000;
const ROUNDS: usize = 7;
const BODY: &str = r#"{"tolls":[{"limit":"bench","partition":"acme"}]}"#;
/// As long as ours is, so that both write as much.
const IDLE_ANSWER: &str =
    r#"{"granted":true,"delay_ms":0,"limit":1000000,"remaining":999999,"reset_after_ms":1}"#;

/// A handler that takes part: on which server, and what is asked of it.
struct Handler<'a> {
    name: &'static str,
    server: &'a Running,
    request: String,
}

/// Measures all handlers and makes a table.
pub(crate) fn measure() -> anyhow::Result<Table> {
    let [bare, ours] = [start("nothing", serve_nothing)?, start("consume", serve_consume)?];
    let kept = start("kept", serve_kept)?;
    let post = |path: &str| {
        let length = BODY.len();
        let kind = "content-type: application/json";
        format!(
            "POST {path} HTTP/1.1\r\nhost: b\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{BODY}"
        )
    };
    let health = "GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n".to_owned();
    let handlers = [
        Handler {
            name: "nothing, on a bare axum server",
            server: &bare,
            request: post("/nothing"),
        },
        Handler { name: "nothing, on ours: /healthz", server: &ours, request: health },
        Handler { name: "/v1/consume", server: &ours, request: post("/v1/consume") },
        Handler { name: "/v1/consume, in a folder", server: &kept, request: post("/v1/consume") },
    ];
    let mut best = [Round::WORST; 4];
    for _ in 0..ROUNDS {
        for (handler, best) in handlers.iter().zip(&mut best) {
            let round = ask(handler)?;
            best.cpu_ns = best.cpu_ns.min(round.cpu_ns);
            best.wall_ns = best.wall_ns.min(round.wall_ns);
        }
    }
    let mut table = Table::new(
        "One request over keep-alive",
        &["handler", "server CPU, µs a request", "× bare", "requests/s, one client thread"],
    );
    for (handler, round) in handlers.iter().zip(&best) {
        table.add(vec![
            handler.name.to_owned(),
            format!("{:.2}", round.cpu_ns as f64 / 1e3),
            format!("{:.2}", round.cpu_ns as f64 / best[0].cpu_ns as f64),
            grouped(usize::try_from(1_000_000_000 / round.wall_ns.max(1))?),
        ]);
    }
    // The servers run until the process ends; what one of them keeps goes now.
    drop(Folder::new("consume")?);
    Ok(table)
}

/// What one request took, at best.
#[derive(Clone, Copy)]
struct Round {
    cpu_ns: u64,
    wall_ns: u64,
}

impl Round {
    const WORST: Self = Self { cpu_ns: u64::MAX, wall_ns: u64::MAX };
}

struct Running {
    address: SocketAddr,
    thread: u64,
}

/// Starts a server on a thread of its own and waits until it listens.
fn start<F>(name: &str, serve: fn(std::sync::mpsc::Sender<Running>) -> F) -> anyhow::Result<Running>
where
    F: Future<Output = anyhow::Result<()>> + 'static,
{
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve(sender))
    })?;
    receiver.recv_timeout(Duration::from_secs(10)).context("a server did not start")
}

async fn serve_nothing(started: std::sync::mpsc::Sender<Running>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    started.send(Running { address, thread: crate::process::thread_id()? })?;
    let router = Router::new().route("/nothing", post(|_body: Bytes| async { IDLE_ANSWER }));
    let without_delay = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(without_delay, router).await?)
}

async fn serve_consume(started: std::sync::mpsc::Sender<Running>) -> anyhow::Result<()> {
    serve(Tollgate::memory(), started).await
}

async fn serve_kept(started: std::sync::mpsc::Sender<Running>) -> anyhow::Result<()> {
    let folder = Folder::new("consume")?;
    serve(Tollgate::open(&folder.path).await?, started).await
}

async fn serve(gate: Tollgate, started: std::sync::mpsc::Sender<Running>) -> anyhow::Result<()> {
    gate.limit("bench", Limit::per(1, Duration::from_nanos(1)).burst(1_000_000)).await?;
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    let server = Server::bind(gate, settings).await?;
    let thread = crate::process::thread_id()?;
    started.send(Running { address: server.address(), thread })?;
    server.serve(std::future::pending()).await;
    Ok(())
}

/// One round against one handler: what a request cost its server, and how long it took in all.
fn ask(Handler { server, request, .. }: &Handler<'_>) -> anyhow::Result<Round> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = thread_cpu_ns(server.thread)?;
    let began = Instant::now();
    runtime.block_on(async {
        let clients =
            (0..CONNECTIONS).map(|_| tokio::spawn(client(server.address, request.clone())));
        for client in clients.collect::<Vec<_>>() {
            client.await??;
        }
        anyhow::Ok(())
    })?;
    let requests = (CONNECTIONS * REQUESTS_EACH) as u64;
    let wall_ns = u64::try_from(began.elapsed().as_nanos())? / requests;
    Ok(Round { cpu_ns: (thread_cpu_ns(server.thread)? - before) / requests, wall_ns })
}

async fn client(address: SocketAddr, request: String) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; 4_096];
    for _ in 0..REQUESTS_EACH {
        stream.write_all(request.as_bytes()).await?;
        // An answer this short comes in one piece.
        let read = stream.read(&mut answer).await?;
        ensure!(answer[..read].starts_with(b"HTTP/1.1 200"), "not granted: {:?}", &answer[..read]);
    }
    Ok(())
}
