//! An upstream that misbehaves as its path says, on bare TCP.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a drip lets wait for its next byte.
const DRIP: Duration = Duration::from_millis(50);
/// What the kernel may hold of what was written and not read.
const SEND_BUFFER_BYTES: u32 = 64 << 10;
/// The longest body: nobody reads it to the end.
const GIB: usize = 1 << 30;

/// A server that ends when it is dropped, and all its connections with it.
pub(crate) struct Lying {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<HashMap<String, Seen>>>,
    hanging: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

/// What came of one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Requests whose head arrived.
    pub(crate) requests: usize,
    /// Most bytes that were sent on one connection.
    pub(crate) bytes_sent: usize,
}

impl Lying {
    pub(crate) async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(SEND_BUFFER_BYTES).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1_024).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<HashMap<String, Seen>>> = Arc::default();
        let (hangs, hanging) = watch::channel(0);
        let mut tasks = JoinSet::new();
        let noted = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let connection =
                    Connection { tcp, seen: noted.clone(), hangs: hangs.clone(), bytes_sent: 0 };
                // That the peer goes is how most of these end.
                connections.spawn(async move { drop(connection.run().await) });
            }
        });
        Self { address, seen, hanging, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What came of a path.
    pub(crate) fn seen(&self, path: &str) -> Seen {
        self.seen.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    /// Waits until so many requests hang and are not given up; says how many do.
    pub(crate) async fn hang(&mut self, count: usize) -> usize {
        let hanging = self.hanging.wait_for(|hanging| *hanging >= count);
        *crate::gate::patiently(hanging).await.unwrap()
    }

    /// How many requests hang and are not given up.
    pub(crate) fn hanging(&self) -> usize {
        *self.hanging.borrow()
    }
}

struct Connection {
    tcp: TcpStream,
    seen: Arc<Mutex<HashMap<String, Seen>>>,
    hangs: watch::Sender<usize>,
    bytes_sent: usize,
}

impl Connection {
    async fn run(mut self) -> io::Result<()> {
        let path = self.read_head().await?;
        self.seen.lock().unwrap().entry(path.clone()).or_default().requests += 1;
        let ended = self.misbehave(&path).await;
        let mut seen = self.seen.lock().unwrap();
        let noted = seen.entry(path).or_default();
        noted.bytes_sent = noted.bytes_sent.max(self.bytes_sent);
        ended
    }

    /// The path of a request.
    async fn read_head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.tcp.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        Ok(head.split(' ').nth(1).unwrap().to_owned())
    }

    async fn misbehave(&mut self, path: &str) -> io::Result<()> {
        match path {
            "/silent" => self.hang().await,
            "/drip-head" => self.drip("HTTP/1.1 200 OK\r\nx-drip: ").await,
            "/drip-body" => self.drip("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n").await,
            "/close" => Ok(()),
            "/reset" => self.tcp.set_zero_linger(),
            "/reset-in-body" => {
                self.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\nbegins").await?;
                self.tcp.set_zero_linger()
            }
            "/endless-head" => self.flood(b"HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n").await,
            "/continue-storm" => self.flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n").await,
            "/gib" => {
                self.flood(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", &[0; 4_096])
                    .await
            }
            "/endless-chunks" => {
                let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                self.flood(head, b"4\r\nmore\r\n").await
            }
            "/loop" => {
                let itself = self.tcp.local_addr()?;
                self.redirect(&format!("http://{itself}/loop")).await
            }
            _ if path.starts_with("/away/") => {
                let port = path.trim_start_matches("/away/");
                self.redirect(&format!("http://127.0.0.2:{port}/")).await
            }
            _ => self.send(canned(path)).await,
        }
    }

    /// Answers nothing, until the peer gives up.
    async fn hang(&mut self) -> io::Result<()> {
        self.hangs.send_modify(|hanging| *hanging += 1);
        let ended = self.tcp.read(&mut [0]).await;
        self.hangs.send_modify(|hanging| *hanging -= 1);
        ended.map(drop)
    }

    async fn redirect(&mut self, to: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        self.send(head.as_bytes()).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tcp.write_all(bytes).await?;
        self.bytes_sent += bytes.len();
        Ok(())
    }

    async fn drip(&mut self, begin: &str) -> io::Result<()> {
        self.send(begin.as_bytes()).await?;
        self.hangs.send_modify(|hanging| *hanging += 1);
        let mut ticks = tokio::time::interval(DRIP);
        let ended = loop {
            ticks.tick().await;
            if let Err(ended) = self.send(b"x").await {
                break ended;
            }
        };
        self.hangs.send_modify(|hanging| *hanging -= 1);
        Err(ended)
    }

    async fn flood(&mut self, begin: &[u8], again: &[u8]) -> io::Result<()> {
        self.send(begin).await?;
        let many = again.repeat(4_096_usize.div_ceil(again.len()));
        while self.bytes_sent < GIB {
            self.send(&many).await?;
        }
        Ok(())
    }
}

/// Answers that are sent whole before the connection is closed.
fn canned(path: &str) -> &'static [u8] {
    match path {
        "/garbage" => b"\x00\xff\xfe this is not the web\r\n\r\n",
        "/wrong-chunk" => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        "/cut-chunk" => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nhello",
        "/longer" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
        "/shorter" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello, and more than was said",
        "/two-lengths" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "/empty-with-body" => b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
        "/early-hints" => b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "/switching" => b"HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n",
        "/no-such-status" => b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n",
        "/status-of-four" => b"HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n",
        "/old" => b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "/cut-head" => b"HTTP/1.1 200 OK\r\ncontent-le",
        _ => panic!("nothing is said about {path}"),
    }
}
