//! The client: where the server is, who asks, and one request at a time.

use crate::enqueue::Outbox;
use crate::error::ClientError;
use crate::letting_go::LettingGo;
use crate::transport::address::Address;
use crate::transport::{Again, Answer, Bounds, Request, Secure, Transport, Urgency};
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::Span;

/// How long an answer may take that waits for nothing.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request is sent again that may be.
const RETRIES: u32 = 4;
/// Connections of one client: each who waits for a turn has one.
const CONNECTIONS_MAX: usize = 128;
/// How often slots are renewed: a server holds them for a minute.
const HEARTBEAT: Span = Span::from_secs(20);
/// Where a server is unless someone says otherwise.
const URL: &str = "http://127.0.0.1:8655";
/// The environment's names of the server and of the token.
const URL_VARIABLE: &str = "TOLLGATE_URL";
const TOKEN_VARIABLE: &str = "TOLLGATE_TOKEN";
pub(crate) const JSON: &str = "application/json";

/// A way to one Tollgate server. Clones share it, and its connections. Needs a tokio runtime.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) transport: Transport,
    timeout: Duration,
    pub(crate) heartbeat: Span,
    pub(crate) outbox: Outbox,
    pub(crate) letting_go: LettingGo,
}

/// How a client is made, where the defaults do not do.
#[derive(Clone)]
#[must_use]
pub struct Builder {
    url: String,
    token: Option<String>,
    authorities: Option<PathBuf>,
    timeout: Duration,
    heartbeat: Span,
    bounds: Bounds,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the token nor the URL, which may have a password in it by mistake.
        f.debug_struct("Builder").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Builder {
    /// Shows this token with each request.
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// Trusts servers whose certificates were signed by an authority in this PEM file, in place of those
    /// that the system trusts.
    pub fn authorities(self, file: impl Into<PathBuf>) -> Self {
        Self { authorities: Some(file.into()), ..self }
    }

    /// How long an answer may take that waits for nothing; 30 s by default.
    pub fn timeout(self, span: impl Into<Span>) -> Self {
        Self { timeout: span.into().into(), ..self }
    }

    /// How often a request is sent again when the connection is lost, if that is safe; 4 by default.
    pub fn retries(mut self, retries: u32) -> Self {
        self.bounds.retries = retries;
        self
    }

    /// Most connections at once, 128 by default: each `acquire` that waits has one, and others wait for it.
    /// Heartbeats and settlements need none of them.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.bounds.connections_max = connections;
        self
    }

    /// How often the slots that passes hold are renewed, every 20 s at least and by default: a minute after
    /// the last time they are free.
    pub fn heartbeat(self, span: impl Into<Span>) -> Self {
        let span = span.into().clamp(Span::from_millis(10), HEARTBEAT);
        Self { heartbeat: span, ..self }
    }

