//! A destination as cheap as can be: a thread that answers each request with an empty 200.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A sink that answers at every address of this machine, and tells when requests came.
pub(super) struct Sink {
    pub(super) port: u16,
    pub(super) arrivals: mpsc::UnboundedReceiver<Instant>,
}

impl Sink {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        std::thread::spawn(move || serve(listener, arrived));
        Ok(Self { port, arrivals })
    }

    /// Waits for so many requests; when the last one came.
    pub(super) async fn wait_for(&mut self, count: usize) -> anyhow::Result<Instant> {
        let mut last = None;
        for _ in 0..count {
            last = Some(self.arrivals.recv().await.context("the sink is gone")?);
        }
        last.context("nothing to wait for")
    }
}

fn serve(
    listener: std::net::TcpListener,
    arrived: mpsc::UnboundedSender<Instant>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(answer(stream, arrived.clone()));
        }
    })
}

async fn answer(mut stream: TcpStream, arrived: mpsc::UnboundedSender<Instant>) -> io::Result<()> {
    let mut read = Vec::with_capacity(4_096);
    loop {
        while let Some(bytes) = whole(&read) {
            let _ = arrived.send(Instant::now());
            read.drain(..bytes);
            stream.write_all(ANSWER).await?;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}

/// How many bytes the first request has, once all of it is there.
fn whole(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&read[..head]).ok()?;
    let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
    let end = head + 4 + length.map_or(Some(0), |length| length.parse().ok())?;
    (read.len() >= end).then_some(end)
}
