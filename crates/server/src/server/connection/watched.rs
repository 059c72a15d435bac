//! A connection's bytes and an answer's body, with what happens to them counted.

use super::activity::{Activity, Answering};
use crate::handed_out::HandedOut;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose writes are counted.
pub(super) struct WatchedStream<'a, S> {
    stream: S,
    activity: &'a Activity,
}

impl<'a, S> WatchedStream<'a, S> {
    pub(super) fn new(stream: S, activity: &'a Activity) -> Self {
        Self { stream, activity }
    }

    fn watch<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(_) => self.activity.wrote(),
            Poll::Pending => self.activity.waits_to_write(),
        }
        written
    }

    /// Where nothing is kept back this says little: only that nobody waits for the client.
    fn watch_flush(&self, flushed: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        match &flushed {
            Poll::Ready(_) => self.activity.has_flushed(),
            Poll::Pending => self.activity.waits_to_write(),
        }
        flushed
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Where TLS keeps bytes back, a flush is what waits for the client.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = &flushed {
            // Hyper flushes once it has nothing left that it could write.
            self.activity.sent();
        }
        self.watch_flush(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch_flush(shut)
    }
}

/// A body whose request is answered once all of it was handed over.
pub(super) struct WatchedBody {
    body: Body,
    answering: Answering,
    /// Calls that it hands out: they are the worker's once all of it was sent.
    handed_out: Option<Arc<HandedOut>>,
}

impl WatchedBody {
    pub(super) fn new(
        body: Body,
        answering: Answering,
        handed_out: Option<Arc<HandedOut>>,
    ) -> Self {
        Self { body, answering, handed_out }
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        if let Some(calls) = self.handed_out.take()
            && self.body.is_end_stream()
        {
            self.answering.activity().waits_to_be_sent(calls);
        }
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
