//! Sending requests: over pooled connections, HTTP/1.1 or HTTP/2 as the destination speaks, and reading
//! of an answer as much as is wanted. Redirects are not followed: a redirect is an answer.

use super::address::AddressPolicy;
use super::answer::Answer;
use super::connector::Connector;
use super::manner::Manner;
use super::resolver::Resolver;
use super::signature::Signing;
use super::tracer::AttemptTracer;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::CertificateDer;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tollgate_core::Span;

/// How long a connection waits for another request.
const IDLE: Duration = Duration::from_secs(30);
/// Most connections to one host that wait for another request: more than a host has at a time unless its limit is
/// raised, or for each window that opens they would be made and closed again.
const IDLE_MAX: usize = 512;
/// How long an HTTP/2 connection may say nothing before it is asked whether it lives, and then to answer:
/// what goes over one that is dead is late, and so is all that follows.
const ALIVE: Duration = Duration::from_secs(10);
/// Most bytes of the head of an answer.
const HEAD_BYTES_MAX: u16 = 32 << 10;
/// How long an answer may take unless a queue or call says otherwise.
const TIMEOUT: Span = Span::from_secs(30);
/// How long a push is its process's unless it is renewed.
const LEASE: Span = Span::from_secs(30);
/// How much of an answer is read where its body is wanted: for a cost, or a callback.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How much of it is read where it is only to be shown.
pub(super) const BODY_BYTES_SHOWN: usize = 16 << 10;
/// How many bytes there may be on the way for one of a body: chunks of one byte have six.
const BYTES_PER_BODY_BYTE: usize = 8;
/// How many bytes an answer may have besides its body: heads, interim answers, and what is read ahead.
const ANSWER_BYTES_EXTRA: usize = 512 << 10;

/// How pushes are made.
#[derive(Debug, Clone)]
pub struct PushSettings {
    /// Which addresses may be connected to beyond public ones.
    pub addresses: AddressPolicy,
    /// How long an answer may take unless a queue or call says otherwise; 30 s by default.
    pub timeout: Span,
    /// How long a push of a process that died waits for another to make it, from 100 ms to a day; 30 s by default.
    pub lease: Span,
    /// How much of an answer is read where its body is wanted; 256 KiB by default.
    pub body_bytes_max: usize,
    /// How requests are signed; `None`: they are not.
    pub signing: Option<Signing>,
    /// Who traces attempts, if anyone.
    pub tracer: Option<AttemptTracer>,
    /// How calls that carry a card are sent and judged; `None`: as all others.
    pub manner: Option<Arc<dyn Manner>>,
    /// Authorities that are trusted besides those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
}

impl Default for PushSettings {
    fn default() -> Self {
        Self {
            addresses: AddressPolicy::default(),
            timeout: TIMEOUT,
            lease: LEASE,
            body_bytes_max: BODY_BYTES_MAX,
            signing: None,
            tracer: None,
            manner: None,
            authorities: Vec::new(),
        }
    }
}

/// Why pushes cannot be made at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// An authority's certificate is none.
    #[error("a certificate of an authority to trust cannot be read: {0}")]
    Authority(#[source] rustls::Error),
    /// Encryption cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[source] rustls::Error),
}

/// A client, and its connections.
#[derive(Clone)]
pub(super) struct Client {
    pool: legacy::Client<Connector, Full<Bytes>>,
}

impl Client {
    pub(super) fn new(settings: &PushSettings) -> Result<Self, PushError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for authority in &settings.authorities {
            roots.add(authority.clone()).map_err(PushError::Authority)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(PushError::Tls)?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        let resolver = Resolver::new(settings.addresses.clone());
        let body_bytes = settings.body_bytes_max.max(BODY_BYTES_SHOWN);
        let answer_bytes_max =
            body_bytes.saturating_mul(BYTES_PER_BODY_BYTE).saturating_add(ANSWER_BYTES_EXTRA);
        let connector = Connector::new(resolver, tls, answer_bytes_max);
        let pool = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .http2_keep_alive_interval(ALIVE)
            .http2_keep_alive_timeout(ALIVE)
            .http1_max_buf_size(HEAD_BYTES_MAX.into())
            .http2_max_header_list_size(HEAD_BYTES_MAX.into())
            .build(connector);
        Ok(Self { pool })
    }

    /// Sends a request and reads the answer, of its body up to `most` bytes, until it is too late. Once
    /// its head is here there is an answer, whatever becomes of the body.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        most: usize,
        late: impl Future<Output = ()> + Send,
    ) -> Result<Answer, Unheard> {
        let mut late = pin!(late);
        let response = tokio::select! {
            response = self.pool.request(request) => response,
            () = &mut late => return Err(Unheard::Late),
        };
        let response = response.map_err(|error| {
            Unheard::Failed(match error.is_connect() {
                true => format!("cannot connect: {}", innermost(&error)),
                false => told(&error),
            })
        })?;
        Ok(read(response, most, late).await)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unheard {
    /// It was too late.
    Late,
    /// Something went wrong.
    Failed(String),
}

async fn read(
    response: Response<Incoming>,
    most: usize,
    mut late: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Answer {
    let (head, mut incoming) = response.into_parts();
    let (status, headers) = (head.status, head.headers);
    let mut answer = Answer { status, headers, body: Vec::new(), is_cut: false, broken: None };
    loop {
        let frame = tokio::select! {
            frame = incoming.frame() => frame,
            () = &mut late => {
                answer.broken = Some("the answer did not end in time".to_owned());
                return answer;
            }
        };
        let data = match frame {
            None => return answer,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                answer.broken = Some(format!("the answer broke off: {}", told(&error)));
                return answer;
            }
        };
        let room = most - answer.body.len();
        answer.body.extend_from_slice(data.get(..room).unwrap_or(&data));
        if data.len() > room {
            // Nobody wants the rest: the connection is closed with it.
            answer.is_cut = true;
            return answer;
        }
    }
}

/// The innermost cause: those around it say that there is one.
fn innermost(error: &dyn Error) -> &dyn Error {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// What happened, and its cause.
fn told(error: &dyn Error) -> String {
    match innermost(error).to_string() {
        text if text == error.to_string() => text,
        text => format!("{error}: {text}"),
    }
}
