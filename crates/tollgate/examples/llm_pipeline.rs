//! A pipeline with a limit for each provider: documents are summarised by whichever provider they name, and each
//! provider has calls a minute of its own, over all runs.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use serde_json::{Value, json};
use tollgate::flows::{Task, TaskFailure, TaskJob, Workflow};
use tollgate::{Span, Tollgate};

/// Calls a minute for each provider.
const CALLS: u64 = 3;

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    let flows = gate.flows();

    let chat = Task::new("summarise", "llm.chat").map("documents").keyed_rate_limit(
        "provider",
        CALLS,
        Span::from_minutes(1),
        1,
    );
    let digest = Task::new("digest", "text.join").after("summarise");
    flows.register(Workflow::new("digest").task(chat).task(digest).build()?).await?;

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let until = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        drop(stopped.wait_for(|is_stopped| *is_stopped).await);
    };
    let chats = flows.tasks("llm.chat").concurrency(4).until(until(stopped.clone()));
    let chats = tokio::spawn(chats.run(async |task: TaskJob| {
        let document: Value = task.read()?;
        Ok::<_, TaskFailure>(format!("{} by {}", document["title"], document["provider"]))
    }));
    let joins = flows.tasks("text.join").until(until(stopped));
    let joins =
        tokio::spawn(joins.run(async |task: TaskJob| {
            Ok::<_, TaskFailure>(task.read::<Vec<String>>()?.join("\n"))
        }));

    let documents = |provider: &str| {
        let document = |n: u64| json!({ "title": format!("{n}"), "provider": provider });
        json!({ "documents": (0..CALLS).map(document).collect::<Vec<_>>() })
    };
    // Each provider has its own calls: both runs are through at once.
    let mut runs = Vec::new();
    for provider in ["openai", "anthropic"] {
        runs.push(flows.start_workflow("digest", documents(provider)).await?.run);
    }
    for run in &runs {
        let ended = flows.result(run, Span::from_secs(10)).await?;
        let ended = ended.ok_or_else(|| anyhow::anyhow!("it takes too long"))?;
        println!("{:?}", ended.ending.value::<String>());
    }
    // One more at a provider whose calls are used up waits for the next minute.
    let late = flows.start_workflow("digest", documents("openai")).await?.run;
    anyhow::ensure!(flows.result(&late, Span::from_millis(200)).await?.is_none(), "it waits");
    println!("{}", flows.workflow_picture(&late).await?.unwrap_or_default());

    stop.send_replace(true);
    chats.await??;
    joins.await??;
    gate.shut_down().await;
    Ok(())
}
