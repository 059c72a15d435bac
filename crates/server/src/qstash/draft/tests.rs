//! Drafts out of headers, as the SDKs send them.

use super::incoming::{BATCH_MAX, read_batch, request_headers};
use super::*;
use crate::qstash::card::{Accepted, Card};
use crate::qstash::error::Fault;
use proptest::prelude::*;
use tollgate::push::expression::Expression;
use tollgate::{Limit, RuleSpec};

const URL: &str = "https://a.example/b";

fn pairs(headers: &[(&str, &str)]) -> Vec<Pair> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn read(headers: &[(&str, &str)]) -> Result<Draft, DraftError> {
    Draft::read(Target::Url(URL.to_owned()), &pairs(headers))
}

fn draft(headers: &[(&str, &str)]) -> Draft {
    read(headers).unwrap()
}

fn error(headers: &[(&str, &str)]) -> String {
    read(headers).unwrap_err().to_string()
}

#[test]
fn a_message_that_says_nothing_is_a_post_that_is_tried_four_times() {
    let draft = draft(&[]);
    assert_eq!(draft.delivery.destination.as_deref(), Some(URL));
    assert_eq!(draft.delivery.method.as_deref(), Some("POST"));
    assert_eq!((draft.retries(), draft.start), (3, Start::Now));
    assert_eq!((draft.delivery.retry_delay, draft.delivery.timeout), (None, None));
    assert!(draft.keys.is_empty() && draft.labels.is_empty() && draft.redact == Redact::default());
    assert_eq!((draft.dedup, draft.cron, draft.schedule, draft.queue), (None, None, None, None));
    let group = Draft::read(Target::Group("all".to_owned()), &[]).unwrap();
    assert_eq!(group.delivery.destination, None);
}

#[test]
fn what_the_javascript_client_sends_is_understood() {
    let draft = draft(&[
        ("upstash-forward-test-header", "1"),
        ("content-type", "application/json"),
        ("upstash-method", "PUT"),
        ("upstash-delay", "10s"),
        ("upstash-retries", "5"),
        ("upstash-retry-delay", "max(1000, pow(2, retried) * 100)"),
        ("upstash-timeout", "30s"),
        ("upstash-flow-control-key", "key"),
        ("upstash-flow-control-value", "parallelism=3, rate=5, period=1h30m3s"),
        ("upstash-label", "one,two"),
        ("upstash-redact-fields", "body,header[Authorization]"),
        ("upstash-telemetry-sdk", "upstash-qstash-js@v2"),
        ("authorization", "Bearer secret"),
        ("accept", "*/*"),
    ]);
    let headers = pairs(&[("content-type", "application/json"), ("test-header", "1")]);
    assert_eq!(draft.delivery.headers, headers);
    assert_eq!(draft.delivery.method.as_deref(), Some("PUT"));
    assert_eq!(draft.start, Start::After(Span::from_secs(10)));
    assert_eq!(draft.retries(), 5);
    assert_eq!(draft.delivery.retry_delay.as_deref(), Some("max(1000, pow(2, retried) * 100)"));
    assert_eq!(draft.delivery.timeout, Some(Span::from_secs(30)));
    assert_eq!(draft.labels, ["one", "two"]);
    assert!(draft.redact.has_body && draft.redact.hides("authorization"));
    assert!(!draft.redact.hides("Content-Type"));
    let [key] = &draft.keys[..] else { panic!("one key") };
    assert_eq!(
        (key.parallelism, key.rate, key.window()),
        (Some(3), Some(5), Span::from_secs(5403))
    );
}

#[test]
fn names_of_headers_are_read_in_any_case_and_booleans_of_python_too() {
    let draft = draft(&[
        ("UPSTASH-Method", "get"),
        ("Upstash-Content-Based-Deduplication", "True"),
        ("Upstash-Forward-content-type", "text/plain"),
        ("Content-Type", "application/json"),
    ]);
    assert_eq!(draft.delivery.method.as_deref(), Some("GET"));
    assert_eq!(draft.dedup, Some(Dedup::Content));
    assert_eq!(draft.delivery.headers, pairs(&[("content-type", "text/plain")]));
    assert_eq!(read(&[("Upstash-Content-Based-Deduplication", "False")]).unwrap().dedup, None);
    let wrong = error(&[("Upstash-Content-Based-Deduplication", "yes")]);
    assert!(wrong.contains("true or false"), "{wrong}");
}

