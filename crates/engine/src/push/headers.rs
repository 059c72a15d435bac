//! The headers that a caller wants to be sent with what is pushed, checked at the door.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// As many headers as anyone sends; servers refuse not many more.
pub const HEADERS_MAX: usize = 64;

/// Bytes of one value: what common servers take in one line.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of all names and values: what common servers take in all, and what is kept with a call.
pub const TOTAL_BYTES_MAX: usize = 32 * 1024;

/// As much of a name that is none as an error shows.
const NAME_CHARS_SHOWN: usize = 64;

/// What is between two ends of one connection, or says where a message ends: the sender's to set.
const CONNECTION: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How names begin that Tollgate sets itself: what a caller could set, a receiver could not trust.
const OWN_PREFIXES: [&str; 2] = ["tollgate-", "webhook-"];

/// How names begin that are for proxies on the way.
const PROXY_PREFIX: &str = "proxy-";

/// Why headers are not sent. It names the header, and never shows a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadersError {
    /// A name that no header can have.
    #[error("{name:?} is no name of a header: use letters, digits and hyphens")]
    Name {
        /// Its first characters.
        name: String,
    },
    /// A value that no header can have.
    #[error("the value of header {name} has a line break or another control character: remove it")]
    Value {
        /// The header.
        name: HeaderName,
    },
    /// A value with too many bytes.
    #[error("the value of header {name} has {bytes} bytes, and {VALUE_BYTES_MAX} are the most")]
    ValueTooLong {
        /// The header.
        name: HeaderName,
        /// How many it has.
        bytes: usize,
    },
    /// A header that the connection decides.
    #[error("header {name} is between Tollgate and its destination: leave it out")]
    Connection {
        /// The header.
        name: HeaderName,
    },
    /// A header that Tollgate sets.
    #[error("header {name} is Tollgate's own: choose a name that does not begin as it does")]
    Own {
        /// The header.
        name: HeaderName,
    },
    /// Too many headers.
    #[error("a call has up to {HEADERS_MAX} headers, and {name} is one more: leave some out")]
    TooMany {
        /// The first that is too many.
        name: HeaderName,
    },
    /// Too many bytes together.
    #[error(
        "the headers of a call have up to {TOTAL_BYTES_MAX} bytes together, and with {name} they have more: leave some out"
    )]
    TooLong {
        /// The first that does not fit.
        name: HeaderName,
    },
}

impl HeadersError {
    /// Which header it is about.
    pub fn header(&self) -> &str {
        match self {
            Self::Name { name } => name,
            Self::Value { name }
            | Self::ValueTooLong { name, .. }
            | Self::Connection { name }
            | Self::Own { name }
            | Self::TooMany { name }
            | Self::TooLong { name } => name.as_str(),
        }
    }
}

/// Headers from names and values as text, in order; a name may be there several times.
///
/// All values are marked as sensitive, for nobody knows which of them is a key: they are not shown
/// by `Debug`, nor kept by connections that compress headers.
pub fn collect<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<HeaderMap, HeadersError> {
    let mut headers = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in pairs {
        let name = checked_name(name)?;
        if headers.len() == HEADERS_MAX {
            return Err(HeadersError::TooMany { name });
        }
        let value = checked_value(&name, value)?;
        bytes += name.as_str().len() + value.len();
        if bytes > TOTAL_BYTES_MAX {
            return Err(HeadersError::TooLong { name });
        }
        headers.append(name, value);
    }
    Ok(headers)
}

fn checked_name(text: &str) -> Result<HeaderName, HeadersError> {
    let wrong = |_| HeadersError::Name { name: text.chars().take(NAME_CHARS_SHOWN).collect() };
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(wrong)?;
    if CONNECTION.contains(&name.as_str()) || name.as_str().starts_with(PROXY_PREFIX) {
        return Err(HeadersError::Connection { name });
    }
    if OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix)) {
        return Err(HeadersError::Own { name });
    }
    Ok(name)
}

