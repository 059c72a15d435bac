//! Children: they begin with the step, and the run goes on when the last one has ended.

use super::*;
use tollgate::flows::{Cancelled, children};

fn family(step: Step<Value>) -> Result<StepOutcome, StepError> {
    Ok(match step.name.as_str() {
        "spread" => {
            let many = step.state.as_u64().unwrap();
            let each = (0..many).map(|n| run("child", json!(n)));
            children(each, "collect", json!({ "many": many }))
        }
        "child" if step.state == json!(3) => stop("three fails"),
        "child" => done(step.state.as_u64().unwrap() * 10),
        _ => {
            let value = |ending: &Ending| match ending {
                Ending::Done(value) => serde_json::from_slice(value).unwrap(),
                Ending::Failed { reason, .. } => json!(reason),
                Ending::Cancelled => json!("cancelled"),
            };
            let values: Vec<_> = step.children.iter().map(|child| value(&child.ending)).collect();
            done(json!([step.state["many"], values]))
        }
    })
}

#[tokio::test]
async fn a_run_goes_on_with_what_its_children_gave_in_their_order() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, family);
    let id = begin(&flows, run("spread", json!(5))).await;
    assert_eq!(gives(&flows, &id).await, json!([5, [0, 10, 20, "three fails", 40]]));
    working.stop().await;
}

#[tokio::test]
async fn without_children_a_run_goes_on_at_once() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working = work(&opened, family);
    let id = begin(&flows, run("spread", json!(0))).await;
    assert_eq!(gives(&flows, &id).await, json!([0, []]));
    working.stop().await;
}

#[tokio::test]
async fn a_child_that_is_cancelled_has_ended_and_the_run_goes_on() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("spread", json!(2))).await;
    let mut spread = work_with(
        &opened,
        1,
        |step| match step.name.as_str() {
            "spread" => family(step),
            _ => Ok(wait_for(["never"], "child", step.state)),
        },
        None,
    );
    for _ in 0..3 {
        spread.step().await;
    }
    let first = format!("{id}.1.0");
    until(&flows, &first, awaits).await;
    until(&flows, &format!("{id}.1.1"), awaits).await;
    spread.stop().await;
    assert_eq!(flows.cancel(&first).await.unwrap(), Cancelled::Now);
    let joins = |state: &RunState| matches!(state, RunState::Joining { children: 2, .. });
    until(&flows, &id, joins).await;
    let working = work(&opened, family);
    let never = tollgate::flows::Signal::new("never", ()).unwrap();
    flows.signal(&format!("{id}.1.1"), never).await.unwrap();
    assert_eq!(gives(&flows, &id).await, json!([2, ["cancelled", 10]]));
    working.stop().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_takes_its_children_with_it() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let id = begin(&flows, run("spread", json!(3))).await;
    let mut working = work_with(
        &opened,
        1,
        |step| match step.name.as_str() {
            "spread" => family(step),
            _ => Ok(wait_for(["never"], "child", step.state)),
        },
        None,
    );
    for _ in 0..4 {
        working.step().await;
    }
    for at in 0..3 {
        until(&flows, &format!("{id}.1.{at}"), awaits).await;
    }
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::Now);
    for at in 0..3 {
        assert_eq!(ending(&flows, &format!("{id}.1.{at}")).await, Ending::Cancelled);
    }
    assert_eq!(flows.runs(None, 10).await.unwrap(), []);
    working.stop().await;
}

#[tokio::test]
async fn a_child_with_a_key_is_a_failure_of_the_step_that_begins_it() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let working =
        work(&opened, |_| Ok(children([run("child", json!(1)).correlation("key")], "collect", ())));
    let id = begin(&flows, run("spread", json!(1))).await;
    let reason = fails(&flows, &id).await;
    assert!(reason.contains("takes no correlation key"), "{reason}");
    working.stop().await;
}
