//! A refund that a person must approve: it waits for as long as that takes, over restarts, and goes on with what it
//! was told.
//!
//! With a folder (`cargo run --example approval -- ./data`) the run stays there: `tollgate serve --data ./data` shows it in
//! the console, where it can be signalled, as with `tollgate run signal RUN approved --payload '"ann"'`. Run again, it
//! goes on from there.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use serde::{Deserialize, Serialize};
use std::path::Path;
use tollgate::flows::{
    Machine, NewRun, Signal, Step, StepError, StepOutcome, done, next, wait_for,
};
use tollgate::{Limit, Tollgate, global};

#[derive(Serialize, Deserialize)]
struct Refund {
    order: u64,
    cents: u64,
}

struct Refunds;

impl Machine for Refunds {
    const NAME: &'static str = "refund";
    type State = Refund;

    async fn step(&self, step: Step<Refund>) -> Result<StepOutcome, StepError> {
        let refund = step.state;
        Ok(match step.name.as_str() {
            "ask" => wait_for(["approved", "refused"], "decide", refund),
            "decide" => match step.signals.first() {
                Some(signal) if signal.name == "approved" => {
                    println!("order {} was approved by {}", refund.order, signal.read::<String>()?);
                    next("pay", refund).pays(global("stripe"))
                }
                _ => done("refused"),
            },
            _ => done(format!("{} cents were paid back", refund.cents)),
        })
    }
}

/// Goes on with the refund until it has ended or waits for a person, and says what came of it.
async fn go_on(folder: &Path, approved_by: Option<&str>) -> anyhow::Result<Option<String>> {
    let gate = Tollgate::open(folder).await?;
    gate.limit("stripe", Limit::per_second(100)).await?;
    let flows = gate.flows();
    let refund = NewRun::new::<Refunds>("ask", Refund { order: 7, cents: 1_250 });
    // However often this program is started, it is one refund.
    let run = flows.start(refund.correlation("refund-7")).await?.run;
    if let Some(who) = approved_by {
        // It may come before it is asked for.
        flows.signal(&run, Signal::new("approved", who)?).await?;
    }
    flows.worker(Refunds).until_drained().run().await?;
    let ended = flows.ended(&run).await?;
    gate.shut_down().await;
    let Some(ended) = ended else {
        println!("run {run} waits to be approved");
        return Ok(None);
    };
    let said = ended.ending.value::<String>().transpose()?;
    println!("run {run}: {said:?}");
    Ok(said)
}

/// All of it: a start that waits, and one after it was approved.
// `pub(crate)` for the test that runs it.
pub(crate) async fn ask_and_go_on() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let waits = go_on(folder.path(), None).await?;
    anyhow::ensure!(waits.is_none(), "nobody has approved it");
    let ended = go_on(folder.path(), Some("ann")).await?;
    anyhow::ensure!(ended.as_deref() == Some("1250 cents were paid back"), "{ended:?}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match std::env::args_os().nth(1) {
        Some(folder) => go_on(Path::new(&folder), None).await.map(drop),
        None => ask_and_go_on().await,
    }
}
