//! What becomes of a destination on its way in and out.

use super::*;
use serde_json::{Value, json};

fn read(value: &Value) -> Result<Delivery, Wrong> {
    let wire: DestinationWire = serde_json::from_value(value.clone()).unwrap();
    wire.delivery(&Caller::ANYONE)
}

fn told(delivery: &Delivery, telling: Telling) -> Value {
    serde_json::to_value(DestinationWire::new(delivery, &Caller::ANYONE, telling)).unwrap()
}

fn whole() -> Value {
    json!({
        "url": "https://ana:secret@api.example.com/v1/x?a=b",
        "method": "PUT",
        "headers": {"X-A": "1", "Authorization": "Bearer secret", "x-api-key": "secret"},
        "timeout": "30s",
        "retries": 3,
        "retry_delay": "pow(2, retried) * 1000",
        "fatal": [400, 404],
        "costs": {"openai-tpm": "body.usage.total_tokens", "units": "header.x-cost"},
        "callback": {"url": "https://b.example/", "headers": {"cookie": "secret"}},
        "failure_callback": {"url": "https://c.example/"},
    })
}

#[test]
fn all_of_it_goes_in_and_comes_out_again() {
    let delivery = read(&whole()).unwrap();
    assert_eq!(told(&delivery, Telling::All), whole());
}

#[test]
fn headers_stay_in_order() {
    let wire: DestinationWire = serde_json::from_str(r#"{"headers":{"b":"1","a":"2"}}"#).unwrap();
    let names = wire.delivery(&Caller::ANYONE).unwrap().headers;
    assert_eq!(names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn an_address_alone_is_an_object_with_nothing_else() {
    let short = read(&json!("https://api.example.com/v1")).unwrap();
    assert_eq!(short, read(&json!({"url": "https://api.example.com/v1"})).unwrap());
    assert_eq!(told(&short, Telling::NoSecrets), json!({"url": "https://api.example.com/v1"}));
}

#[test]
fn no_secret_is_shown() {
    let delivery = read(&whole()).unwrap();
    let shown = told(&delivery, Telling::NoSecrets);
    assert!(!shown.to_string().contains("secret"), "{shown}");
    assert_eq!(shown["url"], "https://***@api.example.com/v1/x?a=b");
    assert_eq!(shown["headers"]["X-A"], "1");
    assert_eq!(shown["headers"]["x-api-key"], "***");
    let bare = told(&delivery, Telling::NoHeaders);
    assert_eq!(bare["headers"]["X-A"], "***");
    let odd = Delivery { destination: Some("secret".to_owned()), ..Delivery::default() };
    assert_eq!(told(&odd, Telling::NoSecrets), json!({"url": "***"}));
}

#[test]
fn what_stands_for_a_secret_is_not_taken_for_one() {
    let shown = told(&read(&whole()).unwrap(), Telling::NoSecrets);
    let mut mended = shown.clone();
    let places = [
        ("/url", ".url", whole()["url"].clone()),
        ("/headers/Authorization", ".headers.Authorization", json!("Bearer x")),
        ("/headers/x-api-key", ".headers.x-api-key", json!("x")),
        ("/callback/headers/cookie", ".callback.headers.cookie", json!("x")),
    ];
    for (at, field, value) in places {
        let (named, why) = read(&mended).unwrap_err();
        assert_eq!((named.as_str(), why.as_str()), (field, IS_HIDDEN));
        *mended.pointer_mut(at).unwrap() = value;
    }
    assert!(read(&mended).is_ok());
}

#[test]
fn several_headers_of_a_name_are_shown_as_a_list() {
    let pair = |value: &str| ("x-a".to_owned(), value.to_owned());
    let delivery = Delivery { headers: vec![pair("1"), pair("2")], ..Delivery::default() };
    assert_eq!(told(&delivery, Telling::All), json!({"headers": {"x-a": "1, 2"}}));
    let twice: Result<DestinationWire, _> =
        serde_json::from_str(r#"{"headers":{"x-a":"1","X-A":"2"}}"#);
    assert!(twice.unwrap_err().to_string().contains("twice"));
}

#[test]
fn a_part_that_is_wrong_is_named() {
    for (wrong, field) in [
        (json!("ftp://x"), ".url"),
        (json!({"headers": {"Host": "x"}}), ".headers.host"),
        (json!({"fatal": [4_000_000]}), ".fatal"),
        (json!({"costs": {"units": "somewhere"}}), ".costs.units"),
        (json!({"callback": {"method": "PUT"}}), ".callback.url"),
        (
            json!({"callback": {"url": "https://b.example", "costs": {"u": "x"}}}),
            ".callback.costs.u",
        ),
    ] {
        assert_eq!(read(&wrong).unwrap_err().0, field, "{wrong}");
    }
    for wrong in [json!(7), json!(["x"]), json!({"uri": "x"}), json!({"headers": {"a": 1}})] {
        let read: Result<DestinationWire, _> = serde_json::from_value(wrong.clone());
        assert!(read.is_err(), "{wrong}");
    }
}
