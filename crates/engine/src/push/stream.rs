//! A connection, plain or encrypted, that reads so much for one request and no more.

use hyper_util::client::legacy::connect::{Connected, Connection};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a destination.
pub(super) struct Stream {
    transport: Transport,
    /// How much was read since something was written last.
    bytes_read: usize,
    /// How much may be; `None` where requests share the connection and say themselves what they want.
    bytes_read_max: Option<usize>,
}

enum Transport {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn plain(tcp: TcpStream, answer_bytes_max: usize) -> Self {
        let transport = Transport::Plain(tcp);
        Self { transport, bytes_read: 0, bytes_read_max: Some(answer_bytes_max) }
    }

    pub(super) fn encrypted(tls: TlsStream<TcpStream>, answer_bytes_max: usize) -> Self {
        let bytes_read_max = (!is_http2(&tls)).then_some(answer_bytes_max);
        Self { transport: Transport::Encrypted(Box::new(tls)), bytes_read: 0, bytes_read_max }
    }

    /// The address it is connected to.
    #[cfg(test)]
    pub(super) fn peer(&self) -> io::Result<std::net::SocketAddr> {
        match &self.transport {
            Transport::Plain(tcp) => tcp.peer_addr(),
            Transport::Encrypted(tls) => tls.get_ref().0.peer_addr(),
        }
    }

    /// Counts what was read. An answer may be announced by others without end, and nobody would hear
    /// of it but us: it is cut off here.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes_read = self.bytes_read.saturating_add(bytes);
        match self.bytes_read_max {
            Some(most) if self.bytes_read > most => {
                let text = format!("the answer goes on without end: over {most} bytes came");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            _ => Ok(()),
        }
    }
}

fn is_http2(tls: &TlsStream<TcpStream>) -> bool {
    tls.get_ref().1.alpn_protocol() == Some(b"h2")
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match &self.transport {
            Transport::Encrypted(tls) if is_http2(tls) => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (stream, before) = (self.get_mut(), buffer.filled().len());
        let read = match &mut stream.transport {
            Transport::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Transport::Encrypted(tls) => Pin::new(tls).poll_read(context, buffer),
        };
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(stream.count(buffer.filled().len() - before)),
            other => other,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        stream.bytes_read = 0;
        match &mut stream.transport {
            Transport::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Transport::Encrypted(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Transport::Encrypted(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Transport::Encrypted(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
