//! A checkout as a step machine: Stripe takes 100 calls a second, and no user gets more than 5 e-mails a minute.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, done, next};
use tollgate::{Limit, Span, Tollgate, global, toll};

#[derive(Serialize, Deserialize)]
struct Order {
    number: u64,
    user: String,
}

/// What the machine has: clients of the upstreams, in real life.
#[derive(Default)]
struct Checkout {
    log: Mutex<Vec<String>>,
}

impl Machine for Checkout {
    const NAME: &'static str = "checkout";
    type State = Order;

    async fn step(&self, step: Step<Order>) -> Result<StepOutcome, StepError> {
        let order = step.state;
        let line = format!("{} {}", step.name, order.number);
        self.log.lock().map_err(|error| error.to_string())?.push(line);
        Ok(match step.name.as_str() {
            // A step says what the next one owes: it could not hold back itself.
            "prepare" => next("charge", order).pays(global("stripe")),
            "charge" => {
                let user = order.user.clone();
                next("confirm", order).pays(toll("e-mails", &user))
            }
            _ => done(order.number),
        })
    }
}

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("stripe", Limit::per_second(100)).await?;
    gate.limit("e-mails", Limit::per_minute(5)).await?;

    let flows = gate.flows();
    let mut runs = Vec::new();
    for number in 0..12 {
        let user = if number % 2 == 0 { "ann" } else { "bob" }.to_owned();
        let order = NewRun::new::<Checkout>("prepare", Order { number, user });
        // Handed in twice by a nervous client, it is still one checkout.
        runs.push(flows.start(order.correlation(format!("order-{number}"))).await?.run);
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = flows.worker(Checkout::default()).concurrency(8);
    let worker = tokio::spawn(worker.until(async move { drop(stopped.await) }).run());

    // Each user has six orders, and five e-mails go out at once: the sixth waits for its turn.
    for run in &runs[..10] {
        let ended = flows.result(run, Span::from_secs(10)).await?;
        anyhow::ensure!(ended.is_some(), "the first five of each user are through");
    }
    for run in &runs[10..] {
        let waiting = flows.run(run).await?;
        println!("{waiting:?}");
        anyhow::ensure!(flows.ended(run).await?.is_none(), "the sixth e-mail waits");
    }
    drop(stop);
    println!("{:?}", worker.await??);
    gate.shut_down().await;
    Ok(())
}
