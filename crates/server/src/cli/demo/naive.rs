//! Sending as everyone does at first: all at once, and on a 429 again after a while that doubles, until one
//! gives up.

use super::apis::{APIS, Api, Order};
use super::score::{Scores, Way, count};
use crate::clock;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections to one API.
const CONNECTIONS: usize = 40;
/// How often a call is tried before it is given up.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Sends the calls of all APIs. Never ends; dropped, it stops.
pub(super) async fn send_all(upstream: SocketAddr, scores: &Arc<Scores>) -> Infallible {
    let mut senders = JoinSet::new();
    for (place, api) in APIS.iter().enumerate() {
        let orders: Arc<[Order]> = api.orders().collect();
        let next = Arc::new(AtomicUsize::new(0));
        for _ in 0..CONNECTIONS {
            let (orders, next, scores) = (orders.clone(), next.clone(), scores.clone());
            senders.spawn(async move {
                let mut line = None;
                while let Some(order) = orders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !try_often(&mut line, upstream, api, order).await {
                        count(&scores.of(place, Way::Naive).lost);
                    }
                }
            });
        }
    }
    while senders.join_next().await.is_some() {}
    pending().await
}

/// Tries a call until it is done; `false` if it was given up.
async fn try_often(
    line: &mut Option<SendRequest<String>>,
    upstream: SocketAddr,
    api: &Api,
    order: &Order,
) -> bool {
    for attempt in 0..TRIES {
        match send(line, upstream, api, order).await {
            Ok(StatusCode::OK) => return true,
            Ok(_) => {}
            Err(_) => *line = None,
        }
        // Not all at the same instant, as one is told to do.
        let jitter = u32::try_from(order.tokens % 50).unwrap_or_default() + attempt * 7;
        clock::rest(PAUSE * 2_u32.pow(attempt) + Duration::from_millis(u64::from(jitter))).await;
    }
    false
}

async fn send(
    line: &mut Option<SendRequest<String>>,
    upstream: SocketAddr,
    api: &Api,
    order: &Order,
) -> anyhow::Result<StatusCode> {
    let request = Request::post(format!("/{}/naive", api.name))
        .header("host", upstream.to_string())
        .body(order.body())?;
    let open = match line {
        Some(open) => open,
        None => {
            let (opened, connection) =
                handshake(TokioIo::new(TcpStream::connect(upstream).await?)).await?;
            tokio::spawn(connection);
            line.insert(opened)
        }
    };
    open.ready().await?;
    Ok(open.send_request(request).await?.status())
}
