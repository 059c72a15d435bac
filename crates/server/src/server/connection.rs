//! One connection: its requests, one after the other, until it ends or has been idle for too long.

use crate::http::guard::Door;
use crate::shutdown::Shutdown;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::interval;

/// Longest head of a request: room for a receipt of eight tolls with the longest names, in the path.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// A connection on which no request began for so long, nor is being answered, is let go: idle, or a
/// head that comes byte by byte. It is looked at this often, so it may last twice as long.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Answers the requests of one connection until it ends.
pub(super) async fn answer(stream: TcpStream, door: Arc<Door>, shutdown: Shutdown) {
    // An answer in two packets must not wait for the first to be acknowledged. Where that cannot be
    // said, answers are late but right.
    let _ = stream.set_nodelay(true);
    let activity = Arc::new(Activity::default());
    let service = service_fn(|request| async {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        let answering = Answering(activity.clone());
        let response = door.answer(request).await;
        // An answer without a known end is being given for as long as its body is there.
        Ok::<_, Infallible>(match response.body().size_hint().exact() {
            Some(_) => response,
            None => response.map(|body| Body::new(Streaming { body, _answering: answering })),
        })
    });
    // Hyper's own timer is off, for it is set anew for each request, and that costs more than the
    // decision.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = activity.none() => return,
        () = shutdown.begun() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// A request that is being answered, until this is dropped.
struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of an answer that goes on.
struct Streaming {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Streaming {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// How many requests a connection has seen.
#[derive(Debug, Default)]
struct Activity {
    begun: AtomicU64,
    answered: AtomicU64,
}

impl Activity {
    /// Returns once nothing happened for a while.
    async fn none(&self) {
        let mut looks = interval(IDLE_MAX);
        // The first comes at once.
        looks.tick().await;
        loop {
            let before = self.begun.load(Ordering::Relaxed);
            looks.tick().await;
            let begun = self.begun.load(Ordering::Relaxed);
            if begun == before && begun == self.answered.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}