    /// The client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, ClientError> {
        let address = Address::new(&self.url)?;
        let secure = secure(&address, self.authorities)?;
        let token = self.token.as_deref().map(bearer).transpose()?;
        let transport = Transport::new(address, token, secure, self.bounds);
        let (outbox, letting_go) = (Outbox::default(), LettingGo::default());
        let (timeout, heartbeat) = (self.timeout, self.heartbeat);
        let inner = Inner { transport, timeout, heartbeat, outbox, letting_go };
        Ok(Client { inner: Arc::new(inner) })
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| {
        ClientError::invalid(
            "the token has letters that no token has: printable ASCII alone will do",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(feature = "tls")]
fn secure(address: &Address, authorities: Option<PathBuf>) -> Result<Secure, ClientError> {
    let tls = || crate::transport::tls::Tls::new(authorities.as_deref());
    address.is_secure.then(tls).transpose()
}

#[cfg(not(feature = "tls"))]
fn secure(address: &Address, _authorities: Option<PathBuf>) -> Result<Secure, ClientError> {
    match address.is_secure {
        true => Err(ClientError::invalid("https needs the client's feature `tls`")),
        false => Ok(None),
    }
}

impl Client {
    /// A client of the server at a URL, as in `http://127.0.0.1:8655`. Nothing is sent yet.
    pub fn connect(url: &str) -> Result<Self, ClientError> {
        Self::builder(url).build()
    }

    /// Starts from the defaults.
    pub fn builder(url: &str) -> Builder {
        let bounds = Bounds { connections_max: CONNECTIONS_MAX, retries: RETRIES };
        Builder {
            url: url.to_owned(),
            token: None,
            authorities: None,
            timeout: TIMEOUT,
            heartbeat: HEARTBEAT,
            bounds,
        }
    }

    /// The server that the environment names: `TOLLGATE_URL` (`http://127.0.0.1:8655` if there is none)
    /// and `TOLLGATE_TOKEN`.
    pub fn from_environment() -> Result<Builder, ClientError> {
        let read = |name: &str| match std::env::var(name) {
            Ok(value) if value.is_empty() => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(_) => Err(ClientError::invalid(format!("{name} is not UTF-8"))),
        };
        let builder = Self::builder(read(URL_VARIABLE)?.as_deref().unwrap_or(URL));
        Ok(Builder { token: read(TOKEN_VARIABLE)?, ..builder })
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        &self.inner.transport.address.url
    }

    /// Sends one request to a path of the API, as in `request("GET", "/v1/limits", None)`. A `GET` is sent
    /// again when the connection is lost.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, ClientError> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| ClientError::invalid(format!("{method:?} is not a method")))?;
        let asked = Asked::new(method, path);
        match body {
            Some(body) => self.ask(asked.json(&body)?).await,
            None => self.ask(asked).await,
        }
    }

    /// Waits until all is handed back that passes have let go of, for as long as a request may take.
    pub async fn shut_down(self) {
        let _ = tokio::time::timeout(self.inner.timeout, self.inner.letting_go.is_done()).await;
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, asked: Asked) -> Result<T, ClientError> {
        self.send(asked).await?.read()
    }

    pub(crate) async fn send(&self, asked: Asked) -> Result<Answer, ClientError> {
        self.inner.transport.send(&self.inner.request(asked)).await
    }

    pub(crate) async fn fetch<T: DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        self.ask(Asked::new(Method::GET, path)).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: String,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        // To say twice what it is to be is to say it once.
        self.ask(Asked::new(Method::PUT, path).json(body)?.again()).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: String,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Asked::new(Method::POST, path).json(body)?).await
    }

    /// Does something that takes no body, and that twice is as good as once: pausing, resuming, closing.
    pub(crate) async fn act<T: DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        self.ask(Asked::new(Method::POST, path).again()).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        self.ask(Asked::new(Method::DELETE, path)).await
    }
}

impl Inner {
    pub(crate) fn request(&self, asked: Asked) -> Request {
        let Asked { mut request, wait } = asked;
        request.within = self.timeout.saturating_add(wait);
        request
    }
}

/// A request as it is put together.
#[derive(Debug)]
pub(crate) struct Asked {
    request: Request,
    /// How long the server may wait with its answer.
    wait: Duration,
}

impl Asked {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let again = if method == Method::GET { Again::Safe } else { Again::Never };
        let request = Request {
            method,
            path: path.into(),
            body: None,
            content_type: JSON,
            headers: Vec::new(),
            within: Duration::ZERO,
            again,
            urgency: Urgency::InTurn,
        };
        Self { request, wait: Duration::ZERO }
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Result<Self, ClientError> {
        let text = serde_json::to_vec(body);
        let text = text.map_err(|error| ClientError::invalid(error.to_string()))?;
        Ok(self.bytes(text.into()))
    }

    pub(crate) fn bytes(mut self, body: Bytes) -> Self {
        self.request.body = Some(body);
        self
    }

    /// It may be sent again.
    pub(crate) fn again(mut self) -> Self {
        self.request.again = Again::Safe;
        self
    }

    /// It does not wait behind others.
    pub(crate) fn ahead(mut self) -> Self {
        self.request.urgency = Urgency::Ahead;
        self
    }

    /// The server may wait so long with its answer.
    pub(crate) fn waits(mut self, wait: Span) -> Self {
        self.wait = wait.into();
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        let unfit = |_| ClientError::invalid(format!("{value:?} does not fit into a header"));
        let value = HeaderValue::from_str(value).map_err(unfit)?;
        self.request.headers.push((hyper::header::HeaderName::from_static(name), value));
        Ok(self)
    }
}
