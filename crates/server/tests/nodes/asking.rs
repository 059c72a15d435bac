//! Requests to whichever node answers.

use crate::chance::Chance;
use serde_json::Value;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for an answer: longer than a node waits for its database.
const ANSWER: Duration = Duration::from_secs(30);

/// Where the nodes listen.
#[derive(Debug, Clone)]
pub(crate) struct Nodes(Arc<[u16]>);

impl Nodes {
    pub(crate) fn new(ports: Vec<u16>) -> Self {
        Self(ports.into())
    }

    pub(crate) fn asking(&self, mut chance: Chance) -> Asking {
        let at = chance.index(self.0.len());
        Asking { ports: self.0.clone(), at, chance, stream: None }
    }

    /// Asks this node and no other.
    pub(crate) fn asking_one(&self, node: usize) -> Asking {
        Asking { ports: [self.0[node]].into(), at: 0, chance: Chance::new(0), stream: None }
    }
}

/// One who asks, over one connection, and goes to another node when that breaks.
pub(crate) struct Asking {
    ports: Arc<[u16]>,
    at: usize,
    chance: Chance,
    stream: Option<BufReader<TcpStream>>,
}

impl Asking {
    /// The answer, if one came: what was asked for may have happened without.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> io::Result<Value> {
        let asked = timeout(ANSWER, self.ask_once(method, path, body)).await;
        let answer = asked.unwrap_or_else(|_| Err(io::Error::other(format!("{path}: no answer"))));
        match answer {
            Ok((200..=299, answer)) => Ok(answer),
            Ok((503, answer)) => {
                self.go_elsewhere();
                Err(io::Error::other(answer.to_string()))
            }
            Ok((status, answer)) => panic!("{method} {path} {body}: {status}: {answer}"),
            Err(error) => {
                self.go_elsewhere();
                Err(error)
            }
        }
    }

    /// The status of the answer, whatever it is.
    pub(crate) async fn status(&mut self, method: &str, path: &str, body: &Value) -> u16 {
        timeout(ANSWER, self.ask_once(method, path, body)).await.unwrap().unwrap().0
    }

    /// Asks until there is an answer.
    pub(crate) async fn surely(&mut self, method: &str, path: &str, body: &Value) -> Value {
        loop {
            match self.ask(method, path, body).await {
                Ok(answer) => return answer,
                Err(_) => moment(20).await,
            }
        }
    }

    fn go_elsewhere(&mut self) {
        (self.stream, self.at) = (None, self.chance.index(self.ports.len()));
    }

    async fn ask_once(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> io::Result<(u16, Value)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(("127.0.0.1", self.ports[self.at])).await?),
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = "HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length:";
        let request = format!("{method} {path} {head} {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await?;
        let answer = answer(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

async fn answer(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let told = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok((status, told))
}

/// A moment until something is looked at again.
pub(crate) async fn moment(millis: u64) {
    let _ = timeout(Duration::from_millis(millis), pending::<()>()).await;
}
