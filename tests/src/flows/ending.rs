//! How runs end: with a value, for a reason, by a hand; and what their keys are then.

use super::*;
use std::collections::BTreeSet;
use tollgate::flows::{Begun, Cancelled, FlowError};
use tollgate::global;

#[tokio::test]
async fn a_step_that_fails_or_panics_goes_to_the_handler_which_says_what_follows() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let handler = |failure: Failure<Value>| {
        let said = json!([failure.step, failure.attempt, failure.error, failure.state]);
        done(said)
    };
    let working = work_with(
        &opened,
        1,
        |step| match step.name.as_str() {
            "panics" => panic!("oh"),
            _ => Err("no".into()),
        },
        Some(Box::new(handler)),
    );
    let fails = begin(&flows, run("fails", json!(7))).await;
    assert_eq!(gives(&flows, &fails).await, json!(["fails", 1, "no", 7]));
    let panics = begin(&flows, run("panics", json!(8))).await;
    assert_eq!(gives(&flows, &panics).await, json!(["panics", 1, "it panicked: oh", 8]));
    assert_eq!(working.stop().await.panicked, 0, "the worker did not notice");
}

#[tokio::test]
async fn without_a_handler_a_step_that_fails_ends_its_run_with_step_and_state() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, |_| Err("no".into()));
    let id = begin(&flows, run("fails", json!({ "n": 1 }))).await;
    let state: Box<[u8]> = br#"{"n":1}"#.as_slice().into();
    let (reason, step) = ("no".to_owned(), "fails".to_owned());
    assert_eq!(ending(&flows, &id).await, Ending::Failed { reason, step, state });
    working.stop().await;
}

#[tokio::test]
async fn a_step_whose_workers_die_again_and_again_has_failed() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("only", json!(1))).await;
    for _ in 0..3 {
        die_at(opened.gate(), 1).await;
        opened.clock.advance(Span::from_secs(31));
    }
    let mut working = work(&opened, |_| Ok(done(())));
    assert_eq!(fails(&flows, &id).await, "its worker died 3 times");
    assert!(working.heard.try_recv().is_err(), "it was not made once more");
    working.stop().await;
}

#[tokio::test]
async fn a_correlation_key_is_that_of_one_run_while_it_lives() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let keyed = |n: u64| run("only", json!(n)).correlation("order-42");
    let first = flows.start(keyed(1)).await.unwrap();
    assert!(!first.is_known);
    let second = flows.start(keyed(2)).await.unwrap();
    assert_eq!(second, Begun { run: first.run.clone(), is_known: true });
    assert_eq!(flows.find("m", "order-42").await.unwrap(), Some(first.run.clone()));
    let working = work(&opened, |step| Ok(done(step.state)));
    assert_eq!(gives(&flows, &first.run).await, json!(1));
    assert_eq!(flows.find("m", "order-42").await.unwrap(), None);
    let third = flows.start(keyed(3)).await.unwrap();
    assert_ne!(third.run, first.run);
    assert_eq!(gives(&flows, &third.run).await, json!(3));
    working.stop().await;
}

#[tokio::test]
async fn runs_that_begin_together_are_answered_in_their_order_and_each_by_itself() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let keyed = |n: u64| run("only", json!(n)).correlation("order-42");
    let unknown = run("only", json!(0)).pays(global("nowhere"));
    let begun = flows.start_all([run("only", json!(0)), keyed(1), unknown, keyed(2)]).await;
    let [plain, first, refused, second] = begun.as_slice() else { panic!("{begun:?}") };
    let [plain, first] = [plain, first].map(|begun| begun.as_ref().unwrap());
    assert!(!plain.is_known && !first.is_known && refused.is_err(), "{begun:?}");
    assert_eq!(*second.as_ref().unwrap(), Begun { run: first.run.clone(), is_known: true });
    let working = work(&opened, |step| Ok(done(step.state)));
    assert_eq!(gives(&flows, &plain.run).await, json!(0));
    assert_eq!(gives(&flows, &first.run).await, json!(1));
    working.stop().await;
    let many = flows.start_all((0..2_500).map(|n| run("only", json!(n)))).await;
    let ids: BTreeSet<_> = many.iter().map(|begun| &begun.as_ref().unwrap().run).collect();
    assert_eq!(ids.len(), 2_500);
    assert!(flows.start_all([]).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_ends_at_once_and_nothing_follows_the_step_under_way() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let (goes, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let mut working = work(&opened, move |_| {
        tokio::task::block_in_place(|| gone.lock().unwrap().recv()).unwrap();
        Ok(next("two", ()))
    });
    let id = begin(&flows, run("one", json!(null)).correlation("key")).await;
    assert_eq!(working.step().await, "one");
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::Now);
    assert_eq!(ending(&flows, &id).await, Ending::Cancelled);
    assert_eq!(flows.find("m", "key").await.unwrap(), None);
    goes.send(()).unwrap();
    working.stop().await;
    let left = opened.gate().queue_state("machine/m@1").await.unwrap().unwrap();
    assert_eq!((left.waiting, left.in_flight, left.dead), (0, 0, 0));
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::HadEnded);
    assert_eq!(flows.cancel("nobody").await.unwrap(), Cancelled::Unknown);
}

