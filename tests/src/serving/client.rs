//! The least of an HTTP client: one connection, one request after the other.

use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What the server answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// By name in small letters.
    pub(super) headers: HashMap<String, String>,
    /// The body, if it is JSON.
    pub(super) json: Value,
}

impl Answer {
    /// The code of a problem, which must be one.
    #[track_caller]
    pub(super) fn code(&self) -> &str {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.json["status"], self.status, "{self:?}");
        self.json["code"].as_str().unwrap()
    }

    #[track_caller]
    pub(super) fn detail(&self) -> &str {
        self.json["detail"].as_str().unwrap()
    }
}

pub(super) struct Client {
    stream: TcpStream,
    /// Read, and not yet part of an answer.
    rest: Vec<u8>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), rest: Vec::new() }
    }

    /// Asks with a JSON body, or without one if it is empty.
    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.send(&request(method, path, body)).await
    }

    pub(super) async fn send(&mut self, request: &str) -> Answer {
        self.write(request).await;
        self.read().await
    }

    pub(super) async fn write(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    pub(super) async fn read(&mut self) -> Answer {
        loop {
            if let Some(answer) = self.take_answer() {
                return answer;
            }
            let mut piece = [0; 4_096];
            let read = self.stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "the server hung up in the middle: {:?}", self.rest);
            self.rest.extend_from_slice(&piece[..read]);
        }
    }

    fn take_answer(&mut self) -> Option<Answer> {
        let text = String::from_utf8_lossy(&self.rest).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        };
        let headers: HashMap<_, _> = lines.filter_map(header).collect();
        let length: usize = headers.get("content-length").map_or(0, |n| n.parse().unwrap());
        let body = body.get(..length)?;
        let json = serde_json::from_str(body).unwrap_or(Value::Null);
        self.rest.drain(..head.len() + 4 + length);
        Some(Answer { status, headers, json })
    }
}

pub(super) fn request(method: &str, path: &str, body: &str) -> String {
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: t\r\n{kind}content-length: {length}\r\n\r\n{body}")
}
