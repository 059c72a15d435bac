//! The limit on the step: paid when that step starts, by every attempt, and by no other step.

use super::*;
use tollgate::flows::AwaitingStep;
use tollgate::lanes::{Event, HistoryQuery, LaneName, What};
use tollgate::{Limit, Priority, Told as Followed, global, toll};

/// One step that leads to `charge`, which pays at `stripe`.
fn charges(step: Step<Value>) -> Result<StepOutcome, StepError> {
    Ok(match step.name.as_str() {
        "prepare" => {
            let tenant = step.state["tenant"].as_str().map(str::to_owned);
            let weight = step.state["weight"].as_u64().unwrap_or(1);
            let next = next("charge", step.state);
            match tenant {
                Some(tenant) => next.pays(toll("stripe", &tenant).weight(weight)),
                None => next.pays(global("stripe").weight(weight)),
            }
        }
        "charge" => next("ship", step.state),
        _ => done(()),
    })
}

async fn left(opened: &Opened, partition: Option<&str>) -> i64 {
    opened.gate().meter("stripe", partition).await.unwrap().standing.remaining
}

#[tokio::test]
async fn named_limit_holds_the_step_and_no_other() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_minute(2)).await.unwrap();
    let flows = opened.gate().flows();
    let mut working = work(&opened, charges);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(begin(&flows, run("prepare", json!({}))).await);
    }
    let mut begun: Vec<_> = Vec::new();
    for _ in 0..7 {
        begun.push(working.step().await);
    }
    let count = |name: &str| begun.iter().filter(|step| *step == name).count();
    assert_eq!((count("prepare"), count("charge"), count("ship")), (3, 2, 2));
    idle(&opened).await;
    opened.clock.advance(Span::from_secs(30));
    assert_eq!(working.step().await, "charge");
    assert_eq!(working.step().await, "ship");
    for id in &ids {
        gives(&flows, id).await;
    }
    working.stop().await;
}

#[tokio::test]
async fn partition_has_a_budget_of_its_own() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_minute(1)).await.unwrap();
    let flows = opened.gate().flows();
    let working = work(&opened, charges);
    for tenant in ["a", "b"] {
        let id = begin(&flows, run("prepare", json!({ "tenant": tenant }))).await;
        gives(&flows, &id).await;
        assert_eq!(left(&opened, Some(tenant)).await, 0);
    }
    assert_eq!(left(&opened, None).await, 1);
    working.stop().await;
}

#[tokio::test]
async fn weights_are_paid_and_the_first_that_waits_is_not_overtaken() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_second(1).burst(5)).await.unwrap();
    let flows = opened.gate().flows();
    let charge = |weight: u64| {
        run("charge", json!({ "weight": weight })).pays(global("stripe").weight(weight))
    };
    let mut ids = Vec::new();
    for weight in [2, 2, 2, 1] {
        ids.push(begin(&flows, charge(weight)).await);
    }
    let mut working = work(&opened, |step| Ok(done(step.state)));
    let mut begun = vec![working.hears().await.run, working.hears().await.run];
    let mut first = ids[..2].to_vec();
    begun.sort();
    first.sort();
    assert_eq!(begun, first, "one unit is left, and the light one waits behind");
    gives(&flows, &ids[0]).await;
    gives(&flows, &ids[1]).await;
    assert!(working.heard.try_recv().is_err());
    opened.clock.advance(Span::from_secs(1));
    assert_eq!(working.hears().await.run, ids[2]);
    opened.clock.advance(Span::from_secs(1));
    assert_eq!(working.hears().await.run, ids[3]);
    working.stop().await;
}

#[tokio::test]
async fn strict_priority_goes_first_at_the_limit() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_second(1)).await.unwrap();
    let flows = opened.gate().flows();
    let charge = |level| {
        let priority = Priority::new(level).unwrap();
        run("charge", json!(level)).pays(global("stripe")).priority(priority)
    };
    let mut ids = Vec::new();
    for level in [0, 1, 9] {
        ids.push(begin(&flows, charge(level)).await);
    }
    let mut working = work(&opened, |step| Ok(done(step.state)));
    for expected in [2, 1, 0] {
        assert_eq!(working.hears().await.run, ids[expected]);
        gives(&flows, &ids[expected]).await;
        opened.clock.advance(Span::from_secs(1));
    }
    working.stop().await;
}

#[tokio::test]
async fn kept_across_retry_and_every_attempt_pays() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_minute(10)).await.unwrap();
    let flows = opened.gate().flows();
    let mut working = work(&opened, |step| match step.attempt {
        1 => Ok(retry(Span::ZERO)),
        _ => Ok(done(())),
    });
    let id = begin(&flows, run("charge", json!(1)).pays(global("stripe").weight(3))).await;
    assert_eq!(working.step().await, "charge");
    assert_eq!(working.step().await, "charge");
    gives(&flows, &id).await;
    assert_eq!(left(&opened, None).await, 4);
    working.stop().await;
}

