//! Ten thousand children through one limit: a run begins them in one act, and goes on when the last has ended.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use serde::{Deserialize, Serialize};
use std::time::Instant;
use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, children, done};
use tollgate::{Limit, Tollgate, global};

/// How many, and how many of them a second.
const CHILDREN: u64 = 10_000;
const PER_SECOND: u64 = 5_000;

#[derive(Serialize, Deserialize)]
struct Picture(u64);

struct Thumbnails;

impl Machine for Thumbnails {
    const NAME: &'static str = "thumbnails";
    type State = Picture;

    async fn step(&self, step: Step<Picture>) -> Result<StepOutcome, StepError> {
        Ok(match step.name.as_str() {
            "album" => {
                let one = |n| NewRun::new::<Self>("resize", Picture(n)).pays(global("resizer"));
                children((0..step.state.0).map(one), "collect", step.state)
            }
            "resize" => done(step.state.0),
            _ => {
                let mut sum = 0;
                for child in &step.children {
                    sum += child.ending.value::<u64>().ok_or("a child failed")??;
                }
                done(sum)
            }
        })
    }
}

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "it measures how long it took")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("resizer", Limit::per_second(PER_SECOND)).await?;
    let flows = gate.flows();
    let run = flows.start(NewRun::new::<Thumbnails>("album", Picture(CHILDREN))).await?.run;
    let began = Instant::now();
    flows.worker(Thumbnails).concurrency(256).until_drained().run().await?;
    let ended = flows.ended(&run).await?.and_then(|ended| ended.ending.value::<u64>());
    let sum = ended.ok_or_else(|| anyhow::anyhow!("the album is not done"))??;
    println!("{CHILDREN} children in {:?}, at most {PER_SECOND}/s", began.elapsed());
    anyhow::ensure!(sum == CHILDREN * (CHILDREN - 1) / 2, "each of them once");
    gate.shut_down().await;
    Ok(())
}
