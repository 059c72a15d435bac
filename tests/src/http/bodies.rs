//! Requests that are wrong: each gets an answer that says what to change.

use super::started::{JSON, Started};

/// What is wrong with a body for `/v1/consume`, the code, and what the answer says of it.
const MISTAKES: [(&str, &str, &str); 18] = [
    ("{", "malformed_json", "line 1 column 1"),
    ("{\"tolls\":\n[,]}", "malformed_json", "line 2 column 2"),
    ("{\"tolls\":[]} {}", "malformed_json", "trailing characters at line 1 column 14"),
    ("not json", "malformed_json", "line 1"),
    ("\u{feff}{\"tolls\":[]}", "malformed_json", "line 1"),
    ("null", "invalid_body", "expected an object"),
    ("[[{\"limit\":\"a\"}],\"fail\",null,0,null]", "invalid_body", "expected an object"),
    ("{}", "invalid_body", "missing field `tolls`"),
    ("{\"tolls\":{}}", "invalid_body", "`tolls`: invalid type: map"),
    ("{\"tolls\":[[\"a\",null,1,null]]}", "invalid_body", "`tolls[0]`: invalid type: sequence"),
    ("{\"tolls\":[{}]}", "invalid_body", "`tolls[0]`: missing field `limit`"),
    ("{\"tolls\":[{\"limit\":7}]}", "invalid_body", "`tolls[0].limit`: invalid type: integer `7`"),
    (
        "{\"tolls\":[{\"limit\":\"a\",\"weight\":-1}]}",
        "invalid_body",
        "a whole number, not negative",
    ),
    ("{\"tolls\":[{\"limit\":\"a\",\"wait\":1}]}", "invalid_body", "unknown field `wait`"),
    ("{\"tolls\":[],\"tolls\":[]}", "invalid_body", "duplicate field `tolls`"),
    ("{\"tolls\":[],\"on_exceeded\":\"block\"}", "invalid_body", "`fail`, `delay`, `wait`"),
    ("{\"tolls\":[],\"priority\":10}", "invalid_body", "a priority is 0 to 9"),
    ("{\"tolls\":[],\"max_wait\":\"soon\"}", "invalid_body", "\"soon\" is not a duration"),
];

#[tokio::test]
async fn a_mistake_in_the_body_is_named() {
    let server = Started::new().await;
    for (body, code, detail) in MISTAKES {
        let answer = server.ask("POST", "/v1/consume", &[JSON], body).await;
        let told = answer.problem(400, code);
        assert!(told.contains(detail), "{body}: {told}");
    }
}

#[tokio::test]
async fn a_mistake_in_a_limit_that_comes_along_is_named() {
    let server = Started::new().await;
    for (define, detail) in [
        ("{}", "missing field `rule`"),
        ("{\"rule\":\"leaky\"}", "unknown variant `leaky`, expected one of `token_bucket`"),
        ("{\"rule\":\"token_bucket\",\"limit\":1}", "missing field `per`"),
        ("{\"rule\":\"concurrency\",\"limit\":1,\"per\":1}", "concurrency has no per"),
    ] {
        let body = format!("{{\"tolls\":[{{\"limit\":\"a\",\"define\":{define}}}]}}");
        let answer = server.ask("POST", "/v1/consume", &[JSON], &body).await;
        let told = answer.problem(400, "invalid_body");
        assert!(told.contains(detail), "{define}: {told}");
        assert!(answer.field("field").as_str().unwrap().starts_with("tolls[0].define"));
    }
}

#[tokio::test]
async fn a_body_must_be_declared_as_json() {
    let server = Started::new().await;
    let body = "{\"tolls\":[]}";
    let form = ("content-type", "application/x-www-form-urlencoded");
    for headers in
        [&[][..], &[form], &[("content-type", "text/plain")], &[("content-type", "\u{1f}")]]
    {
        let answer = server.ask("POST", "/v1/consume", headers, body).await;
        if answer.status != 400 {
            let told = answer.problem(415, "unsupported_media_type");
            assert!(told.contains("application/json"), "{told}");
        }
    }
    for json in ["application/json; charset=utf-8", "Application/JSON"] {
        let answer = server.ask("POST", "/v1/consume", &[("content-type", json)], body).await;
        answer.problem(422, "no_toll");
    }
}

#[tokio::test]
async fn an_empty_body_is_asked_for() {
    let server = Started::new().await;
    let answer = server.ask("POST", "/v1/consume", &[JSON], "").await;
    assert!(answer.problem(400, "invalid_body").contains("the body is empty"));
}

#[tokio::test]
async fn a_huge_body_is_refused_before_it_is_sent() {
    let server = Started::new().await;
    let length = ("content-length", "1048577");
    let answer = server.ask("POST", "/v1/consume", &[JSON, length], "").await;
    assert!(answer.problem(413, "body_too_large").contains("1 MiB"));
}

#[tokio::test]
async fn a_huge_body_of_unknown_length_is_refused() {
    let server = Started::new().await;
    let head = b"POST /v1/consume HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
        transfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, " ".repeat(64 * 1024));
    let bytes = [head, chunk.repeat(17).as_bytes()].concat();
    server.send(&bytes).await.problem(413, "body_too_large");
}

#[tokio::test]
async fn the_largest_body_is_read() {
    let server = Started::new().await;
    let body = format!("{{\"tolls\":[]{}}}", " ".repeat(1024 * 1024 - 12));
    assert_eq!(body.len(), 1024 * 1024);
    server.ask("POST", "/v1/consume", &[JSON], &body).await.problem(422, "no_toll");
}

#[tokio::test]
async fn hostile_json_is_refused_and_not_repeated_at_length() {
    let server = Started::new().await;
    let long = "x".repeat(500_000);
    for body in [
        "[".repeat(500_000),
        format!("{{\"{long}\":1}}"),
        format!("{{\"tolls\":[{{\"limit\":\"{long}\"}}]}}"),
        format!("{{\"tolls\":[{{\"limit\":\"a\",\"define\":{{\"{long}\":1}}}}]}}"),
        format!("{{\"tolls\":[],\"max_wait\":\"{long}\"}}"),
        format!("{{\"tolls\":[],\"max_wait\":{}}}", "9".repeat(100_000)),
        format!("{{\"tolls\":[{}{{}}]}}", "{\"limit\":\"a\"},".repeat(50_000)),
    ] {
        let answer = server.ask("POST", "/v1/consume", &[JSON], &body).await;
        assert!((400..500).contains(&answer.status), "{}", answer.text);
        assert!(answer.text.len() < 5_000, "{:.200}", answer.text);
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf8_is_refused() {
    let server = Started::new().await;
    let head = "POST /v1/consume HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
        content-length: 23\r\n\r\n";
    let body = b"{\"tolls\":[{\"limit\":\"\xff\"}";
    server.send(&[head.as_bytes(), body].concat()).await.problem(400, "malformed_json");
}

#[tokio::test]
async fn routes_that_need_no_body_refuse_a_wrong_one() {
    let server = Started::per_second("stripe", 1).await;
    for (method, path) in [
        ("POST", "/v1/meters/stripe/reset"),
        ("POST", "/v1/meters/stripe/acme/reopen"),
        ("DELETE", "/v1/limits/stripe/pin"),
        ("DELETE", "/v1/limits/stripe"),
    ] {
        let answer = server.ask(method, path, &[JSON], "{\"force\":true}").await;
        assert!(answer.problem(400, "invalid_body").contains("unknown field `force`"));
    }
}
