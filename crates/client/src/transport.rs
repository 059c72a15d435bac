//! How requests reach a server: connections that are kept and bounded, deadlines, and trying again what
//! may be tried again.

pub(crate) mod address;
mod pool;
mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;

use crate::clock::{self, Backoff};
use crate::error::{ClientError, Problem};
use address::Address;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use pool::{Connection, Pool};
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tollgate_core::Span;

/// Most bytes of an answer: a worker whose calls are so large asks for fewer of them.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Longest pause between two tries of one request.
const PAUSE_MAX: Span = Span::from_secs(2);

/// The way to one server.
pub(crate) struct Transport {
    pub(crate) address: Address,
    token: Option<HeaderValue>,
    pool: Pool,
    retries: u32,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("url", &self.address.url).finish_non_exhaustive()
    }
}

/// What is asked of a server.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// All of it is over by then, tries and pauses included.
    pub(crate) within: Duration,
    pub(crate) again: Again,
    pub(crate) urgency: Urgency,
}

/// Whether a request may be sent once more if nobody knows what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Twice is as good as once.
    Safe,
    /// Twice would be done twice.
    Never,
}

/// Whether a request waits for a free connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// With all others.
    InTurn,
    /// It keeps what is held, and must not wait behind those who wait for long.
    Ahead,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) times: Times,
    url: String,
}

impl Answer {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Protocol {
            url: self.url.clone(),
            reason: error.to_string(),
        })
    }

    /// What is no JSON.
    pub(crate) fn text(&self) -> Result<String, ClientError> {
        String::from_utf8(self.body.to_vec()).map_err(|error| ClientError::Protocol {
            url: self.url.clone(),
            reason: error.to_string(),
        })
    }
}

/// When an answer was asked for, and when it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Before a byte of the request was sent.
    pub(crate) sent: Instant,
    /// When its first byte was here, and someone looked.
    pub(crate) came: Instant,
}

/// Why one try came to nothing.
#[derive(Debug)]
struct Failure {
    reason: String,
    /// It was answered, with more than can be held.
    is_too_long: bool,
    /// The server has not seen it.
    is_unsent: bool,
    /// The connection had been closed meanwhile, as the server may.
    is_stale: bool,
}

impl Failure {
    fn unsent(error: &dyn std::error::Error) -> Self {
        Self { is_unsent: true, ..Self::lost(error) }
    }

    fn lost(error: &dyn std::error::Error) -> Self {
        Self { reason: said(error), is_too_long: false, is_unsent: false, is_stale: false }
    }

    fn too_long() -> Self {
        let reason = format!("an answer of over {ANSWER_BYTES_MAX} bytes");
        Self { reason, is_too_long: true, is_unsent: false, is_stale: false }
    }
}

/// What an error says, with what lies beneath it.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(beneath) = source {
        let beneath_text = beneath.to_string();
        if !text.contains(&beneath_text) {
            text = format!("{text}: {beneath_text}");
        }
        source = beneath.source();
    }
    text
}

impl Transport {
    pub(crate) fn new(
        address: Address,
        token: Option<HeaderValue>,
        secure: pool::Secure,
        bounds: Bounds,
    ) -> Self {
        let pool = Pool::new(address.clone(), secure, bounds.connections_max);
        Self { address, token, pool, retries: bounds.retries }
    }

