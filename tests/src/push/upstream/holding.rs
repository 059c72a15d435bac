//! An upstream that answers a request when it is told to, and not before.

use super::{Asked, serve};
use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::Bytes;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// A server that ends when it is dropped.
pub(crate) struct Holding {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    arrived: mpsc::UnboundedReceiver<Held>,
    _tasks: JoinSet<()>,
}

/// A request that waits for its answer: for ever, if it is dropped.
pub(crate) struct Held {
    pub(crate) asked: Asked,
    answer: oneshot::Sender<Response<Full<Bytes>>>,
}

impl Holding {
    pub(crate) async fn new() -> Self {
        let (tell, arrived) = mpsc::unbounded_channel();
        let (address, connections, tasks) = serve(Arc::new(move |request| {
            let tell = tell.clone();
            Box::pin(async move {
                let (head, body) = request.into_parts();
                let asked = Asked {
                    method: head.method.to_string(),
                    path: head.uri.to_string(),
                    headers: head.headers,
                    body: body.collect().await.unwrap().to_bytes().to_vec(),
                };
                let (answer, answered) = oneshot::channel();
                drop(tell.send(Held { asked, answer }));
                match answered.await {
                    Ok(answer) => answer,
                    Err(_) => pending().await,
                }
            })
        }))
        .await;
        Self { address, connections, arrived, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Held {
        crate::gate::patiently(self.arrived.recv()).await.unwrap()
    }

    /// The next requests, as many.
    pub(crate) async fn several(&mut self, count: usize) -> Vec<Held> {
        let mut several = Vec::new();
        for _ in 0..count {
            several.push(self.next().await);
        }
        several
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether all requests that came so far were taken.
    pub(crate) fn is_quiet(&self) -> bool {
        self.arrived.is_empty()
    }
}

impl Held {
    pub(crate) fn answer(self, answer: Response<Full<Bytes>>) {
        drop(self.answer.send(answer));
    }
}
