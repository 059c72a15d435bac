//! A collector as plain as can be: it reads what is exported, and answers as it is told, or not at all.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What came of a request.
pub(crate) struct Exported {
    /// The first line and the headers, a line each.
    pub(crate) head: String,
    pub(crate) request: ExportTraceServiceRequest,
}

/// How the collector answers.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    With(u16),
    Never,
}

/// A collector on any free port, and all that it is sent.
pub(crate) fn collect(answers: Answers) -> (SocketAddr, Receiver<Exported>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (out, exported) = channel();
    // It ends with the test.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let out = out.clone();
            thread::spawn(move || answer(stream, answers, &out));
        }
    });
    (address, exported)
}

fn answer(stream: TcpStream, answers: Answers, out: &Sender<Exported>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        stream.read_line(&mut head)?;
        let line = head[start..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
    // A test that has seen enough does not listen any more.
    let _ = out.send(Exported { head, request });
    match answers {
        Answers::With(status) => {
            let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n");
            stream.get_mut().write_all(head.as_bytes())
        }
        Answers::Never => {
            // Until the other side is gone.
            stream.read_to_end(&mut body).map(|_| ())
        }
    }
}
