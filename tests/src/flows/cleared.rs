//! What a step said of the next one is of that one alone.

use super::*;
use tollgate::{Limit, global};

#[tokio::test]
async fn a_toll_is_cleared_by_every_transition_but_a_retry() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_day(10)).await.unwrap();
    let flows = opened.gate().flows();
    let working = work(&opened, |step| {
        Ok(match step.name.as_str() {
            "charge" => next("plain", ()),
            "plain" => wait_for(["go"], "told", ()),
            "told" => tollgate::flows::children([run("child", json!(1))], "last", ()),
            _ => done(()),
        })
    });
    let id = begin(&flows, run("charge", json!(1)).pays(global("stripe"))).await;
    until(&flows, &id, awaits).await;
    flows.signal(&id, tollgate::flows::Signal::new("go", ()).unwrap()).await.unwrap();
    gives(&flows, &id).await;
    let left = opened.gate().meter("stripe", None).await.unwrap().standing.remaining;
    assert_eq!(left, 9, "the first step paid and no other");
    working.stop().await;
}
