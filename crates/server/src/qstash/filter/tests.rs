//! Filters as clients write them.

use super::*;
use proptest::prelude::*;

fn read(sought: Sought, query: &str) -> Filter {
    Filter::read(sought, query, b"").unwrap()
}

fn logs(query: &str) -> Filter {
    read(Sought::Logs, query)
}

fn message<'a>(labels: &'a [String]) -> Facts<'a> {
    Facts {
        message_id: "msg_1",
        dlq_id: Some("5-1"),
        state: Some(State::Retry),
        url: "https://A.example:8443/b,c?d=1",
        group: Some("g"),
        queue: Some("q"),
        schedule: Some("s"),
        labels,
        keys: vec!["k1", "k,2"],
        caller_ip: Some("192.0.2.1"),
        status: Some(503),
        time_ms: 100,
    }
}

fn labels() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}

#[test]
fn each_parameter_finds_what_has_it_and_nothing_else() {
    let labels = labels();
    let facts = message(&labels);
    for (sought, found, missed) in [
        (Sought::Logs, "messageId=msg_1", "messageId=msg_2"),
        (Sought::Logs, "messageIds=msg_0,msg_1", "messageIds=msg_0&messageIds=msg_2"),
        (Sought::Logs, "state=RETRY", "state=DELIVERED"),
        (Sought::Logs, "state=IN_PROGRESS", "state=FAILED,CANCELLED"),
        (
            Sought::Logs,
            "url=https%3A%2F%2Fb.example&url=https://A.example:8443/b,c%3Fd=1",
            "url=https://A.example:8443/b",
        ),
        (Sought::Logs, "host=x.example&host=a.example", "host=example"),
        (Sought::Cancel, "host=a.example:8443", "host=a.example:443"),
        (Sought::Cancel, "path=%2Fx,/b,c", "path=/b"),
        (Sought::Logs, "topicName=g", "topicName=h"),
        (Sought::Logs, "queueName=q", "queueName=Q"),
        (Sought::Logs, "scheduleId=s", "scheduleId=t"),
        (Sought::Logs, "label=x&label=b", "label=x&label=y"),
        (Sought::Logs, "flowControlKey=k,2", "flowControlKey=k"),
        (Sought::Logs, "flowControlKey=x,k1", "flowControlKey=x,k2"),
        (Sought::Logs, "callerIp=192.0.2.1", "callerIp=192.0.2.2"),
        (Sought::Dead, "responseStatus=500,503", "responseStatus=500"),
        (Sought::Dead, "dlqIds=5-1", "dlqIds=5-2"),
        (Sought::Logs, "fromDate=100&toDate=100", "fromDate=101"),
        (Sought::Logs, "toDate=100", "toDate=99"),
        (Sought::Logs, "label=a&queueName=q", "label=a&queueName=x"),
    ] {
        assert!(read(sought, found).matches(&facts), "{found}");
        assert!(!read(sought, found).is_all(), "{found}");
        assert!(!read(sought, missed).matches(&facts), "{missed}");
    }
    assert!(logs("").matches(&facts) && logs("count=5&cursor=x").is_all());
}

#[test]
fn what_a_message_does_not_have_is_not_found() {
    let facts = Facts { message_id: "msg_1", url: "https://a.example", ..Facts::default() };
    for query in ["topicName=g", "queueName=q", "label=a", "flowControlKey=k", "state=ERROR"] {
        assert!(!logs(query).matches(&facts), "{query}");
    }
    assert!(logs("path=/&host=a.example").matches(&facts));
    assert!(read(Sought::Dead, "responseStatus=0").matches(&facts));
}

#[test]
fn what_is_not_known_is_refused_by_its_name() {
    for (sought, query, named) in [
        (Sought::Dead, "labeel=x", "labeel"),
        (Sought::Dead, "host=a", "host"),
        (Sought::Cancel, "dlqIds=1", "dlqIds"),
        (Sought::Cancel, "state=ERROR", "state"),
        (Sought::Logs, "responseStatus=1", "responseStatus"),
        (Sought::Logs, "Label=x", "Label"),
    ] {
        let error = Filter::read(sought, query, b"").unwrap_err();
        assert_eq!(error, FilterError::Unknown { name: named.to_owned() });
        assert!(Fault::from(error).to_string().contains(named));
    }
    assert!(Filter::read(Sought::Logs, "qstash_token=x&groupBy=messageId", b"").is_ok());
}

