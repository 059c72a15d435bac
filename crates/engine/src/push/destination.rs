//! Where a call is pushed to: an http or https url, taken apart and checked once.

mod credentials;
mod host;
#[cfg(test)]
mod tests;

use host::Host;
use http::{HeaderValue, Uri};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Bytes of a url: common servers take not many more, and it is kept with its call.
pub const BYTES_MAX: usize = 2 * 1024;

/// An http or https url that a call can be sent to.
///
/// Credentials in it are taken out and become a header; neither `Display` nor `Debug` show them.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    // Invariant: all that follows is what `text` says.
    text: Box<str>,
    uri: Uri,
    is_https: bool,
    host: Host,
    port: u16,
    authorization: Option<HeaderValue>,
}

/// Why a text is no destination. It does not show the text, for that may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// It has too many bytes.
    #[error("a destination has up to {BYTES_MAX} bytes, and this one {bytes}: shorten it")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// A character that no url has.
    #[error("character {at} of the destination is {found:?}, which no url has: percent-encode it")]
    Character {
        /// Where it is, counted from 1.
        at: usize,
        /// What it is.
        found: char,
    },
    /// It is for something else than http, or for nothing.
    #[error("a destination begins with http:// or https://, and this one does not: add it")]
    Scheme,
    /// There is no host.
    #[error("the destination names no host: write one after http:// or https://")]
    NoHost,
    /// The host is in letters that DNS does not know.
    #[error("the host of the destination is not ASCII: write it in punycode, as xn--…")]
    HostNotAscii,
    /// The host cannot be one.
    #[error(
        "the host of the destination is none: write a name of letters, digits, hyphens and dots, or an address as 192.0.2.1 or [2001:db8::1]"
    )]
    Host,
    /// The port cannot be one.
    #[error("the port of the destination is none: write a number from 1 to 65535, or leave it out")]
    Port,
    /// The user or password cannot be sent.
    #[error(
        "the user and password in the destination cannot be sent: percent-encode what is not a letter or digit in them, and use no control characters"
    )]
    Credentials,
    /// The path or query is not in ASCII, or has what no url has.
    #[error(
        "the path or query of the destination has characters that no url has: percent-encode them"
    )]
    Path,
}

impl Destination {
    /// Reads a url. A fragment is dropped, for it is never sent.
    pub fn parse(text: &str) -> Result<Self, DestinationError> {
        if text.len() > BYTES_MAX {
            return Err(DestinationError::TooLong { bytes: text.len() });
        }
        if let Some((at, found)) = text.chars().enumerate().find(|(_, c)| is_foreign(*c)) {
            return Err(DestinationError::Character { at: at + 1, found });
        }
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (scheme, rest) = text.split_once("://").ok_or(DestinationError::Scheme)?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return Err(DestinationError::Scheme);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (authorization, address) = match authority.rsplit_once('@') {
            Some((userinfo, address)) => (credentials::authorization(userinfo)?, address),
            None => (None, authority),
        };
        let (host, port) = host::read(address)?;
        let uri = uri(is_https, &host, port, path)?;
        let port = port.unwrap_or(default_port(is_https));
        Ok(Self { text: text.into(), uri, is_https, host, port, authorization })
    }

    /// The url without credentials: what a request is sent to.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The host in lower case; an IPv6 address stands in brackets.
    pub fn host(&self) -> &str {
        &self.host.text
    }

    /// The port that is connected to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The value of `Authorization` that credentials in the url stand for, marked as sensitive.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Scheme, host and port, as `https://api.example.com:443`: one text for all ways to write it.
    pub fn origin(&self) -> String {
        format!("{}://{}:{}", scheme(self.is_https), self.host.text, self.port)
    }

    /// The address that stands in place of a name, so that it can be checked before all else.
    pub fn literal_ip(&self) -> Option<IpAddr> {
        self.host.ip
    }

    /// The text that was read, with credentials: to be kept, and not to be shown.
    pub fn as_text(&self) -> &str {
        &self.text
    }
}

/// Whether a character has no place in a url. A backslash is a slash to some, and a way to have two
/// readers find two hosts.
fn is_foreign(c: char) -> bool {
    c.is_control() || c.is_whitespace() || c == '\\'
}

const fn scheme(is_https: bool) -> &'static str {
    if is_https { "https" } else { "http" }
}

const fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

/// Without the port if it goes without saying: so a receiver is used to its own name.
fn uri(
    is_https: bool,
    host: &Host,
    port: Option<u16>,
    path: &str,
) -> Result<Uri, DestinationError> {
    if !path.is_ascii() {
        return Err(DestinationError::Path);
    }
    let port = port.filter(|port| *port != default_port(is_https));
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let text = format!("{}://{}{port}{slash}{path}", scheme(is_https), host.text);
    Uri::try_from(text).map_err(|_| DestinationError::Path)
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        Self::parse(text)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = if self.authorization.is_some() { "***@" } else { "" };
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let path = self.uri.path_and_query().map_or("", |path| path.as_str());
        write!(f, "{}://{hidden}{authority}{path}", scheme(self.is_https))
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({self})")
    }
}
