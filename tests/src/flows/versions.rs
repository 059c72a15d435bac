//! Versions: a run waits for whoever knows its version, or is brought up.

use super::*;

/// The second version, which counts in cents.
struct Second;

impl Machine for Second {
    const NAME: &'static str = "m";
    const VERSION: u32 = 2;
    const OLDEST: u32 = 1;
    type State = u64;

    async fn step(&self, step: Step<u64>) -> Result<StepOutcome, StepError> {
        Ok(match step.name.as_str() {
            "charge" => next("last", step.state + 1),
            _ => done(json!([step.name, step.state])),
        })
    }

    fn upgrade(_: u32, step: &str, state: Value) -> Option<(String, u64)> {
        match step {
            "pay" => Some(("charge".to_owned(), state.as_u64()? * 100)),
            _ => None,
        }
    }
}

#[tokio::test]
async fn a_run_of_an_older_version_is_brought_up_and_goes_on_in_the_new_one() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let old = begin(&flows, run("pay", json!(42))).await;
    let odd = begin(&flows, run("odd", json!(1))).await;
    flows.worker(Second).until_drained().run().await.unwrap();
    assert_eq!(gives(&flows, &old).await, json!(["last", 4_201]));
    let reason = fails(&flows, &odd).await;
    assert_eq!(reason, "version 2 cannot go on with step odd of version 1");
    assert_eq!(flows.run(&old).await.unwrap().unwrap().version, 2);
}

#[tokio::test]
async fn a_step_that_failed_is_of_its_own_version_when_it_is_made_again() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let odd = begin(&flows, run("odd", json!(1))).await;
    for _ in 0..2 {
        flows.worker(Second).until_drained().run().await.unwrap();
        let reason = fails(&flows, &odd).await;
        assert_eq!(reason, "version 2 cannot go on with step odd of version 1");
        flows.rerun(&odd).await.unwrap();
    }
    let mut first = work(&opened, |step| Ok(done(step.state)));
    assert_eq!(gives(&flows, &odd).await, json!(1));
    assert_eq!(first.step().await, "odd");
    first.stop().await;
}

#[tokio::test]
async fn a_run_of_a_newer_version_waits_for_who_knows_it() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let new = begin(&flows, NewRun::new::<Second>("charge", 7)).await;
    let mut first = work(&opened, |_| Ok(done("of the first")));
    let own = begin(&flows, run("only", json!(1))).await;
    assert_eq!(gives(&flows, &own).await, json!("of the first"));
    assert_eq!(first.step().await, "only");
    assert!(first.heard.try_recv().is_err());
    flows.worker(Second).until_drained().run().await.unwrap();
    assert_eq!(gives(&flows, &new).await, json!(["last", 8]));
    first.stop().await;
}
