//! Cards as they are kept.

use super::*;
use crate::qstash::destination::Target;
use proptest::prelude::*;

fn draft(headers: &[(&str, &str)]) -> Draft {
    let pairs: Vec<Pair> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Draft::read(Target::Url("https://a.example/".to_owned()), &pairs).unwrap()
}

fn at() -> Timestamp {
    Timestamp::from_nanos(1_700_000_000_123_000_000)
}

fn text(card: &Card) -> String {
    String::from_utf8(card.to_bytes(&Delivery::default()).unwrap().into()).unwrap()
}

#[test]
fn a_card_says_what_there_is_to_say_and_no_more() {
    let plain = Card::new(&draft(&[]), Accepted { at: at(), ..Accepted::default() });
    assert_eq!(text(&plain), r#"{"c":1700000000123,"r":3}"#);
    let headers = [
        ("Upstash-Delay", "2s"),
        ("Upstash-Flow-Control-Key", "k"),
        ("Upstash-Flow-Control-Value", "parallelism=2"),
        ("Upstash-Label", "l"),
        ("Upstash-Redact-Fields", "body,header[X-A]"),
        ("Upstash-Retry-Delay", "1000"),
        ("Upstash-Callback", "https://c.example/"),
        ("Upstash-Callback-Retries", "1"),
    ];
    let accepted = Accepted {
        at: at(),
        caller_ip: Some("192.0.2.1".to_owned()),
        queue: Some("q".to_owned()),
        group: Some(("g".to_owned(), Some("e".to_owned()))),
        schedule: Some("scd_1".to_owned()),
        cron: Some("@daily".to_owned()),
        source: Some("msg_1".to_owned()),
    };
    let card = Card::new(&draft(&headers), accepted);
    assert_eq!(
        text(&card),
        concat!(
            r#"{"c":1700000000123,"n":1700000002123,"d":2000,"i":"192.0.2.1","q":"q","g":"g","e":"e","#,
            r#""s":"scd_1","t":"@daily","k":[{"k":"k","p":2,"d":1000}],"l":["l"],"rb":true,"#,
            r#""rh":["x-a"],"r":3,"x":"1000","cb":[["Upstash-Retries","1"]],"o":"msg_1"}"#,
        )
    );
    assert!(card.redact().hides("X-A") && card.redact().has_body);
    assert_eq!(card.keys[0].period_seconds(), Some(1));
}

#[test]
fn a_key_that_is_used_as_it_is_has_no_period() {
    let card = Card::new(&draft(&[("Upstash-Flow-Control-Key", "k")]), Accepted::default());
    assert_eq!(card.keys[0].period_seconds(), None);
}

#[test]
fn what_tells_of_a_secret_keeps_it() {
    let secret = Card::new(&draft(&[("Upstash-Redact-Fields", "header")]), Accepted::default());
    let mut card = Card::default();
    card.hide_as(&Card::default());
    assert!(!card.redact().has_body);
    card.hide_as(&secret);
    assert!(card.redact().has_body);
}

#[test]
fn a_card_that_does_not_fit_is_refused_and_one_that_does_is_not() {
    let delivery = Delivery::default();
    let rest = text(&Card { labels: vec![String::new()], ..Card::default() }).len();
    let written = delivery.to_bytes().unwrap().len();
    let most = ENVELOPE_BYTES_MAX - ENVELOPE_REST_BYTES - rest - written;
    let card = |bytes| Card { labels: vec!["x".repeat(bytes)], ..Card::default() };
    assert!(card(most).to_bytes(&delivery).is_ok());
    let error = card(most + 1).to_bytes(&delivery).unwrap_err();
    assert!(matches!(error, CardError::TooLong { .. }));
    assert_eq!(Fault::from(error).status().as_u16(), 400);
}

prop_compose! {
    fn cards()(
        created_ms in any::<u64>(),
        not_before_ms in prop::option::of(any::<u64>()),
        group in prop::option::of(".{0,9}"),
        labels in prop::collection::vec(".{0,9}", 0..3),
        flags in any::<(bool, bool, bool)>(),
        key in (".{1,9}", prop::option::of(any::<u64>()), prop::option::of(any::<u64>())),
        callback_headers in prop::collection::vec((".{0,9}", ".{0,9}"), 0..3),
        max_retries in any::<u32>(),
    ) -> Card {
        let (key, parallelism, rate) = key;
        Card {
            created_ms,
            not_before_ms,
            group,
            hidden_headers: labels.clone(),
            labels,
            hides_body: flags.0,
            hides_headers: flags.1,
            keys: vec![CardKey { key, parallelism, rate, period_ms: rate, has_feedback: flags.2, weight: rate }],
            callback_headers,
            max_retries,
            ..Card::default()
        }
    }
}

proptest! {
    #[test]
    fn a_card_that_is_written_is_the_card_that_is_read(card in cards()) {
        let bytes = card.to_bytes(&Delivery::default()).unwrap();
        prop_assert_eq!(Card::from_bytes(&bytes).unwrap(), card);
    }

    #[test]
    fn any_bytes_are_a_card_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Card::from_bytes(&bytes);
    }
}
