//! `tollgate dead`: dead letters, looked at, tried again and deleted.

use super::To;
use super::answer::text;
use super::call::calls;
use crate::cli::{Environment, Exit};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate::Span;
use tollgate_client::path::{path, with_query};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DeadCommand {
    /// Lists dead calls of a queue, those that were accepted first first.
    #[command(after_help = "Example:\n  tollgate dead list charges --lane acme")]
    List(ListArguments),
    /// Lets dead calls wait again as if they were new: those named, or all of a queue or lane.
    #[command(
        after_help = "Examples:\n  tollgate dead retry 42 43\n  tollgate dead retry --queue charges --lane acme --every 100ms"
    )]
    Retry(RetryArguments),
    /// Deletes dead calls for good: those named, or all of a queue or lane.
    #[command(
        after_help = "Examples:\n  tollgate dead delete 42\n  tollgate dead delete --queue charges --lane acme"
    )]
    Delete(WhichArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// The queue.
    queue: String,
    /// Of this lane alone.
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Goes on behind this call.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WhichArguments {
    /// Their ids.
    #[arg(conflicts_with = "queue")]
    ids: Vec<String>,
    /// All of this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// All of this lane of it.
    #[arg(long, value_name = "LANE", requires = "queue")]
    lane: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArguments {
    #[command(flatten)]
    which: WhichArguments,
    /// One every so often; all at once if left out.
    #[arg(long, value_name = "DURATION", requires = "queue")]
    every: Option<Span>,
}

pub(super) async fn run(command: DeadCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        DeadCommand::List(ListArguments { queue, lane, after, limit, to }) => {
            let query = [
                ("queue", Some(&*queue)),
                ("lane", lane.as_deref()),
                ("after", after.as_deref()),
                ("limit", Some(&*limit)),
            ];
            let at = with_query(path(&["dead"]), &query);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, calls)
        }
        DeadCommand::Retry(RetryArguments { which, every }) => {
            let mut body = which.body();
            if let Some(every) = every {
                body["every"] = every.to_string().into();
            }
            which.act(("revive", "revived", "wait again"), body, environment).await
        }
        DeadCommand::Delete(which) => {
            which.act(("delete", "deleted", "are deleted"), which.body(), environment).await
        }
    }
}

impl WhichArguments {
    fn body(&self) -> Value {
        let Some(queue) = &self.queue else { return json!({"ids": self.ids}) };
        match &self.lane {
            Some(lane) => json!({"queue": queue, "lane": lane}),
            None => json!({"queue": queue}),
        }
    }

    /// Does it, and says how many it was done to: the action, the field of the answer, and the words.
    async fn act(
        &self,
        (action, field, said): (&str, &str, &str),
        body: Value,
        environment: &Environment,
    ) -> anyhow::Result<Exit> {
        if self.ids.is_empty() && self.queue.is_none() {
            anyhow::bail!("say which: the ids of calls, or --queue for all of a queue");
        }
        let at = path(&["dead", action]);
        let answer = self.to.client(environment)?.request("POST", &at, Some(body)).await;
        let count = answer.as_ref().ok().and_then(|answer| answer[field].as_u64());
        let named = u64::try_from(self.ids.len()).unwrap_or(u64::MAX);
        let has_missed = self.queue.is_none() && count.is_some_and(|count| count < named);
        let exit = self.to.say(answer, |answer| {
            let count = text(answer, field);
            match has_missed {
                true => vec![format!("{count} of {named} calls {said}: the others are not dead")],
                false => vec![format!("{count} calls {said}")],
            }
        })?;
        Ok(if has_missed { exit.max(Exit::Refused) } else { exit })
    }
}
