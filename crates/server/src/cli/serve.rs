//! `tollgate serve`: the server in the foreground, until a signal ends it.

use super::signals::{Hangups, Signals};
use super::{Environment, Exit, ServeArguments, descriptors, log, output};
use crate::config::Config;
use crate::server::{Reloader, Server, Settings};
use anyhow::Context;
use std::future::pending;
use std::path::{Path, PathBuf};
use tollgate::Tollgate;

/// Who changes limits and queues as the file says.
const ACTOR: &str = "config";

/// Keys that a server signs QStash messages with while it runs, in place of its own.
pub(super) struct Lent {
    pub(super) current: &'static str,
    pub(super) next: &'static str,
}

pub(super) fn serve(arguments: &ServeArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let source = Source { arguments, environment };
    let config = source.read()?;
    run(config, None, Some(&source), |_| {})
}

/// Runs a server as it was told until a signal ends it; `said` may say more of it once it listens. Without
/// a source its settings stay as they are.
pub(super) fn run(
    config: Config,
    lent: Option<Lent>,
    source: Option<&Source<'_>>,
    said: impl FnOnce(&str),
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (age, bytes) = config.history;
        let builder = Tollgate::builder().history(age, bytes);
        let gate = match &config.data {
            None => builder.memory(),
            Some(data) => {
                let opened = builder.open(data).await;
                opened.with_context(|| format!("cannot use {}", data.display()))?
            }
        };
        config.desired.put_in_force(&gate, ACTOR).await?;
        let Config { tokens, tls, listen, redact_bodies, leave, push, .. } = config;
        let settings = Settings {
            tokens,
            tls,
            redact_bodies,
            leave,
            push,
            lent_keys: lent.map(|lent| (lent.current, lent.next)),
            #[cfg(feature = "otel")]
            traces: crate::traces::TraceSettings::of_environment()?,
            ..Settings::new(listen)
        };
        let server = Server::bind(gate.clone(), settings).await?;
        log::start(config.log_format, &config.log)?;
        descriptors::raise_limit();
        let telling = (config.data.as_deref(), said);
        let ended = serve_until_told(server, &gate, source, telling).await;
        gate.shut_down().await;
        ended
    })
}

/// Where the settings come from, now and when they are read again.
pub(super) struct Source<'a> {
    arguments: &'a ServeArguments,
    environment: &'a Environment,
}

impl Source<'_> {
    fn path(&self) -> Option<PathBuf> {
        let named = self.environment.get("CONFIG").map(PathBuf::from);
        self.arguments.config.clone().or(named)
    }

    fn read(&self) -> anyhow::Result<Config> {
        Ok(Config::read(self.arguments.said(), self.environment, self.path().as_deref())?)
    }
}

/// The first signal lets answers under way finish; the second does not. A store that fails ends it.
async fn serve_until_told(
    server: Server,
    gate: &Tollgate,
    source: Option<&Source<'_>>,
    (data, said): (Option<&Path>, impl FnOnce(&str)),
) -> anyhow::Result<Exit> {
    let (mut first, mut second) = (Signals::new()?, Signals::new()?);
    let (hangups, reloader) = (Hangups::new()?, server.reloader());
    // Only now: whoever reads it may send a signal.
    output::listening(&server.url(), data);
    said(&server.url());
    let twice = async {
        second.next().await;
        second.next().await;
    };
    tokio::select! {
        () = server.serve(first.next()) => {}
        () = twice => tracing::warn!("stopped at once"),
        () = gate.ended() => anyhow::bail!("the store failed, and nothing can be kept: see the log"),
        () = reload_when_told(hangups, &reloader, gate, source) => {}
    }
    Ok(Exit::Done)
}

/// Reads the settings again with each hangup, and never ends.
async fn reload_when_told(
    mut hangups: Hangups,
    reloader: &Reloader,
    gate: &Tollgate,
    source: Option<&Source<'_>>,
) {
    let Some(source) = source else { return pending().await };
    loop {
        hangups.next().await;
        match reload(reloader, gate, source).await {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the configuration was not taken");
            }
        }
    }
}

/// Tokens first: whoever takes one back wants it gone. All was checked before anything is changed.
async fn reload(reloader: &Reloader, gate: &Tollgate, source: &Source<'_>) -> anyhow::Result<()> {
    let config = source.read()?;
    reloader.replace_tokens(config.tokens)?;
    Ok(config.desired.put_in_force(gate, ACTOR).await?)
}
