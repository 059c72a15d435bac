//! A client as plain as can be: it sends what it is told, right or wrong, and reads the answer.

use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: BufReader::new(TcpStream::connect(address).await.unwrap()) }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next line of a stream that holds text; empty at its end. Sizes of chunks are lines, too.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap_or(0);
        line
    }

    /// The next answer; `None` if the server closed the connection.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let mut head = Vec::new();
        while !matches!(head.last().map(String::as_str), Some("")) {
            let mut line = String::new();
            // A connection that is reset is closed as well.
            if self.stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return None;
            }
            head.push(line.trim_end().to_owned());
        }
        let status = head[0].split(' ').nth(1)?.parse().unwrap();
        let headers = head[1..].iter().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut answer = Answer { status, headers, text: String::new() };
        let mut body = vec![0; answer.header("content-length").map_or(0, |n| n.parse().unwrap())];
        self.stream.read_exact(&mut body).await.unwrap();
        answer.text = String::from_utf8(body).unwrap();
        Some(answer)
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The JSON body of a success without what is counted in a folder alone.
    #[track_caller]
    pub(crate) fn uncounted(&self) -> Value {
        let mut json = self.success();
        for counted in ["totals", "admitted"] {
            json.as_object_mut().unwrap().remove(counted);
        }
        json
    }

    /// One field of the JSON body.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> Value {
        self.json()[name].clone()
    }

    /// Fails unless this is a problem of that status and code; returns the detail.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let json = self.json();
        assert_eq!(json["code"], code, "{}", self.text);
        assert_eq!(json["status"], status);
        assert_eq!(json["type"], format!("urn:tollgate:problem:{code}"));
        assert!(json["title"].as_str().is_some_and(|title| !title.is_empty()));
        json["detail"].as_str().unwrap().to_owned()
    }

    /// Fails unless this is a success; returns the JSON body.
    #[track_caller]
    pub(crate) fn success(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }
}

/// A request with a body and a length that fits it.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: tollgate\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}").into_bytes()
}
