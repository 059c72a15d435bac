//! Limits and meters, and what goes wrong on the way.

use super::served::Served;
use serde_json::json;
use std::sync::Arc;
use tollgate::MeterState;
use tollgate_client::{Client, ClientError, Limit, Span, toll};

#[tokio::test]
async fn limits_are_defined_changed_and_looked_at() {
    let served = Served::new().await;
    let client = served.client();
    let daily = Limit::fixed_window(10_000, Span::from_days(1)).on_calendar("Europe/Berlin");
    let openai = daily.and(Limit::concurrency(20));
    client.limit_as("ana", "openai/v1", openai.clone()).await.unwrap();
    let stripe = Limit::per_minute(100).burst(150).ahead(Span::from_millis(10));
    client.limit("stripe", stripe.clone()).await.unwrap();
    client.override_partition("stripe", "big", Some(Limit::per_minute(1_000))).await.unwrap();
    client.pin("ops", "stripe", Some(Limit::concurrency(5))).await.unwrap();

    let stripe_state = client.limit_state("stripe").await.unwrap().unwrap();
    assert_eq!(stripe_state.defined, stripe);
    assert_eq!(Some(stripe_state), served.gate.limit_state("stripe").await.unwrap());
    let names: Vec<_> = client.limits().await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["openai/v1", "stripe"].map(Arc::<str>::from));
    let openai_state = client.limit_state("openai/v1").await.unwrap().unwrap();
    assert_eq!((openai_state.defined, &*openai_state.history[0].who), (openai, "ana"));

    client.pin("ops", "stripe", None).await.unwrap();
    client.remove("ana", "openai/v1").await.unwrap();
    assert_eq!(client.limit_state("openai/v1").await.unwrap(), None);
}

#[tokio::test]
async fn meters_are_looked_at_closed_and_reset() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("stripe", Limit::per_minute(60)).await.unwrap();
    let pass = client.consume(toll("stripe", "acme").weight(59)).await.unwrap();
    assert_eq!((pass.limit(), pass.remaining(), pass.delay()), (60, 1, Span::ZERO));
    client.close("stripe", Some("acme"), Span::from_secs(30), "429").await.unwrap();

    let meter = client.meter("stripe", Some("acme")).await.unwrap();
    let known = served.gate.meter("stripe", Some("acme")).await.unwrap();
    // What counts at each rule is not told over HTTP.
    assert_eq!(meter, MeterState { rules: Vec::new(), ..known });
    assert_eq!(meter.closed, Some((Span::from_secs(30), "429".to_owned())));
    let (meters, next) = client.meters("stripe", None).await.unwrap();
    assert_eq!((meters, next), (vec![meter], None));

    client.reopen("stripe", Some("acme")).await.unwrap();
    client.reset("stripe", Some("acme")).await.unwrap();
    assert_eq!(client.meter("stripe", Some("acme")).await.unwrap().standing.remaining, 60);
    assert_eq!(client.meter("stripe", None).await.unwrap().standing.remaining, 60);
}

#[tokio::test]
async fn a_problem_is_told_with_its_code_and_cure() {
    let client = Served::new().await;
    let client = client.client();
    let error = client.consume(toll("nobody", "acme")).await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!((problem.status, &*problem.code), (404, "unknown_limit"));
    assert!(problem.detail.contains("define it first"), "{problem}");
    let body = json!({"rule": "concurrency", "limit": 1.5});
    let error = client.request("PUT", "/v1/limits/a", Some(body)).await.unwrap_err();
    assert_eq!(error.problem().unwrap().field.as_deref(), Some("limit"));
}

#[tokio::test]
async fn a_token_is_shown_to_the_server_and_to_nobody_else() {
    let mut served = Served::new().await;
    served.stop().await;
    let secret = "a-very-long-and-secret-token-0123456789";
    served.start(Some(secret)).await;
    let error = served.client().limits().await.unwrap_err();
    assert_eq!(error.problem().unwrap().status, 401);
    let builder = Client::builder(&served.url()).token(secret);
    let shown = format!("{builder:?}");
    let client = builder.retries(0).build().unwrap();
    assert_eq!(client.limits().await.unwrap(), []);
    served.stop().await;
    let error = client.limits().await.unwrap_err();
    let told = format!("{shown} {client:?} {error} {error:?}");
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn who_finds_no_server_is_told_the_cure() {
    let mut served = Served::new().await;
    served.stop().await;
    let client = Client::builder(&served.url()).retries(1).build().unwrap();
    let error = client.limits().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }));
    assert!(error.to_string().contains("is it running?"), "{error}");
}
