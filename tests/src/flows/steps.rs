//! Steps: one after the other, each at least once, with the state that the one before left.

use super::*;

#[tokio::test]
async fn a_run_goes_from_step_to_step_with_its_state_and_gives_what_the_last_one_says() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut working = work(&opened, |step| {
        let n = step.state["n"].as_u64().unwrap();
        Ok(match step.name.as_str() {
            "begin" => next("middle", json!({ "n": n + 1 })),
            "middle" if n < 5 => next("middle", json!({ "n": n + 1 })),
            _ => done(json!({ "total": n })),
        })
    });
    let id = begin(&flows, run("begin", json!({ "n": 1 }))).await;
    assert_eq!(gives(&flows, &id).await, json!({ "total": 5 }));
    for expected in ["begin", "middle", "middle", "middle", "middle"] {
        assert_eq!(working.step().await, expected);
    }
    assert_eq!(working.stop().await.started, 5);
}

#[tokio::test]
async fn a_run_goes_on_where_it_was_after_a_restart() {
    let opened = Opened::new().await;
    let id = begin(&opened.gate().flows(), run("one", json!(1))).await;
    let mut working = work(&opened, |_| Ok(next("two", json!(2)).delay(Span::from_secs(60))));
    assert_eq!(working.step().await, "one");
    let waits = |state: &RunState| matches!(state, RunState::Going { step: Some(step), .. } if step == "two");
    until(&opened.gate().flows(), &id, waits).await;
    working.stop().await;
    let opened = opened.reopen().await;
    let flows = opened.gate().flows();
    let working = work(&opened, |step| Ok(done(json!([step.name, step.state]))));
    opened.clock.advance(Span::from_secs(60));
    assert_eq!(gives(&flows, &id).await, json!(["two", 2]));
    working.stop().await;
}

#[tokio::test]
async fn a_step_that_is_to_be_made_again_is_given_the_same_and_told_which_attempt_it_is() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut working = work(&opened, |step| match step.attempt {
        1 | 2 => Ok(retry(Span::from_secs(7))),
        _ => Ok(done(step.state)),
    });
    let id = begin(&flows, run("only", json!("kept"))).await;
    let first = working.hears().await;
    for attempt in [2, 3] {
        idle(&opened).await;
        opened.clock.advance(Span::from_secs(7));
        let again = working.hears().await;
        assert_eq!((again.attempt, again.run.as_str()), (attempt, first.run.as_str()));
    }
    assert_eq!(gives(&flows, &id).await, json!("kept"));
    working.stop().await;
}

#[tokio::test]
async fn a_delay_is_kept_to_the_millisecond() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut working = work(&opened, |step| match step.name.as_str() {
        "one" => Ok(next("two", ()).delay(Span::from_millis(1_500))),
        _ => Ok(done(())),
    });
    let id = begin(&flows, run("one", json!(null))).await;
    assert_eq!(working.step().await, "one");
    let waits = |state: &RunState| matches!(state, RunState::Going { step: Some(step), .. } if step == "two");
    until(&flows, &id, waits).await;
    opened.clock.advance(Span::from_millis(1_499));
    until(&flows, &id, waits).await;
    assert!(working.heard.try_recv().is_err(), "not before its time");
    opened.clock.advance(Span::from_millis(1));
    assert_eq!(working.step().await, "two");
    gives(&flows, &id).await;
    working.stop().await;
}

#[tokio::test]
async fn a_step_whose_worker_died_is_made_again_and_a_late_one_changes_nothing() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("only", json!(1))).await;
    die_at(opened.gate(), 1).await;
    opened.clock.advance(Span::from_secs(31));
    let mut working = work(&opened, |step| Ok(done(step.attempt)));
    assert_eq!(working.hears().await.attempt, 2);
    assert_eq!(gives(&flows, &id).await, json!(2));
    working.stop().await;
}

#[tokio::test]
async fn a_next_that_cannot_be_ends_the_run_with_its_reason() {
    let opened = Opened::new().await;
    opened.gate().limit("l", tollgate::Limit::per_second(9)).await.unwrap();
    let flows = opened.gate().flows();
    let working = work(&opened, |step| {
        Ok(match step.name.as_str() {
            "nothing" => next("after", ()).pays(tollgate::global("l").weight(0)),
            _ => next("after", "x".repeat(17 << 20)),
        })
    });
    for (step, why) in [("nothing", "weight"), ("much", "16")] {
        let id = begin(&flows, run(step, json!(1))).await;
        let reason = fails(&flows, &id).await;
        assert!(reason.contains(why), "{reason}");
    }
    working.stop().await;
}