#[test]
fn a_webhook_is_sent_on_with_its_headers_but_not_with_the_token() {
    let draft = draft(&[
        ("Upstash-Header-Forward", "true"),
        ("X-Github-Event", "push"),
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer secret"),
        ("Host", "here.example"),
        ("Content-Length", "3"),
        ("Upstash-Retries", "1"),
    ]);
    let headers = pairs(&[("content-type", "application/json"), ("X-Github-Event", "push")]);
    assert_eq!(draft.delivery.headers, headers);
}

#[test]
fn durations_are_read_as_everywhere_and_an_instant_wins() {
    let delay = |text| draft(&[("Upstash-Delay", text)]).start;
    assert_eq!(delay("1d10h30m"), Start::After(Span::from_minutes(34 * 60 + 30)));
    assert_eq!(delay("60"), Start::After(Span::from_secs(60)));
    assert_eq!(delay("250ms"), Start::After(Span::from_millis(250)));
    assert_eq!(delay("0s"), Start::Now);
    let both = draft(&[("Upstash-Delay", "5s"), ("Upstash-Not-Before", "1700000000")]);
    let instant = Timestamp::from_nanos(1_700_000_000_000_000_000);
    assert_eq!(both.start, Start::At(instant));
    assert_eq!(both.not_before(Timestamp::from_nanos(1)), instant);
    let later = instant.plus(Span::from_secs(1));
    assert_eq!(both.not_before(later), later);
    let five = draft(&[("Upstash-Delay", "5s")]);
    assert_eq!(five.not_before(instant), instant.plus(Span::from_secs(5)));
    assert!(error(&[("Upstash-Not-Before", "1700000000000")]).contains("not milliseconds"));
    for (header, wrong) in [
        ("Upstash-Delay", "soon"),
        ("Upstash-Delay", "20000d"),
        ("Upstash-Timeout", "3h"),
        ("Upstash-Not-Before", "-1"),
    ] {
        assert!(read(&[(header, wrong)]).is_err(), "{header}: {wrong}");
    }
}

#[test]
fn a_key_is_a_limit_of_its_rate_and_then_its_parallelism() {
    let key = |value| {
        let headers = [("Upstash-Flow-Control-Key", "k"), ("Upstash-Flow-Control-Value", value)];
        draft(&headers).keys.remove(0)
    };
    let both = key("period=1w,parallelism=2 , rate=10").limit().unwrap();
    let [RuleSpec::FixedWindow { limit: 10, per, .. }, RuleSpec::Concurrency { limit: 2 }] =
        both.rules()
    else {
        panic!("{both:?}")
    };
    assert_eq!(*per, Span::from_days(7));
    assert_eq!(key("rate=1").limit(), Some(Limit::fixed_window(1, Span::from_secs(1))));
    assert_eq!(key("parallelism=1,period=5").limit(), Some(Limit::concurrency(1)));
    assert_eq!(key("").limit(), None);
    let weighed = key("rate=10,weight=7,feedback=true");
    assert!(weighed.weight == 7 && weighed.has_feedback);
}

#[test]
fn a_value_that_is_no_limit_is_refused_in_known_words() {
    let refused = |value: &str| {
        error(&[("Upstash-Flow-Control-Key", "k"), ("Upstash-Flow-Control-Value", value)])
    };
    let known = "Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values";
    for value in ["5", "rate", "rate=x", "rate=-1", "rate=+1", "period=5s", "burst=1,rate=1", ","] {
        assert_eq!(refused(value), known, "{value}");
    }
    assert!(refused("rate=0").contains("rate is 0"));
    assert!(refused("parallelism=0").contains("parallelism is 0"));
    assert!(refused("rate=1,period=8d").contains("up to 1w"));
    assert!(refused("rate=1,period=0").contains("up to 1w"));
    assert!(refused("rate=1,period=x").contains("period: "));
    assert!(refused("rate=5,weight=6").contains("5 is the most"));
    assert!(refused("rate=99999999999999999").contains("the most is"));
}

