//! An upstream that enforces its limits: whatever is over is answered with 429. Each account has its own.

use super::apis::{APIS, Order};
use super::score::{Scores, Way, count};
use crate::clock;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, StatusCode};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tollgate::{Error, Tollgate};

/// It answers until it is dropped.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    answering: JoinHandle<()>,
}

struct Enforcing {
    /// The limits of each account.
    naive: Tollgate,
    tollgate: Tollgate,
    scores: Arc<Scores>,
}

#[derive(Deserialize)]
struct Asked {
    tenant: String,
    tokens: u64,
}

type Answer = (StatusCode, [(HeaderName, String); 1], &'static str);

impl Upstream {
    pub(super) async fn start(scores: Arc<Scores>) -> anyhow::Result<Self> {
        let enforcing = Enforcing { naive: limits().await?, tollgate: limits().await?, scores };
        let router = Router::new().route("/{api}/{account}", post(answer));
        let router = router.with_state(Arc::new(enforcing));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let answering = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, answering })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

async fn limits() -> anyhow::Result<Tollgate> {
    let gate = Tollgate::memory();
    for bound in APIS.iter().flat_map(|api| &api.bounds) {
        gate.limit(bound.name, bound.enforced()).await?;
    }
    Ok(gate)
}

async fn answer(
    State(enforcing): State<Arc<Enforcing>>,
    Path((api, account)): Path<(String, String)>,
    body: Bytes,
) -> Answer {
    let found = APIS.iter().position(|known| known.name == api);
    let (Some(place), Ok(asked)) = (found, serde_json::from_slice::<Asked>(&body)) else {
        return said(StatusCode::BAD_REQUEST, 0, "there is no such call");
    };
    let (way, gate) = match account.as_str() {
        "tollgate" => (Way::Tollgate, &enforcing.tollgate),
        _ => (Way::Naive, &enforcing.naive),
    };
    let (api, score) = (&APIS[place], enforcing.scores.of(place, way));
    let order = Order { tenant: "", tokens: asked.tokens };
    let [first, second] = api.tolls(&order, &asked.tenant);
    match gate.consume(first.and(second)).await {
        Ok(pass) => {
            clock::rest(api.takes).await;
            drop(pass);
            count(&score.done);
            said(StatusCode::OK, 0, "done")
        }
        Err(Error::Refused(refusal)) => {
            count(&score.refused);
            let wait = refusal.retry_after.map_or(1, |span| span.as_millis_ceil().div_ceil(1_000));
            said(StatusCode::TOO_MANY_REQUESTS, wait, "too many requests")
        }
        Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, 1, "something is wrong here"),
    }
}

fn said(status: StatusCode, wait_seconds: u64, text: &'static str) -> Answer {
    (status, [(RETRY_AFTER, wait_seconds.to_string())], text)
}
