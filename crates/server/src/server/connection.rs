//! One connection: its requests, one after the other, until it ends or has been idle for too long.

mod activity;
mod watched;

use crate::handed_out::HandedOut;
use crate::http::guard::Door;
use crate::shutdown::Shutdown;
use crate::tls::Tls;
use activity::Activity;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use watched::{WatchedBody, WatchedStream};

/// Longest head of a request: room for a receipt of eight tolls with the longest names, in the path.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Answers the requests of one connection until it ends.
pub(super) async fn answer(
    (stream, peer): (TcpStream, IpAddr),
    tls: Option<Tls>,
    door: Arc<Door>,
    shutdown: Shutdown,
) {
    // An answer in two packets must not wait for the first to be acknowledged. Where that cannot be
    // said, answers are late but right.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return talk(stream, peer, door, shutdown).await };
    // Boxed: connections without it need not carry the room for it.
    let secured = Box::pin(async {
        let shaken = tokio::select! {
            shaken = tls.accept(stream) => shaken,
            () = shutdown.begun() => None,
        };
        if let Some(stream) = shaken {
            talk(stream, peer, door, shutdown).await;
        }
    });
    secured.await;
}

async fn talk<S>(stream: S, peer: IpAddr, door: Arc<Door>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let activity = Arc::new(Activity::default());
    let service = service_fn(|request| {
        let answering = activity.begin();
        let door = &door;
        async move {
            let mut response = door.answer(request, peer).await;
            let calls = response.extensions_mut().remove::<Arc<HandedOut>>();
            Ok::<_, Infallible>(response.map(|body| WatchedBody::new(body, answering, calls)))
        }
    });
    // Hyper's own timer is off, for it is set anew for each request, and that costs more than the
    // decision. Its bound of a hundred header fields is left as it is, for another costs an allocation.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(WatchedStream::new(stream, &activity)), service);
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