#[test]
fn keys_pair_with_their_values_by_position() {
    let draft = draft(&[
        ("Upstash-Flow-Control-Key", "a"),
        ("Upstash-Flow-Control-Value", ""),
        ("Upstash-Flow-Control-Key", "b/c"),
        ("Upstash-Flow-Control-Value", "rate=2"),
        ("Upstash-Flow-Control-Key", "c"),
    ]);
    let read: Vec<_> = draft.keys.iter().map(|key| (key.key.as_str(), key.rate)).collect();
    assert_eq!(read, [("a", None), ("b/c", Some(2)), ("c", None)]);
    assert!(error(&[("Upstash-Flow-Control-Value", "rate=1")]).contains("for 0 Upstash-Flow"));
    let twice = [("Upstash-Flow-Control-Key", "a"), ("Upstash-Flow-Control-Key", "a")];
    assert!(error(&twice).contains("named once"));
    for wrong in ["$", "$ https://a.example", "tollgate:pushes", "a\nb", &"k".repeat(513)] {
        assert!(read_key(wrong).is_err(), "{wrong}");
    }
    assert!(read_key("$money").is_ok() && read_key(&"k".repeat(512)).is_ok());
    let many: Vec<String> = (0..9).map(|at| at.to_string()).collect();
    let many: Vec<_> = many.iter().map(|key| ("Upstash-Flow-Control-Key", key.as_str())).collect();
    assert!(super::tests::read(&many[..8]).is_ok());
    assert!(error(&many).contains("up to 8"));
}

fn read_key(key: &str) -> Result<Draft, DraftError> {
    read(&[("Upstash-Flow-Control-Key", key)])
}

#[test]
fn a_callback_has_words_of_its_own_which_make_a_message() {
    let draft = draft(&[
        ("Upstash-Callback", "https://c.example/?x=1"),
        ("Upstash-Callback-Retries", "1"),
        ("Upstash-Callback-Forward-X-A", "a"),
        ("Upstash-Callback-X-Python", "b"),
        ("Upstash-Callback-Workflow-RunId", "wfr_1"),
        ("Upstash-Failure-Callback", "https://f.example/"),
        ("Upstash-Failure-Callback-Method", "PUT"),
        ("Upstash-Retries", "7"),
    ]);
    let callback = draft.delivery.callback.as_ref().unwrap();
    assert_eq!(callback.destination.as_deref(), Some("https://c.example/?x=1"));
    let message = Draft::of_callback("https://c.example/", &draft.callback_headers, 7).unwrap();
    let headers = [("content-type", "application/json"), ("X-A", "a"), ("X-Python", "b")];
    assert_eq!(message.delivery.headers, pairs(&headers));
    assert_eq!(message.retries(), 1);
    let failure = &draft.failure_callback_headers;
    let message = Draft::of_callback("https://f.example/", failure, draft.retries()).unwrap();
    assert_eq!((message.delivery.method.as_deref(), message.retries()), (Some("PUT"), 7));
    assert_eq!(read(&[("Upstash-Callback-Retries", "x")]).unwrap().callback_headers, []);
}

#[test]
fn what_is_wrong_with_a_callback_is_said_at_once() {
    let of = |name, value| error(&[("Upstash-Callback", "https://c.example/"), (name, value)]);
    let wrong = of("Upstash-Callback-Retries", "x");
    assert!(wrong.starts_with("Upstash-Callback: Upstash-Retries is \"x\""), "{wrong}");
    assert!(of("Upstash-Callback-Forward-Host", "x").contains("header host"));
    let wrong = error(&[("Upstash-Failure-Callback", "ftp://user:secret@a.example")]);
    assert!(wrong.starts_with("Upstash-Failure-Callback: ") && !wrong.contains("secret"));
}

