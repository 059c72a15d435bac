//! Destinations out of paths, as clients write them.

use super::*;
use proptest::prelude::*;

fn url(tail: &str, query: Option<&str>) -> String {
    match Addressed::read(tail, query).unwrap().target {
        Target::Url(url) => url,
        Target::Group(name) => panic!("{name} is a group"),
    }
}

fn error(tail: &str) -> String {
    Addressed::read(tail, None).unwrap_err().to_string()
}

#[test]
fn an_address_is_left_as_it_came() {
    for tail in [
        "https://example.com",
        "https://example.com/",
        "http://example.com:8080/a%20b/%2F?",
        "HTTPS://Example.com/%e9%C3",
    ] {
        let (path, query) = tail.split_once('?').map_or((tail, None), |(a, b)| (a, Some(b)));
        assert_eq!(url(path, query), tail);
    }
    assert_eq!(url("https://a.example/b", Some("x=%31&y=a+b")), "https://a.example/b?x=%31&y=a+b");
}

#[test]
fn slashes_that_were_merged_and_addresses_that_were_encoded_are_understood() {
    for tail in [
        "https:/a.example/b?c=1",
        "https%3A%2F%2Fa.example%2Fb%3Fc%3D1",
        "https%3a%2f%2fa.example%2fb%3fc%3d1",
        "https:%2F%2Fa.example%2Fb%3Fc=1",
        "https%3A//a.example/b%3Fc=1",
    ] {
        assert_eq!(url(tail, None), "https://a.example/b?c=1", "{tail}");
    }
    let both = url("https%3A%2F%2Fa.example%2Fb%3Fc%3D1", Some("d=2"));
    assert_eq!(both, "https://a.example/b?c=1&d=2");
}

#[test]
fn what_the_query_says_to_us_does_not_go_on() {
    let query = "a=1&qstash_token=s%2Bt&upstash-delay=1d10h&Upstash-Retries=1&upstash-retry-delay=1+%2B+retried&b";
    let addressed = Addressed::read("https://a.example/", Some(query)).unwrap();
    assert_eq!(
        addressed.target,
        Target::Url("https://a.example/?a=1&Upstash-Retries=1&b".to_owned())
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = [pair("upstash-delay", "1d10h"), pair("upstash-retry-delay", "1 + retried")];
    assert_eq!(addressed.headers, headers);
    assert_eq!(token(query).as_deref(), Some("s+t"));
    assert_eq!(token("a=qstash_token"), None);
    assert_eq!(url("https://a.example/", Some("qstash_token=x")), "https://a.example/");
    let wrong = Addressed::read("https://a.example/", Some("upstash-label=%ff"));
    assert_eq!(wrong, Err(TargetError::Encoding));
}

#[test]
fn a_plain_name_is_a_group() {
    for name in ["orders", "my-group_1.x", "api", "localhost"] {
        assert_eq!(Target::read(name), Ok(Target::Group(name.to_owned())));
    }
    let addressed = Addressed::read("orders", Some("upstash-retries=1&x=2")).unwrap();
    assert_eq!(addressed.target, Target::Group("orders".to_owned()));
    assert_eq!(addressed.headers.len(), 1);
}

#[test]
fn what_is_neither_is_refused_with_words() {
    let scheme = "invalid destination url: endpoint has invalid scheme, add http:// or https://";
    for tail in [
        "ftp://a.example",
        "example.com/a",
        "localhost:3000/a",
        "http:example.com",
        "a b",
        "https%3A",
        "/",
        "mailto:a@b.example",
        "https%253A%252F%252Fa.example",
        "https%3A%252F%252Fa.example",
    ] {
        assert_eq!(error(tail), scheme, "{tail}");
    }
    assert!(error("https://").starts_with("invalid destination url: the destination names no"));
    assert!(error("https:///a").starts_with("invalid destination url: "));
    assert!(error("api/llm").contains("not offered here"));
    assert_eq!(Target::read(""), Err(TargetError::Missing));
    assert_eq!(Target::read("https%3A%2F%2Fa%ff"), Err(TargetError::Encoding));
}

#[test]
fn a_queue_stands_before_the_destination() {
    let (queue, rest) = split_queue("my%2Dqueue/https://a.example/b").unwrap();
    assert_eq!((queue.as_str(), rest), ("my-queue", "https://a.example/b"));
    assert_eq!(split_queue("alone"), Err(TargetError::Missing));
    let longest = "q".repeat(NAME_BYTES_MAX);
    assert!(check_name("queue", &longest).is_ok());
    for wrong in ["", "a b", "a:b", &format!("{longest}q")] {
        assert!(matches!(check_name("queue", wrong), Err(TargetError::Name { .. })), "{wrong}");
    }
}

#[test]
fn credentials_are_not_shown() {
    let url = "https://user:secret@a.example/b".to_owned();
    assert_eq!(shown(&url), "https://***@a.example/b");
    assert!(!format!("{:?}", Target::Url(url)).contains("secret"));
    assert_eq!(shown("https://a.example"), "https://a.example");
}

proptest! {
    #[test]
    fn any_target_is_an_address_a_name_or_refused(
        tail in "(https?:/{0,3}|https?%3[aA]%2[fF]%2[fF]|[a-z]{0,3})[ -~]{0,30}|.{0,20}",
        query in prop::option::of("([a-z]{0,3}=?|upstash-[a-z]{0,3}=)[ -~]{0,20}"),
    ) {
        if let Ok(Addressed { target: Target::Url(url), .. }) = Addressed::read(&tail, query.as_deref()) {
            prop_assert!(Destination::parse(&url).is_ok());
        }
        let _ = split_queue(&tail);
    }
}

#[test]
fn an_address_of_ones_own_network_is_refused_where_it_can_be_seen() {
    let policy = AddressPolicy::default();
    for (url, told) in [
        ("http://[::1]/a", "endpoint resolves to a loopback address: ::1"),
        ("http://localhost:3000/", "endpoint resolves to a loopback address: 127.0.0.1"),
        ("http://a.localhost/", "endpoint resolves to a loopback address: 127.0.0.1"),
        ("https://10.0.0.7/", "endpoint resolves to a private address: 10.0.0.7"),
    ] {
        let error = check_address(url, &policy).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid destination url: {told}"));
    }
    assert_eq!(check_address("https://a.example/", &policy), Ok(()));
    let allowed = AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()] };
    assert_eq!(check_address("http://localhost/", &allowed), Ok(()));
}
