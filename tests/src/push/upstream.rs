//! An upstream: a server on this machine that answers as it is told, and tells what it was asked.

pub(super) mod encrypted;
pub(super) mod enforcing;
pub(crate) mod holding;
pub(super) mod lying;
pub(super) mod published;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What an upstream was asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A server that ends when it is dropped.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) asked: mpsc::UnboundedReceiver<Asked>,
    _tasks: JoinSet<()>,
}

/// How an upstream answers.
pub(crate) type Answers = dyn Fn(&Asked) -> Response<Full<Bytes>> + Send + Sync;

impl Upstream {
    /// One that answers so.
    pub(crate) async fn new(
        answers: impl Fn(&Asked) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        let (tell, asked) = mpsc::unbounded_channel();
        let answers: Arc<Answers> = Arc::new(answers);
        let (address, _, tasks) = serve(Arc::new(move |request| {
            let (tell, answers) = (tell.clone(), answers.clone());
            Box::pin(async move { answer(request, &tell, &*answers).await })
        }))
        .await;
        Self { address, asked, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it is asked next.
    pub(crate) async fn next(&mut self) -> Asked {
        crate::gate::patiently(self.asked.recv()).await.unwrap()
    }
}

/// What is done with a request, from when its head arrived.
type Answering = dyn Fn(Request<Incoming>) -> Answer + Send + Sync;
type Answer = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

/// Serves HTTP/1.1 at an address of this machine, and counts the connections that were made to it.
async fn serve(answers: Arc<Answering>) -> (SocketAddr, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (made, mut tasks) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let count = made.clone();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let answers = answers.clone();
            let service = service_fn(move |request| {
                let answer = answers(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let serve = http1::Builder::new().serve_connection(TokioIo::new(tcp), service);
            connections.spawn(async move { drop(serve.await) });
        }
    });
    (address, made, tasks)
}

async fn answer(
    request: Request<Incoming>,
    tell: &mpsc::UnboundedSender<Asked>,
    answers: &Answers,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes().to_vec(),
    };
    let answer = answers(&asked);
    drop(tell.send(asked));
    answer
}

/// An answer of this status, with these headers.
pub(crate) fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::from(body.to_owned())).unwrap()
}