fn checked_value(name: &HeaderName, text: &str) -> Result<HeaderValue, HeadersError> {
    // Spaces around a value are not part of it: what is kept is what the receiver reads.
    let text = text.trim_matches([' ', '\t']);
    if text.len() > VALUE_BYTES_MAX {
        return Err(HeadersError::ValueTooLong { name: name.clone(), bytes: text.len() });
    }
    let wrong = |_| HeadersError::Value { name: name.clone() };
    let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(name: &str, value: &str) -> String {
        collect([(name, value)]).unwrap_err().to_string()
    }

    #[test]
    fn headers_come_as_they_were_given_and_several_of_a_name() {
        let pairs = [("X-One", " a b\t"), ("Cookie", "c"), ("x-one", "é"), ("X-Empty", "")];
        let headers = collect(pairs).unwrap();
        let ones: Vec<&[u8]> = headers.get_all("x-one").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(ones, [&b"a b"[..], "é".as_bytes()]);
        assert_eq!(headers.len(), 4);
        assert_eq!(headers["x-empty"], "");
    }

    #[test]
    fn no_value_is_shown() {
        let headers = collect([("Authorization", "Bearer secret"), ("X-Key", "secret")]).unwrap();
        assert!(!format!("{headers:?}").contains("secret"));
        for (name, value) in [("x", "secret\n"), ("host", "secret"), ("a b", "secret")] {
            let error = collect([(name, value)]).unwrap_err();
            assert!(!format!("{error:?} {error}").contains("secret"), "{name}");
        }
    }

    #[test]
    fn a_line_break_makes_no_second_header() {
        for value in ["a\r\nX-Two: b", "a\nb", "a\rb", "a\0b", "a\u{7f}"] {
            let message =
                "the value of header x has a line break or another control character: remove it";
            assert_eq!(error("X", value), message, "{value:?}");
        }
        for name in ["", "a b", "a:b", "a\r\nb", "é", "a\n"] {
            let message = error(name, "b");
            assert!(message.ends_with("is no name of a header: use letters, digits and hyphens"));
        }
    }

    #[test]
    fn what_is_the_connections_or_our_own_is_refused() {
        for name in [
            "Connection",
            "Keep-Alive",
            "Proxy-Authorization",
            "Proxy-Anything",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "HOST",
            "Content-Length",
            "Expect",
        ] {
            let name_shown = name.to_lowercase();
            let message = format!(
                "header {name_shown} is between Tollgate and its destination: leave it out"
            );
            assert_eq!(error(name, "x"), message);
        }
        for name in ["Tollgate-Call", "webhook-id", "WEBHOOK-SIGNATURE"] {
            assert!(error(name, "x").contains("is Tollgate's own"), "{name}");
        }
        for name in ["Content-Type", "User-Agent", "X-Host", "Tollgates", "Webhook", "Team"] {
            assert!(collect([(name, "x")]).is_ok(), "{name}");
        }
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        let long = "x".repeat(VALUE_BYTES_MAX);
        assert!(collect([("a", long.as_str())]).is_ok());
        assert_eq!(
            error("a", &format!("{long}x")),
            "the value of header a has 8193 bytes, and 8192 are the most"
        );
        assert!(collect(vec![("a", "x"); HEADERS_MAX]).is_ok());
        let many = collect(vec![("a", "x"); HEADERS_MAX + 1]).unwrap_err();
        assert!(matches!(many, HeadersError::TooMany { .. }));
        // Four values and their names of one letter each are the most.
        let most = &long[..VALUE_BYTES_MAX - 1];
        assert!(collect([("a", most); 4]).is_ok());
        let over = collect([("a", most), ("a", most), ("a", most), ("b", &long)]).unwrap_err();
        assert!(matches!(over, HeadersError::TooLong { name } if name == "b"));
    }

    proptest! {
        #[test]
        fn any_pairs_are_headers_of_one_line_or_refused(
            pairs in prop::collection::vec((".{0,8}|[a-zA-Z-]{1,8}", ".{0,20}|[ -~\r\n]{0,9}"), 0..4),
        ) {
            let pairs: Vec<(&str, &str)> =
                pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            if let Ok(headers) = collect(pairs.iter().copied()) {
                prop_assert_eq!(headers.len(), pairs.len());
                let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
                for value in headers.values() {
                    prop_assert!(!value.as_bytes().iter().any(is_control));
                }
            }
        }
    }
}