#[test]
fn a_value_that_is_none_is_refused() {
    for (sought, query) in [
        (Sought::Cancel, "label="),
        (Sought::Cancel, "label=a,,b"),
        (Sought::Cancel, "messageIds="),
        (Sought::Cancel, "label"),
        (Sought::Cancel, "label=%ff"),
        (Sought::Logs, "count=0"),
        (Sought::Logs, "count=x"),
        (Sought::Logs, "fromDate=yesterday"),
        (Sought::Logs, "order=up"),
        (Sought::Logs, "state=LOST"),
        (Sought::Dead, "responseStatus=99999"),
    ] {
        assert!(Filter::read(sought, query, b"").is_err(), "{query}");
    }
    let many = vec!["x"; VALUES_MAX].join(",");
    assert!(Filter::read(Sought::Logs, &format!("label={many}"), b"").is_ok());
    assert!(Filter::read(Sought::Logs, &format!("label={many},x"), b"").is_err());
}

#[test]
fn a_count_to_cancel_is_taken_at_its_word_below_a_hundred() {
    let cancel = |query| read(Sought::Cancel, query).count();
    assert_eq!((cancel("count=1"), cancel("count=99")), (Some(1), Some(99)));
    assert_eq!((cancel("count=100"), cancel("count=500"), cancel("")), (None, None, None));
    assert_eq!((logs("").count(), logs("count=5000").count()), (Some(100), Some(1000)));
    assert_eq!(read(Sought::Dead, "count=500").count(), Some(100));
    assert_eq!(read(Sought::Dead, "count=5").count(), Some(5));
}

#[test]
fn pages_come_in_the_order_that_clients_expect() {
    assert_eq!(logs("").order(), Order::LatestFirst);
    assert_eq!(logs("order=earliestFirst").order(), Order::EarliestFirst);
    assert_eq!(read(Sought::Dead, "").order(), Order::EarliestFirst);
    assert_eq!(read(Sought::Dead, "order=latestFirst").order(), Order::LatestFirst);
    let filter = logs("cursor=x&fromDate=1&trimBody=true");
    assert_eq!((filter.cursor.as_deref(), filter.times_ms()), (Some("x"), (1, u64::MAX)));
    assert!(filter.is_trimmed && !logs("cursor=").is_trimmed);
    assert_eq!(logs("cursor=").cursor, None);
}

#[test]
fn ids_may_stand_in_the_body_and_an_empty_list_means_none() {
    let cancel = |body: &[u8]| Filter::read(Sought::Cancel, "", body);
    let filter = cancel(br#"{"messageIds": ["msg_1"]}"#).unwrap();
    assert_eq!(filter.ids(), Some(&["msg_1".to_owned()][..]));
    let none = cancel(br#"{"messageIds": []}"#).unwrap();
    assert_eq!(none.ids(), Some(&[][..]));
    assert!(!none.is_all() && !none.matches(&message(&[])));
    assert!(cancel(b" \n").unwrap().is_all());
    for wrong in [&b"x"[..], b"[]", b"{}", br#"{"ids": ["msg_1"]}"#, br#"{"messageIds": null}"#] {
        assert!(cancel(wrong).is_err());
    }
    let many = format!(r#"{{"dlqIds": {:?}}}"#, vec!["x"; VALUES_MAX + 1]);
    assert!(cancel(many.as_bytes()).is_err());
    let dead = Filter::read(Sought::Dead, "dlqIds=1-1", br#"{"dlqIds": ["1-2"]}"#).unwrap();
    assert_eq!(dead.ids().unwrap(), ["1-2", "1-1"]);
}

proptest! {
    #[test]
    fn any_query_and_body_are_a_filter_or_refused(
        query in "((label|url|path|count|state|messageIds|x)=[ -~]{0,12}&?){0,3}|.{0,20}",
        body in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        for sought in [Sought::Logs, Sought::Dead, Sought::Cancel] {
            if let Ok(filter) = Filter::read(sought, &query, &body) {
                let labels = labels();
                let _ = filter.matches(&message(&labels));
                prop_assert!(sought == Sought::Cancel || filter.count().is_some());
            }
        }
    }
}