#[tokio::test]
async fn who_waits_for_a_run_is_told_when_it_ends_or_that_it_has_not() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("only", json!(null))).await;
    let late = {
        let (flows, id) = (flows.clone(), id.clone());
        tokio::spawn(async move { flows.result(&id, Span::from_secs(5)).await })
    };
    tokio::task::yield_now().await;
    opened.clock.advance(Span::from_secs(5));
    // Whoever sleeps may have begun only now.
    let late = patiently(async {
        while !late.is_finished() {
            opened.clock.advance(Span::from_secs(5));
            tokio::task::yield_now().await;
        }
        late.await.unwrap()
    })
    .await;
    assert_eq!(late.unwrap(), None);
    let working = work(&opened, |_| Ok(done("here")));
    assert_eq!(gives(&flows, &id).await, json!("here"));
    let unknown = flows.result("nobody", Span::ZERO).await;
    let expected = FlowError::UnknownRun { run: "nobody".to_owned() };
    assert_eq!(unknown, Err(tollgate::Error::Flow(expected)));
    working.stop().await;
}

#[tokio::test]
async fn what_cannot_be_written_down_is_a_failure_of_the_step() {
    struct Unwritable;
    impl serde::Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("a secret"))
        }
    }
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, |_| Ok(next("two", Unwritable)));
    let id = begin(&flows, run("one", json!(null))).await;
    assert_eq!(fails(&flows, &id).await, "the state cannot be written as JSON: a secret");
    working.stop().await;
}

#[tokio::test]
async fn a_cost_at_what_is_no_limit_ends_the_run_with_its_reason() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, |step| {
        let outcome = if step.name == "first" { next("two", 1) } else { done(1) };
        Ok(outcome.actual("", 5))
    });
    for step in ["first", "last"] {
        let id = begin(&flows, run(step, json!(null))).await;
        let reason = fails(&flows, &id).await;
        assert!(reason.contains("limit"), "{reason}");
    }
    working.stop().await;
}

#[tokio::test]
async fn runs_that_ended_are_kept_for_a_day_and_children_for_as_long_as_their_parent_lives() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, |step| {
        Ok(match step.name.as_str() {
            "spread" => {
                let waits = run("waits", json!(null));
                tollgate::flows::children([run("child", json!(1)), waits], "last", ())
            }
            "waits" => wait_for(["go"], "child", json!(2)),
            "last" => {
                let values = step.children.iter().map(|it| it.ending.value::<Value>());
                done(values.map(|value| value.unwrap().unwrap()).collect::<Vec<_>>())
            }
            _ => done(step.state),
        })
    });
    let plain = begin(&flows, run("child", json!(1))).await;
    gives(&flows, &plain).await;
    let parent = begin(&flows, run("spread", json!(null))).await;
    until(&flows, &parent, |state| matches!(state, RunState::Joining { .. })).await;
    gives(&flows, &format!("{parent}.1.0")).await;
    until(&flows, &format!("{parent}.1.1"), awaits).await;
    opened.clock.advance(Span::from_hours(24));
    // It may be under way by itself: who did it is not told.
    flows.sweep().await.unwrap();
    assert_eq!(flows.run(&plain).await.unwrap(), None);
    assert!(flows.run(&format!("{parent}.1.0")).await.unwrap().is_some(), "its parent lives");
    let go = tollgate::flows::Signal::new("go", ()).unwrap();
    flows.signal(&format!("{parent}.1.1"), go).await.unwrap();
    assert_eq!(gives(&flows, &parent).await, json!([1, 2]));
    flows.sweep().await.unwrap();
    assert_eq!(flows.run(&format!("{parent}.1.0")).await.unwrap(), None, "it is old");
    assert!(flows.run(&format!("{parent}.1.1")).await.unwrap().is_some());
    opened.clock.advance(Span::from_hours(24));
    flows.sweep().await.unwrap();
    assert_eq!(flows.ended_runs(None, 10).await.unwrap(), []);
    working.stop().await;
}

#[tokio::test]
async fn a_timeline_tells_each_attempt_and_what_it_waited_for() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", tollgate::Limit::per_second(1)).await.unwrap();
    let flows = opened.gate().flows();
    let mut working = work(&opened, |step| match (step.name.as_str(), step.attempt) {
        ("prepare", _) => Ok(next("charge", ()).pays(tollgate::global("stripe"))),
        (_, 1) => Ok(retry(Span::ZERO)),
        _ => Ok(done(())),
    });
    let id = begin(&flows, run("prepare", json!(null))).await;
    assert_eq!(working.step().await, "prepare");
    assert_eq!(working.step().await, "charge");
    // Tried again, it was asked for in vain.
    patiently(async {
        loop {
            let totals = opened.gate().totals().await.unwrap();
            let met = totals.queues.iter().flat_map(|queue| queue.counts.limits.values());
            if met.map(|met| met.wanted).sum::<u64>() > 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    opened.clock.advance(Span::from_secs(1));
    gives(&flows, &id).await;
    let timeline = flows.timeline(&id).await.unwrap();
    let told: Vec<_> = timeline
        .iter()
        .map(|it| (it.step.as_str(), it.attempt, it.outcome.as_str(), it.then.as_deref()))
        .collect();
    let expected = [
        ("prepare", 1, "next", Some("charge")),
        ("charge", 1, "retry", None),
        ("charge", 2, "done", None),
    ];
    assert_eq!(told, expected);
    let (limit, waited) = &timeline[2].waits[0];
    assert_eq!((limit.as_str(), *waited), ("stripe", Span::from_secs(1)));
    assert!(flows.picture(&id).await.unwrap().contains("waited 1000ms at stripe"));
    working.stop().await;
}