#[test]
fn no_value_of_a_header_is_printed() {
    let draft = draft(&[
        ("Upstash-Forward-Authorization", "secret"),
        ("Upstash-Callback", "https://u:secret@c.example/"),
        ("Upstash-Callback-Forward-Authorization", "secret"),
    ]);
    assert!(!format!("{draft:?}").contains("secret"));
    let card = Card::new(&draft, Accepted::default());
    assert!(!format!("{card:?}").contains("secret"));
}

#[test]
fn a_schedule_has_its_zone_and_its_name() {
    let draft = draft(&[
        ("Upstash-Cron", " CRON_TZ=Europe/Berlin 0 9 * * 1-5 "),
        ("Upstash-Schedule-Id", "a_B-1.x"),
        ("Upstash-Queue-Name", "q"),
    ]);
    let cron = draft.cron.unwrap();
    assert_eq!(cron.text, "CRON_TZ=Europe/Berlin 0 9 * * 1-5");
    assert_eq!(cron.cron, Cron::new("0 9 * * 1-5", "Europe/Berlin").unwrap());
    assert_eq!((draft.schedule.as_deref(), draft.queue.as_deref()), (Some("a_B-1.x"), Some("q")));
    assert_eq!(
        super::tests::draft(&[("Upstash-Cron", "*/5 * * * *")]).cron.unwrap().cron.zone(),
        "UTC"
    );
    for (header, wrong) in [
        ("Upstash-Cron", "* * * *"),
        ("Upstash-Cron", "CRON_TZ=Nowhere * * * * *"),
        ("Upstash-Cron", "CRON_TZ=UTC"),
        ("Upstash-Schedule-Id", "a/b"),
        ("Upstash-Queue-Name", "a b"),
    ] {
        assert!(read(&[(header, wrong)]).is_err(), "{header}: {wrong}");
    }
}

#[test]
fn a_message_is_known_again_by_its_name_or_by_what_it_says() {
    let named = draft(&[("Upstash-Deduplication-Id", "x")]);
    assert_eq!(named.dedup_key(URL, b"1").as_deref(), Some("x"));
    assert_eq!(draft(&[]).dedup_key(URL, b"1"), None);
    let on = ("Upstash-Content-Based-Deduplication", "true");
    let key = |headers: &[(&str, &str)], url: &str, body: &[u8]| {
        draft(&[&[on], headers].concat()).dedup_key(url, body).unwrap()
    };
    let (a, b) = (("Upstash-Forward-A", "1"), ("Upstash-Forward-B", "2"));
    let first = key(&[a, b], URL, b"x");
    assert_eq!(key(&[b, ("upstash-forward-a", "1")], URL, b"x"), first);
    assert_eq!(first.len(), 64);
    for other in [
        key(&[a], URL, b"x"),
        key(&[a, b], "https://a.example/", b"x"),
        key(&[a, b], URL, b"y"),
        key(&[a, b, ("Content-Type", "text/plain")], URL, b"x"),
    ] {
        assert_ne!(other, first);
    }
    assert!(read(&[("Upstash-Deduplication-Id", &"x".repeat(513))]).is_err());
}

#[test]
fn each_setting_has_its_bounds_and_says_so() {
    let labels: Vec<String> = (0..17).map(|at| at.to_string()).collect();
    for (header, value, said) in [
        ("Upstash-Method", "TRACE", "GET, POST, PUT, PATCH or DELETE"),
        ("Upstash-Retries", "1001", "from 0 to 1000"),
        ("Upstash-Retries", "1.5", "from 0 to 1000"),
        ("Upstash-Priority", "9", "from 0 to 8"),
        ("Upstash-Retry-Delay", "pow(2", "retry_delay"),
        ("Upstash-Redact-Fields", "body,footer", "header[Name]"),
        ("Upstash-Label", &labels.join(","), "up to 16"),
        ("Upstash-Label", &"x".repeat(257), "1 to 256 bytes"),
        ("Upstash-Forward-Host", "x", "header host"),
        ("Upstash-Forward-X", "a\nb", "line break"),
    ] {
        let error = error(&[(header, value)]);
        assert!(error.contains(said), "{header}: {error}");
    }
    assert_eq!(draft(&[("Upstash-Priority", "8")]).priority, Priority::new(8).unwrap());
    let long = "x".repeat(6 << 10);
    let headers = [
        ("Upstash-Forward-A", long.as_str()),
        ("Upstash-Callback", "https://c.example/"),
        ("Upstash-Callback-Forward-A", long.as_str()),
        ("Upstash-Failure-Callback-Forward-A", long.as_str()),
    ];
    assert!(read(&headers[..3]).is_ok());
    assert!(error(&headers).contains("up to 16384 bytes together"));
}

