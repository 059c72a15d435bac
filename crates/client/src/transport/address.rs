//! Where a server is: what a URL says of it.

use crate::error::ClientError;
use hyper::Uri;
use hyper::header::HeaderValue;

/// A server's address.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// As it is shown: it has no secret in it.
    pub(crate) url: String,
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As the header field has it.
    pub(crate) authority: HeaderValue,
    /// What every path begins with, if a proxy put the server there.
    prefix: String,
}

impl Address {
    pub(crate) fn new(url: &str) -> Result<Self, ClientError> {
        // Not shown as it is: someone may have written a password into it.
        let wrong = |why: &str| {
            let cure = "write it as http://127.0.0.1:8655 or https://tollgate.example.com";
            ClientError::invalid(format!("the server's URL {why}: {cure}"))
        };
        let uri: Uri = url.trim().parse().map_err(|_| wrong("cannot be read"))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("begins with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user in it, which is no place for a token"));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query in it"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("names no host"));
        }
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let prefix = uri.path().trim_end_matches('/').to_owned();
        let scheme = if is_secure { "https" } else { "http" };
        Ok(Self {
            url: format!("{scheme}://{authority}{prefix}"),
            is_secure,
            host,
            port,
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|_| wrong("names no host"))?,
            prefix,
        })
    }

    /// A path of the API as this server has it.
    pub(crate) fn path(&self, path: &str) -> Result<Uri, ClientError> {
        let whole = format!("{}{path}", self.prefix);
        whole.parse().map_err(|_| ClientError::invalid(format!("{path:?} is not a path")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        let address = Address::new("http://127.0.0.1:8655").unwrap();
        assert_eq!((&*address.host, address.port, address.is_secure), ("127.0.0.1", 8655, false));
        assert_eq!(address.path("/v1/limits").unwrap(), "/v1/limits");
        let address = Address::new("https://tollgate.example.com/gate/").unwrap();
        assert_eq!((address.port, address.is_secure), (443, true));
        assert_eq!(address.path("/v1/limits?limit=1").unwrap(), "/gate/v1/limits?limit=1");
        assert_eq!(Address::new("http://[::1]:8655").unwrap().host, "::1");
    }

    #[test]
    fn what_is_no_address_is_refused_and_no_secret_is_shown() {
        for url in [
            "",
            "localhost",
            "localhost:8655",
            "ftp://a",
            "http://",
            "http://u:hush@a",
            "http://a?x=1",
        ] {
            let error = Address::new(url).unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:8655") && !error.contains("hush"), "{error}");
        }
    }
}