#[tokio::test]
async fn at_least_once_a_crash_pays_again() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_day(10)).await.unwrap();
    let flows = opened.gate().flows();
    let id = begin(&flows, run("charge", json!(1)).pays(global("stripe"))).await;
    die_at(opened.gate(), 1).await;
    opened.clock.advance(Span::from_secs(31));
    let working = work(&opened, |_| Ok(done(())));
    gives(&flows, &id).await;
    assert_eq!(left(&opened, None).await, 8);
    working.stop().await;
}

#[tokio::test]
async fn unknown_limit_at_the_start_is_refused_at_the_door() {
    let opened = Opened::new().await;
    let refused = opened.gate().flows().start(run("charge", json!(1)).pays(global("stripe"))).await;
    let error = refused.unwrap_err().to_string();
    assert_eq!(error, "call 0: there is no limit stripe: define it first");
    assert_eq!(opened.gate().flows().runs(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn unknown_limit_of_a_next_step_holds_the_run_before_it_until_the_limit_is_defined() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut working = work(&opened, charges);
    let id = begin(&flows, run("prepare", json!({}))).await;
    assert_eq!(working.step().await, "prepare");
    let waits = |state: &RunState| matches!(state, RunState::Going { step: Some(step), .. } if step == "charge");
    until(&flows, &id, waits).await;
    opened.clock.advance(Span::from_secs(600));
    assert!(working.heard.try_recv().is_err());
    opened.gate().limit("stripe", Limit::per_minute(1)).await.unwrap();
    assert_eq!(working.step().await, "charge");
    gives(&flows, &id).await;
    working.stop().await;
}

/// What history has of a run that waits, or waited, for limits that nobody had defined.
async fn unknown_of(opened: &Opened, run: &str) -> Vec<Event> {
    let lane = Some(LaneName::new(run).unwrap());
    let query = HistoryQuery { lane, most: 100, ..HistoryQuery::default() };
    let events = opened.gate().history(query).await.unwrap().events;
    let is_unknown = |event: &Event| matches!(event.what, What::Unknown { .. });
    events.into_iter().filter(is_unknown).collect()
}

#[tokio::test]
async fn unknown_limit_of_a_next_step_is_told_once_with_its_meter_machine_run_and_step() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let mut events = opened.gate().events(None);
    events.place().await.unwrap();
    let mut working = work(&opened, |step| match (step.name.as_str(), step.attempt) {
        ("charge", 1) => Ok(retry(Span::ZERO)),
        _ => charges(step),
    });
    let id = begin(&flows, run("prepare", json!({ "tenant": "acme" }))).await;
    assert_eq!(working.step().await, "prepare");
    let told = loop {
        match patiently(events.next()).await.unwrap() {
            Followed::Event(_, event) if matches!(event.what, What::Unknown { .. }) => break event,
            Followed::Event(..) => {}
            Followed::Missed => panic!("nothing was missed"),
        }
    };
    let What::Unknown { limit, partition, .. } = &told.what else { unreachable!() };
    assert_eq!((limit.as_str(), partition.as_deref()), ("stripe", Some("acme")));
    assert_eq!((told.queue.as_str(), told.lane.as_str()), ("machine/m@1", id.as_str()));
    let step = AwaitingStep::of(&told).unwrap();
    assert_eq!((step.machine.as_str(), step.version), ("m", 1));
    assert_eq!(step.step.as_deref(), Some("charge"));
    opened.gate().limit("stripe", Limit::per_minute(9)).await.unwrap();
    for step in ["charge", "charge", "ship"] {
        assert_eq!(working.step().await, step);
    }
    gives(&flows, &id).await;
    assert_eq!(unknown_of(&opened, &id).await, [told], "it waited once, and tried twice");
    working.stop().await;
}

#[tokio::test]
async fn a_step_that_goes_alone_shares_its_key_with_nobody() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    for _ in 0..2 {
        begin(&flows, run("charge", json!(1)).alone("invoice-42")).await;
    }
    begin(&flows, run("charge", json!(1)).alone("invoice-43")).await;
    die_at(opened.gate(), 2).await;
    let queue = opened.gate().queue_state("machine/m@1").await.unwrap().unwrap();
    assert_eq!((queue.in_flight, queue.waiting), (2, 1), "one of each key");
}

#[tokio::test]
async fn what_follows_a_wait_or_children_may_pay_too() {
    let opened = Opened::new().await;
    opened.gate().limit("stripe", Limit::per_minute(10)).await.unwrap();
    let flows = opened.gate().flows();
    let working = work(&opened, |step| {
        Ok(match step.name.as_str() {
            "wait" => wait_for(["go"], "charge", step.state).pays(global("stripe").weight(2)),
            "spread" => tollgate::flows::children([run("child", json!(1))], "charge", step.state)
                .pays(global("stripe").weight(3)),
            _ => done(()),
        })
    });
    let waits = begin(&flows, run("wait", json!(1))).await;
    until(&flows, &waits, awaits).await;
    flows.signal(&waits, tollgate::flows::Signal::new("go", ()).unwrap()).await.unwrap();
    gives(&flows, &waits).await;
    assert_eq!(left(&opened, None).await, 8);
    let spread = begin(&flows, run("spread", json!(1))).await;
    gives(&flows, &spread).await;
    assert_eq!(left(&opened, None).await, 5);
    working.stop().await;
}