#[test]
fn a_wait_before_a_retry_grows_from_seconds_to_a_day() {
    let backoff = Expression::parse(RETRY_DELAY_DEFAULT).unwrap();
    let seconds: Vec<u64> =
        (0..5).map(|retried| backoff.delay(retried).as_nanos() / NANOS_PER_SECOND).collect();
    assert_eq!(seconds, [12, 148, 1808, 22026, 86400]);
}

#[test]
fn a_batch_is_read_as_both_clients_write_it() {
    let body = br#"[
        {"destination": "https://a.example", "headers": {"upstash-method": "POST"}, "body": "x"},
        {"destination": "group", "headers": {"Upstash-Retries": 3, "Upstash-Label": ["a", "b"],
         "Upstash-Delay": null}, "body": null, "queue": null},
        {"destination": "https://b.example", "queue": "q"}
    ]"#;
    let items = read_batch(body).unwrap();
    assert_eq!((items[0].destination.as_str(), items[0].body.as_str()), ("https://a.example", "x"));
    let headers = [("Upstash-Label", "a"), ("Upstash-Label", "b"), ("Upstash-Retries", "3")];
    assert_eq!(items[1].headers, pairs(&headers));
    assert_eq!((items[1].body.as_str(), &items[1].queue), ("", &None));
    assert_eq!(items[2].queue.as_deref(), Some("q"));
    for wrong in [&b"{}"[..], b"[1]", b"[{}]", br#"[{"destination":"a","headers":{"a":{}}}]"#] {
        assert!(read_batch(wrong).is_err());
    }
    let many = format!("[{}]", vec![r#"{"destination":"a"}"#; BATCH_MAX + 1].join(","));
    assert!(matches!(read_batch(many.as_bytes()), Err(DraftError::TooMany { .. })));
}

#[test]
fn headers_of_a_request_are_text_whatever_their_bytes() {
    let mut headers = axum::http::HeaderMap::new();
    let value = |bytes: &[u8]| axum::http::HeaderValue::from_bytes(bytes).unwrap();
    headers.append("upstash-label", value("é".as_bytes()));
    headers.append("upstash-label", value(b"\xe9"));
    assert_eq!(request_headers(&headers), pairs(&[("upstash-label", "é"), ("upstash-label", "é")]));
    assert_eq!(Fault::from(DraftError::FlowControlValue).status().as_u16(), 400);
}

proptest! {
    #[test]
    fn any_headers_are_a_draft_or_refused(
        headers in prop::collection::vec(
            (
                "(?i)upstash-(method|delay|not-before|retries|timeout|label|redact-fields|cron|priority|callback|failure-callback|callback-retries|forward-x|flow-control-key|flow-control-value|header-forward|schedule-id)|[a-z-]{1,9}|.{0,5}",
                "[0-9]{1,20}[smhd]?|(rate|parallelism|period)=[0-9]{1,9}(,rate=[0-9]{1,9})?|https?://[a-z.]{1,9}|true|.{0,20}|[ -~\r\n]{0,20}",
            ),
            0..8,
        ),
    ) {
        if let Ok(draft) = Draft::read(Target::Url(URL.to_owned()), &headers) {
            prop_assert!(check(&draft.delivery).is_ok());
            prop_assert!(draft.retries() <= RETRIES_MAX);
            for key in &draft.keys {
                prop_assert!(key.limit().is_none_or(|limit| tollgate::lanes::Definition::new(limit).is_ok()));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_batch_or_refused(body in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = read_batch(&body);
    }
}