    /// Sends a request and reads the answer, which is a success.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, ClientError> {
        let ends = clock::now() + request.within;
        let exchange = |fresh| self.exchange(request, fresh);
        let (status, body, times) = self.persist(request, ends, exchange).await?;
        self.judge(status, body, times)
    }

    /// Sends a request whose answer goes on for as long as one listens.
    pub(crate) async fn listen(&self, request: &Request) -> Result<Incoming, ClientError> {
        let ends = clock::now() + request.within;
        let open = |fresh| async move {
            let mut connection = self.pool.take(fresh, request.urgency).await?;
            self.ask(request, &mut connection).await
        };
        let response = self.persist(request, ends, open).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let reading = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let body = timeout_at(ends, reading).await.map_err(|_| self.unreachable(late(request)))?;
        let body = body.map_err(|error| self.unreachable(error.to_string()))?.to_bytes();
        let now = clock::now();
        let answer = self.judge(status, body, Times { sent: now, came: now });
        Err(answer.err().unwrap_or_else(|| self.strange("a status that is none")))
    }

    /// Tries again as long as that is safe, bounded in number and time.
    async fn persist<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        request: &Request,
        ends: Instant,
        once: impl Fn(Fresh) -> F,
    ) -> Result<T, ClientError> {
        let (mut tries, mut fresh) = (0, Fresh::IfNeeded);
        let mut backoff = Backoff::up_to(PAUSE_MAX);
        loop {
            let failure = match timeout_at(ends, once(fresh)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => return Err(self.unreachable(late(request))),
            };
            if failure.is_too_long {
                return Err(ClientError::TooLong { url: self.address.url.clone() });
            }
            let may_repeat = failure.is_unsent || request.again == Again::Safe;
            if failure.is_stale && may_repeat && fresh == Fresh::IfNeeded {
                fresh = Fresh::Always;
                continue;
            }
            let resumes = clock::now() + backoff.next();
            if !may_repeat || tries >= self.retries || resumes >= ends {
                return Err(self.unreachable(failure.reason));
            }
            tries += 1;
            tracing::debug!(url = %self.address.url, reason = failure.reason, "a request is sent again");
            clock::rest_until(resumes).await;
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        fresh: Fresh,
    ) -> Result<(StatusCode, Bytes, Times), Failure> {
        let mut connection = self.pool.take(fresh, request.urgency).await?;
        let sent = clock::now();
        let response = self.ask(request, &mut connection).await?;
        let (status, times) = (response.status(), Times { sent, came: clock::now() });
        // Told before it is read, if it says so.
        if usize::try_from(response.size_hint().lower()).is_ok_and(|bytes| bytes > ANSWER_BYTES_MAX)
        {
            return Err(Failure::too_long());
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => Failure::too_long(),
            false => Failure::lost(&*error),
        })?;
        self.pool.give_back(connection);
        Ok((status, body.to_bytes(), times))
    }

    async fn ask(
        &self,
        request: &Request,
        connection: &mut Connection,
    ) -> Result<Response<Incoming>, Failure> {
        let message = self.message(request).map_err(|error| Failure::unsent(&error))?;
        connection.sender.try_send_request(message).await.map_err(|mut error| {
            let is_unsent = error.take_message().is_some();
            let is_stale = connection.is_reused;
            Failure { is_unsent, is_stale, ..Failure::lost(error.error()) }
        })
    }

    fn message(&self, request: &Request) -> Result<hyper::Request<Full<Bytes>>, ClientError> {
        let body = Full::new(request.body.clone().unwrap_or_default());
        let mut message = hyper::Request::new(body);
        *message.method_mut() = request.method.clone();
        *message.uri_mut() = self.address.path(&request.path)?;
        let headers = message.headers_mut();
        headers.insert(HOST, self.address.authority.clone());
        if request.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        }
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        headers.extend(request.headers.iter().cloned());
        Ok(message)
    }

    fn judge(&self, status: StatusCode, body: Bytes, times: Times) -> Result<Answer, ClientError> {
        if status.is_success() {
            return Ok(Answer { body, times, url: self.address.url.clone() });
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(ClientError::Problem(Box::new(problem))),
            // Something stands before the server, and the server does not.
            Err(_) if status.is_server_error() => Err(self.unreachable(format!("{status}"))),
            Err(_) => Err(self.strange(&format!("{status} without a problem in JSON"))),
        }
    }

    fn unreachable(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Unreachable { url: self.address.url.clone(), reason: reason.into() }
    }

    fn strange(&self, reason: &str) -> ClientError {
        ClientError::Protocol { url: self.address.url.clone(), reason: reason.to_owned() }
    }
}

fn late(request: &Request) -> String {
    format!("no answer within {}", Span::from(request.within))
}

/// How much is done at once, and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) connections_max: usize,
    pub(crate) retries: u32,
}

/// Whether a kept connection will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    IfNeeded,
    Always,
}

pub(crate) use pool::Secure;
