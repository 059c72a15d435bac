//! A client as cheap as can be: one connection, one request after the other.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection that is kept alive.
pub(super) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: Vec::new(), answer: Vec::new() })
    }

    /// Sends a request and returns the body of its answer, which must be a success.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> anyhow::Result<&[u8]> {
        self.send(method, path, body).await?;
        self.receive().await
    }

    /// The same with these headers.
    pub(super) async fn ask_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> anyhow::Result<&[u8]> {
        self.send_with(method, path, headers, body).await?;
        self.receive().await
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> anyhow::Result<()> {
        self.send_with(method, path, "content-type: application/json\r\n", body).await
    }

    /// The same with these headers, each with its end of line.
    pub(super) async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> anyhow::Result<()> {
        self.request.clear();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: b\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body);
        self.stream.write_all(&self.request).await?;
        Ok(())
    }

    pub(super) async fn receive(&mut self) -> anyhow::Result<&[u8]> {
        self.answer.clear();
        let (start, end) = loop {
            let read = self.stream.read_buf(&mut self.answer).await?;
            ensure!(read > 0, "the server closed the connection");
            if let Some(span) = whole(&self.answer)? {
                break span;
            }
        };
        let is_good = self.answer.starts_with(b"HTTP/1.1 2");
        ensure!(is_good, "refused: {}", String::from_utf8_lossy(&self.answer));
        Ok(&self.answer[start..end])
    }
}

/// Where the body of an answer is, once all of it is there.
fn whole(answer: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..head])?;
    let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.context("no length")?.parse()?;
    let end = head + 4 + length;
    Ok((answer.len() >= end).then_some((head + 4, end)))
}

/// The values of a field of that name, wherever it stands in some JSON: `"name":"…"`.
pub(super) fn texts<'a>(json: &'a [u8], name: &str) -> Vec<&'a str> {
    let marker = format!("\"{name}\":\"");
    let json = std::str::from_utf8(json).unwrap_or_default();
    let rest = json.split(&marker).skip(1);
    rest.filter_map(|rest| rest.split('"').next()).collect()
}
