//! Signals: they last, are heard once, and wake who waits for them; or the time of the wait does.

use super::*;
use tollgate::flows::{FlowError, Signal, Signalled};

fn signal(name: &str, says: Value) -> Signal {
    Signal::new(name, says).unwrap()
}

/// Waits for `paid` or `refused`, up to a minute if it is told so, and gives what it was told.
fn waits(step: Step<Value>) -> Result<StepOutcome, StepError> {
    let heard: Vec<_> =
        step.signals.iter().map(|it| json!([it.name, it.read::<Value>().unwrap()])).collect();
    Ok(match step.name.as_str() {
        "ask" if step.state == json!("for a minute") => {
            wait_for(["paid", "refused"], "told", step.state).timeout(Span::from_secs(60))
        }
        "ask" => wait_for(["paid", "refused"], "told", step.state),
        _ => done(json!({ "heard": heard, "timed_out": step.timed_out })),
    })
}

#[tokio::test]
async fn a_run_that_waits_goes_on_with_the_signal_and_holds_no_worker_meanwhile() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work_with(&opened, 1, waits, None);
    let id = begin(&flows, run("ask", json!(null))).await;
    until(&flows, &id, awaits).await;
    let other = begin(&flows, run("told", json!(null))).await;
    gives(&flows, &other).await;
    assert_eq!(flows.signal(&id, signal("other", json!(0))).await.unwrap(), Signalled::Kept);
    assert_eq!(flows.signal(&id, signal("paid", json!(42))).await.unwrap(), Signalled::Woken);
    let expected = json!({ "heard": [["paid", 42]], "timed_out": false });
    assert_eq!(gives(&flows, &id).await, expected);
    working.stop().await;
}

#[tokio::test]
async fn signals_that_came_before_the_wait_are_not_waited_for_and_last_over_a_restart() {
    let opened = Opened::new().await;
    let id = begin(&opened.gate().flows(), run("ask", json!(null))).await;
    for said in [1, 2] {
        let told = opened.gate().flows().signal(&id, signal("paid", json!(said))).await;
        assert_eq!(told.unwrap(), Signalled::Kept);
    }
    let opened = opened.reopen().await;
    let flows = opened.gate().flows();
    let working = work(&opened, waits);
    let expected = json!({ "heard": [["paid", 1], ["paid", 2]], "timed_out": false });
    assert_eq!(gives(&flows, &id).await, expected);
    working.stop().await;
}

#[tokio::test]
async fn a_signal_of_a_key_is_heard_once() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("ask", json!(null))).await;
    let keyed = || signal("paid", json!(1)).dedupe("evt_1");
    assert_eq!(flows.signal(&id, keyed()).await.unwrap(), Signalled::Kept);
    assert_eq!(flows.signal(&id, keyed()).await.unwrap(), Signalled::Known);
    let working = work(&opened, waits);
    assert_eq!(gives(&flows, &id).await, json!({ "heard": [["paid", 1]], "timed_out": false }));
    working.stop().await;
}

#[tokio::test]
async fn a_run_that_ended_takes_no_signals_and_one_that_never_was_neither() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("told", json!(null))).await;
    let working = work(&opened, waits);
    gives(&flows, &id).await;
    let refused = flows.signal(&id, signal("paid", json!(1))).await;
    assert_eq!(refused, Err(FlowError::HasEnded { run: id }.into()));
    let refused = flows.signal("nobody", signal("paid", json!(1))).await;
    assert_eq!(refused, Err(FlowError::UnknownRun { run: "nobody".to_owned() }.into()));
    working.stop().await;
}

#[tokio::test]
async fn the_time_of_a_wait_ends_to_the_millisecond_and_a_signal_before_it_is_not_late() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, waits);
    let [late, early] = [
        begin(&flows, run("ask", json!("for a minute"))).await,
        begin(&flows, run("ask", json!("for a minute"))).await,
    ];
    until(&flows, &late, awaits).await;
    until(&flows, &early, awaits).await;
    opened.clock.advance(Span::from_millis(59_999));
    assert_eq!(
        flows.signal(&early, signal("refused", json!("no"))).await.unwrap(),
        Signalled::Woken
    );
    assert_eq!(
        gives(&flows, &early).await,
        json!({ "heard": [["refused", "no"]], "timed_out": false })
    );
    assert!(awaits(&flows.run(&late).await.unwrap().unwrap().state));
    opened.clock.advance(Span::from_millis(1));
    assert_eq!(gives(&flows, &late).await, json!({ "heard": [], "timed_out": true }));
    opened.clock.advance(Span::from_secs(600));
    let left = opened.gate().queue_state("machine/m@1").await.unwrap().unwrap();
    assert_eq!(
        (left.waiting, left.in_flight),
        (0, 0),
        "the timer of the one that was told is gone"
    );
    working.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_comes_while_the_time_is_over_goes_one_way_and_not_both() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut working = work(&opened, waits);
    for _ in 0..50 {
        let id = begin(&flows, run("ask", json!("for a minute"))).await;
        until(&flows, &id, awaits).await;
        let (signalling, run) = (flows.clone(), id.clone());
        let paid = async move { signalling.signal(&run, signal("paid", json!(1))).await };
        let paid = tokio::spawn(paid);
        opened.clock.advance(Span::from_secs(60));
        let given = gives(&flows, &id).await;
        let heard = match paid.await.unwrap() {
            Ok(Signalled::Woken) => json!({ "heard": [["paid", 1]], "timed_out": false }),
            // It came to a run that was on its way, or had ended.
            _ => json!({ "heard": [], "timed_out": true }),
        };
        assert_eq!(given, heard);
        assert_eq!([working.step().await, working.step().await], ["ask", "told"]);
    }
    assert!(working.heard.try_recv().is_err(), "what followed was made once");
    working.stop().await;
}
