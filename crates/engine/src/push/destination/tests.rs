//! Urls as people write them, and as those do who want to reach something else.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

fn read(text: &str) -> Destination {
    Destination::parse(text).unwrap()
}

fn error(text: &str) -> DestinationError {
    Destination::parse(text).unwrap_err()
}

/// The user and password that are sent.
fn sent(text: &str) -> String {
    let destination = read(text);
    let value = destination.authorization().unwrap();
    assert!(value.is_sensitive());
    let encoded = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn a_url_is_taken_apart() {
    let url = "HTTPS://API.Example.com:8443/a//b/%7Ec?x=1&y=%20#part";
    let destination = read(url);
    assert_eq!(destination.uri(), "https://api.example.com:8443/a//b/%7Ec?x=1&y=%20");
    assert_eq!(destination.host(), "api.example.com");
    assert_eq!(destination.port(), 8443);
    assert!(destination.is_https());
    assert_eq!(destination.origin(), "https://api.example.com:8443");
    assert_eq!(destination.authorization(), None);
    assert_eq!(destination.literal_ip(), None);
    assert_eq!(destination.as_text(), "HTTPS://API.Example.com:8443/a//b/%7Ec?x=1&y=%20");
}

#[test]
fn one_origin_has_one_name() {
    for text in ["https://a.b", "https://A.B:443/x", "https://u:p@a.b?q", "HTTPS://a.b/#f"] {
        assert_eq!(read(text).origin(), "https://a.b:443", "{text}");
    }
    assert_eq!(read("http://a.b").origin(), "http://a.b:80");
    assert_eq!(read("http://[0:0::0:1]:80/").origin(), "http://[::1]:80");
}

#[test]
fn a_request_goes_to_a_path_though_none_is_written() {
    for (text, uri) in [
        ("http://a.b", "http://a.b/"),
        ("http://a.b?x=1", "http://a.b/?x=1"),
        ("http://a.b:80/c", "http://a.b/c"),
        ("http://a.b:443/c", "http://a.b:443/c"),
        ("http://u@a.b/c", "http://a.b/c"),
        ("http://a.b/c@d:e", "http://a.b/c@d:e"),
    ] {
        assert_eq!(read(text).uri(), uri, "{text}");
    }
}

#[test]
fn credentials_become_a_header() {
    for (text, pair) in [
        ("https://user:pass@a.b/", "user:pass"),
        ("https://user@a.b/", "user:"),
        ("https://:key@a.b/", ":key"),
        ("https://u%40x:p%3A%2f%C3%A9@a.b/", "u@x:p:/é"),
        ("https://u:p:q@a.b/", "u:p:q"),
    ] {
        assert_eq!(sent(text), pair, "{text}");
    }
    for text in ["https://@a.b/", "https://:@a.b/"] {
        assert_eq!(read(text).authorization(), None, "{text}");
    }
    for text in ["%zz", "%4", "%", "u%00", "u:%0d%0a", "u%3Ax:p", "a@b", "é", "u%7f"] {
        assert_eq!(error(&format!("https://{text}@a.b/")), DestinationError::Credentials, "{text}");
    }
}

#[test]
fn credentials_are_not_shown() {
    let text = "https://user:secret@a.b/c?d#e";
    let destination = read(text);
    assert_eq!(destination.to_string(), "https://***@a.b/c?d");
    assert_eq!(format!("{destination:?}"), "Destination(https://***@a.b/c?d)");
    assert_eq!(destination.as_text(), "https://user:secret@a.b/c?d");
    for text in ["https://u:secret@", "https://u:secret@a b", "ftp://u:secret@a", "//secret"] {
        let error = error(text);
        assert!(!format!("{error} {error:?}").contains("secret"), "{text}");
    }
}

#[test]
fn an_address_is_seen_in_place_of_a_name() {
    for (text, ip) in [
        ("http://127.0.0.1/", Some("127.0.0.1")),
        ("http://[::1]:8080/", Some("::1")),
        ("http://[::ffff:10.0.0.1]/", Some("::ffff:10.0.0.1")),
        ("http://u:p@10.0.0.1/", Some("10.0.0.1")),
        ("http://10.0.0.1.example.com/", None),
        ("http://1e100.net/", None),
    ] {
        assert_eq!(read(text).literal_ip(), ip.map(|ip| ip.parse().unwrap()), "{text}");
    }
    for host in ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "0x", "1.2.3.4.5"] {
        assert_eq!(error(&format!("http://{host}/")), DestinationError::Host, "{host}");
    }
}

