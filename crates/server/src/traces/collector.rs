//! The collector: where it is, and the way there, over the HTTP that the server has already.

use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::http::uri::Scheme;
use hyper::http::{HeaderValue, Request, Response};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Longest answer that is read: it says which spans were refused, and nobody looks.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Where traces go on a collector that is named for all signals.
const TRACES_PATH: &str = "/v1/traces";
/// OpenTelemetry's variables that say where: for traces alone, and for all signals.
const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const OF_ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Turns everything off.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Where traces are exported to. How (headers, the service's name and the like) is read by the exporter
/// from OpenTelemetry's own variables, so that no key passes through here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSettings {
    // Invariant: `http` or `https`, with a host and without a user.
    endpoint: Uri,
}

/// Why traces cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TracesError {
    /// The address is none.
    // Not shown: someone may have written a password into it.
    #[error(
        "the endpoint for traces is no address of a collector: write it as http://127.0.0.1:4318, without a user"
    )]
    Endpoint,
    /// The exporter does not take its settings.
    #[error("traces cannot be exported: {reason}; look at the OTEL_ variables")]
    Exporter {
        /// What it said.
        reason: String,
    },
}

impl TraceSettings {
    /// Exports to this address as it stands, path included.
    pub fn new(endpoint: &str) -> Result<Self, TracesError> {
        let endpoint: Uri = endpoint.parse().map_err(|_| TracesError::Endpoint)?;
        let is_http = [Some("http"), Some("https")].contains(&endpoint.scheme_str());
        let authority = endpoint.authority().map_or("@", |it| it.as_str());
        if !is_http || authority.contains('@') {
            return Err(TracesError::Endpoint);
        }
        Ok(Self { endpoint })
    }

    /// What OpenTelemetry's variables say; `None` if they name no endpoint, or turn it off.
    pub fn of_environment() -> Result<Option<Self>, TracesError> {
        let said = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
        if said(DISABLED).is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let for_all = || Some(format!("{}{TRACES_PATH}", said(OF_ALL)?.trim_end_matches('/')));
        said(OF_TRACES).or_else(for_all).map(|endpoint| Self::new(&endpoint)).transpose()
    }

    pub(super) fn endpoint(&self) -> &Uri {
        &self.endpoint
    }
}

/// The way to a collector: a connection for each batch, for they are seconds apart.
pub(super) struct Collector {
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Collector {
    pub(super) fn new(settings: &TraceSettings) -> Result<Self, TracesError> {
        let endpoint = settings.endpoint();
        let is_secure = endpoint.scheme() == Some(&Scheme::HTTPS);
        let host = endpoint.host().unwrap_or_default();
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: endpoint.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            tls: if is_secure { Some(connector()?) } else { None },
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let tcp = TcpStream::connect((&*self.host, self.port)).await?;
        match &self.tls {
            None => exchange(TokioIo::new(tcp), request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())?;
                exchange(TokioIo::new(tls.connect(name, tcp).await?), request).await
            }
        }
    }
}

/// Trusts whom the system trusts.
fn connector() -> Result<TlsConnector, TracesError> {
    let wrong = |reason: &dyn fmt::Display| TracesError::Exporter { reason: reason.to_string() };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(wrong(&"this system has no certificate of an authority to trust"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Sends one request on a connection, and reads the answer.
async fn exchange(
    stream: impl Read + Write + Unpin,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let (mut sender, connection) = handshake(stream).await?;
    let mut connection = pin!(connection);
    let mut answer = pin!(async {
        let (head, body) = sender.send_request(from_origin(request)?).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    });
    tokio::select! {
        answer = &mut answer => answer,
        // What was read before the end is there still.
        ended = &mut connection => {
            ended?;
            answer.await
        }
    }
}

/// The request as an origin gets it: the path alone, and the host as a header.
fn from_origin(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, HttpError> {
    let (mut head, body) = request.into_parts();
    let host = head.uri.authority().map_or("", |it| it.as_str());
    let host = HeaderValue::from_str(host)?;
    head.headers.insert(HOST, host);
    head.uri = head.uri.path_and_query().map_or("/", |it| it.as_str()).parse()?;
    Ok(Request::from_parts(head, Full::new(body)))
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sending<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_without_a_user() {
        for endpoint in
            ["http://127.0.0.1:4318/v1/traces", "https://otel.example/x", "http://[::1]/"]
        {
            assert!(TraceSettings::new(endpoint).is_ok(), "{endpoint}");
        }
        for wrong in ["", "127.0.0.1:4318", "ftp://a/", "http://user:key@a/", "/v1/traces"] {
            assert_eq!(TraceSettings::new(wrong), Err(TracesError::Endpoint), "{wrong}");
        }
    }
}
