//! The time that Tollgate adds to a call which nothing blocks: from before it is handed in until a worker
//! has it. Beside it, what a write and a sync of this disk take.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::connection::texts;
use super::on_this_thread;
use super::served::Served;
use crate::folder::Folder;
use crate::table::Table;

const CALLS: usize = 2_000;
/// The server rests between calls.
const PAUSE: Duration = Duration::from_millis(3);

pub(super) fn measure() -> anyhow::Result<Table> {
    let mut table =
        Table::new("A call that nothing blocks, one at a time", &["what", "p50, ms", "p99, ms"]);
    let served = Served::start()?;
    let added = on_this_thread(run(&served))?;
    table.add(row("handed in until a worker has it", added));
    table.add(row("two writes of 200 bytes, each synced", syncs()?));
    Ok(table)
}

fn row(name: &str, mut times: Vec<Duration>) -> Vec<String> {
    times.sort();
    let at = |share: usize| format!("{:.2}", times[times.len() * share / 100].as_secs_f64() * 1e3);
    vec![name.to_owned(), at(50), at(99)]
}

async fn run(served: &Served) -> anyhow::Result<Vec<Duration>> {
    served.tell("PUT", "/v1/queues/q", "{}").await?;
    let (mut producer, mut worker) = (served.connect().await?, served.connect().await?);
    let mut settle = String::new();
    let mut times = Vec::with_capacity(CALLS);
    for nth in 0..CALLS {
        let claim = format!(r#"{{"wait":"10s","settle":[{settle}]}}"#);
        worker.send("POST", "/v1/queues/q/claim", claim.as_bytes()).await?;
        tokio::time::sleep(PAUSE).await;
        let call = format!(r#"{{"lane":"l{}","body":{{"n":{nth}}}}}"#, nth % 10);
        let began = Instant::now();
        let handing_in = producer.ask("POST", "/v1/queues/q/calls", call.as_bytes());
        let (handed_in, claimed) = tokio::join!(handing_in, async {
            let answer = worker.receive().await?;
            let lease = texts(answer, "lease").first().map(|lease| (*lease).to_owned());
            anyhow::Ok((began.elapsed(), lease))
        });
        handed_in?;
        let (took, lease) = claimed?;
        times.push(took);
        let lease = lease.ok_or_else(|| anyhow::anyhow!("no call came"))?;
        settle = format!(r#"{{"lease":"{lease}","outcome":"done"}}"#);
    }
    Ok(times)
}

fn syncs() -> anyhow::Result<Vec<Duration>> {
    let folder = Folder::new("sync")?;
    std::fs::create_dir_all(&folder.path)?;
    let mut file = File::create(folder.path.join("file"))?;
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        for _ in 0..2 {
            file.write_all(&[7; 200])?;
            file.sync_data()?;
        }
        times.push(began.elapsed());
    }
    Ok(times)
}