#[test]
fn what_is_no_destination_is_refused_with_its_cure() {
    for (text, wrong) in [
        ("", DestinationError::Scheme),
        ("example.com", DestinationError::Scheme),
        ("ftp://example.com", DestinationError::Scheme),
        ("file:///etc/passwd", DestinationError::Scheme),
        ("https:/example.com", DestinationError::Scheme),
        ("https://", DestinationError::NoHost),
        ("https:///a", DestinationError::NoHost),
        ("https://u:p@/a", DestinationError::NoHost),
        ("https://:80/", DestinationError::NoHost),
        ("https://münchen.de/", DestinationError::HostNotAscii),
        ("https://a.b/ü", DestinationError::Path),
        ("https://a.b/?q=ü", DestinationError::Path),
        ("https://a..b/", DestinationError::Host),
        ("https://a%2eb/", DestinationError::Host),
        ("https://a,b/", DestinationError::Host),
        ("https://[::1/", DestinationError::Host),
        ("https://[fe80::1%25eth0]/", DestinationError::Host),
        ("https://[::1]x/", DestinationError::Host),
        ("https://a:0/", DestinationError::Port),
        ("https://a:65536/", DestinationError::Port),
        ("https://a:+80/", DestinationError::Port),
        ("https://a:/", DestinationError::Port),
        ("https://::1/", DestinationError::Port),
        ("https://a.b/ c", DestinationError::Character { at: 13, found: ' ' }),
        ("https://a.b\\@c/", DestinationError::Character { at: 12, found: '\\' }),
        ("https://a.b/\r\nHost: c", DestinationError::Character { at: 13, found: '\r' }),
        (" https://a.b", DestinationError::Character { at: 1, found: ' ' }),
    ] {
        assert_eq!(error(text), wrong, "{text}");
    }
    let cure = error("https://münchen.de/").to_string();
    assert_eq!(cure, "the host of the destination is not ASCII: write it in punycode, as xn--…");
}

#[test]
fn bounds_hold_on_both_sides() {
    let start = "https://a.b/";
    let longest = format!("{start}{}", "c".repeat(BYTES_MAX - start.len()));
    assert!(Destination::parse(&longest).is_ok());
    let longer = format!("{longest}c");
    assert_eq!(error(&longer), DestinationError::TooLong { bytes: BYTES_MAX + 1 });
    let label = "a".repeat(63);
    assert!(Destination::parse(&format!("https://{label}.b")).is_ok());
    assert_eq!(error(&format!("https://{label}a.b")), DestinationError::Host);
    let name = [label.as_str(); 4].join(".");
    assert!(Destination::parse(&format!("https://{}", &name[..253])).is_ok());
    assert_eq!(error(&format!("https://{}", &name[..254])), DestinationError::Host);
}

proptest! {
    #[test]
    fn any_text_is_a_destination_or_none(
        text in ".*|https?://[a-zA-Z0-9:@%./?#\\[\\]_-]{0,40}|https?://[!-~]{1,20}/[!-~]{0,20}",
    ) {
        let Ok(destination) = Destination::parse(&text) else { return Ok(()) };
        let uri = destination.uri();
        prop_assert_eq!(uri.host(), Some(destination.host()));
        let port = uri.port_u16().unwrap_or(if destination.is_https() { 443 } else { 80 });
        prop_assert_eq!(port, destination.port());
        prop_assert!(uri.authority().is_some_and(|authority| !authority.as_str().contains('@')));
        prop_assert!(uri.path().starts_with('/'));
        // What is kept is read again as the same, and what is shown is a url, too.
        prop_assert_eq!(&Destination::parse(destination.as_text()).unwrap(), &destination);
        let shown = Destination::parse(&destination.to_string()).unwrap();
        prop_assert_eq!(shown.uri(), uri);
    }
}
