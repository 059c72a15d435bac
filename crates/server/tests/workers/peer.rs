//! One connection of plain HTTP: requests go out, answers come in, as few words as will do.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest wait for any answer: longer than a claim may wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and the connection to it.
pub(crate) struct Peer(BufReader<TcpStream>);

impl Peer {
    pub(crate) fn connect(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a request and returns the answer's status and JSON.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let first = format!("{method} {path} HTTP/1.1\r\nhost: tollgate");
        self.0.get_mut().write_all(message(&first, &body).as_bytes()).unwrap();
        let (first, body) = read(&mut self.0).unwrap().unwrap();
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Sends a request that must succeed.
    #[track_caller]
    pub(crate) fn succeed(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }
}

/// A message with a body of JSON.
pub(crate) fn message(first: &str, body: &str) -> String {
    let length = body.len();
    format!("{first}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The first line of the next message, and its body; `None` if the other side is gone.
pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> Result<Option<(String, Vec<u8>)>> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap();
            }
            _ if first.is_empty() => first = line.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((first, body)))
}
