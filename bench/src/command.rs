//! The command line, and the only place that prints.
#![expect(clippy::print_stdout, reason = "the tables are the program's answer")]
#![expect(clippy::print_stderr, reason = "progress, apart from the answer")]

use std::time::Duration;

use anyhow::bail;
use tollgate_stores::embedded::HistorySettings;

use crate::plan::{FULL, Plan, QUICK};
use crate::{
    calls, decisions, designs, drain, flows, http, lanes, longest, machine, memory, shared, store,
    waiters, waiting,
};

/// Runs the whole comparison, or one child's part of it.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => compare(&FULL),
        ["--quick"] => compare(&QUICK),
        [memory::COMMAND, kind, name, keys] => {
            answer(&memory::measure_here(kind, name, keys.parse()?)?)
        }
        [longest::COMMAND, kind, name, keys] => {
            answer(&longest::measure_here(kind, name, keys.parse()?)?)
        }
        [waiters::COMMAND, name, tasks, threads, wait_ms] => {
            let numbers = [tasks.parse()?, threads.parse()?, wait_ms.parse()?];
            answer(&waiters::measure_here(name, numbers)?)
        }
        _ => bail!("unknown arguments {arguments:?}: give none, or --quick for a short run"),
    }
}

/// Runs the comparison of servers.
pub fn run_http() -> anyhow::Result<()> {
    println!("{}\n\n{}", machine::describe(), http::measure()?);
    Ok(())
}

/// Runs the bench of calls over HTTP, one part of it, or its server.
pub fn run_calls(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parts = match arguments.as_slice() {
        [] => &calls::PARTS[..],
        [calls::COMMAND, folder, schema] => {
            return calls::serve_here((folder, schema), |address| println!("{address}"));
        }
        parts => parts,
    };
    println!("{}", machine::describe());
    for part in parts {
        println!("\n{}", calls::measure(part)?);
    }
    Ok(())
}

/// Runs the bench of lanes, or one child's part of it.
pub fn run_lanes(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => println!("{}\n\n{}", machine::describe(), lanes::measure()?),
        [lanes::COMMAND, meters, count, calls] => {
            let (lanes, calls) = lanes::parse(count, calls)?;
            return answer(&lanes::measure_here(meters, lanes, calls)?);
        }
        _ => bail!("unknown arguments {arguments:?}: give none"),
    }
    Ok(())
}

/// Runs the bench of the embedded store, or one child's part of it.
pub fn run_store(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => {
            let cycles = store::life_cycles(&store::rows())?;
            println!("{}\n\n{cycles}\n{}", machine::describe(), store::restarts()?);
            println!("{}\n{}", waiting::costs()?, waiting::commits()?);
        }
        ["waits"] => println!("{}\n{}", waiting::costs()?, waiting::commits()?),
        [waiting::COMMAND, calls] => return answer(&waiting::cost_here(calls.parse()?)?),
        [waiting::COMMITS, bytes] => return answer(&waiting::commits_here(bytes.parse()?)?),
        ["cycles", together] => {
            println!("{}", store::life_cycles(&[store::row(together.parse()?)])?);
        }
        ["cycles", together, "without-history"] => {
            let row =
                store::Cycles { history: HistorySettings::OFF, ..store::row(together.parse()?) };
            println!("{}", store::life_cycles(&[row])?);
        }
        ["cycles", together, "sync-micros", micros] => {
            let sync = Duration::from_micros(micros.parse()?);
            let row = store::Cycles { sync, ..store::row(together.parse()?) };
            println!("{}", store::life_cycles(&[row])?);
        }
        // A fixed number of calls and nothing else: for whoever counts instructions.
        ["calls", together, calls, history @ ("with-history" | "without-history")] => {
            let history = match *history {
                "with-history" => HistorySettings::default(),
                _ => HistorySettings::OFF,
            };
            println!("{}", store::live_through(together.parse()?, calls.parse()?, history)?);
        }
        [store::COMMAND, folder] => return answer(&store::restart_here(folder)?),
        _ => bail!("unknown arguments {arguments:?}: give none"),
    }
    Ok(())
}

/// Runs the bench of draining at the limit, or one row of it.
pub fn run_drain(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rows = match arguments.as_slice() {
        [] => drain::rows(),
        [tenants, calls, workers] => {
            vec![drain::row(tenants.parse()?, calls.parse()?, workers.parse()?)]
        }
        _ => bail!("unknown arguments {arguments:?}: give none, or tenants, calls and workers"),
    };
    println!("{}\n\n{}", machine::describe(), drain::measure(&rows)?);
    Ok(())
}

/// Runs the bench of steps, of so many in each row.
pub fn run_flows(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (steps, rows) = match *arguments {
        [] => (flows::STEPS_IN_ALL, ""),
        [steps] => (steps.parse()?, ""),
        [steps, rows] => (steps.parse()?, rows),
        [flows::COMMAND, row, column, steps] => {
            return answer(&flows::measure_here(row, column, steps.parse()?)?);
        }
        _ => bail!(
            "unknown arguments {arguments:?}: give none, or how many steps, and of which rows"
        ),
    };
    let [rates, costs] = flows::measure(steps, rows)?;
    println!("{}\n\n{rates}\n{costs}", machine::describe());
    Ok(())
}

/// Runs the bench of limits in the stores of these urls.
pub fn run_shared(urls: &[String]) -> anyhow::Result<()> {
    if urls.is_empty() {
        bail!("give the urls of stores: redis://…, postgres://…, nats://…");
    }
    println!("{}\n", machine::describe());
    for url in urls {
        println!("{}", shared::measure(url)?);
    }
    Ok(())
}

/// Runs the bench of designs on the PostgreSQL of a url, or one size of it.
pub fn run_designs(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (url, works) = match arguments.as_slice() {
        [url] => (url, designs::FULL.to_vec()),
        [url, lanes, calls_of_each] => {
            let calls_of_each = calls_of_each.parse()?;
            (url, vec![designs::Work { lanes: lanes.parse()?, calls_of_each }])
        }
        _ => {
            bail!("give the url of a PostgreSQL, and if you like how many lanes and calls in each")
        }
    };
    println!("{}\n", machine::describe());
    println!("{}", designs::measure(url, &works, |news| eprintln!("{news} …"))?);
    Ok(())
}

/// First what is measured in children: the rows with many keys leave this process large.
fn compare(plan: &Plan) -> anyhow::Result<()> {
    println!("{}\n", machine::describe());
    eprintln!("waiting tasks …");
    let waiters = waiters::measure(plan)?;
    eprintln!("longest single call …");
    let longest = longest::measure(plan)?;
    eprintln!("bytes per key …");
    let memory = memory::measure(plan)?;
    eprintln!("time per decision …");
    println!("{}\n{memory}\n{longest}\n{waiters}", decisions::measure(plan));
    Ok(())
}

fn answer(numbers: &[u64]) -> anyhow::Result<()> {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    println!("{}", words.join(" "));
    Ok(())
}
