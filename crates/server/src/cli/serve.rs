//! `tollgate serve`: the server in the foreground, until a signal ends it.

use super::in_force::Awaited;
use super::signals::{Hangups, Signals};
use super::{Environment, Exit, ServeArguments, descriptors, log, output};
use crate::clock;
use crate::config::{Config, Place, StoreUrl};
use crate::server::{Reloader, Server, Settings};
use crate::threads::runtime_beside;
use anyhow::Context;
use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;
use tollgate::{Builder, GateError, Tollgate};

/// How long a database that is not there is left alone before it is asked for again.
const CONNECT_PAUSE: Duration = Duration::from_secs(2);

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
    // In a folder one thread decides for all.
    let runtime = runtime_beside(usize::from(matches!(config.place, Place::Folder(_))))?;
    runtime.block_on(async {
        // First: what is found in the store, and put in force there, is told.
        log::start(config.log_format, &config.log)?;
        let gate = opened(&config).await?;
        let mut awaited = Awaited::nothing();
        awaited.put(&gate, config.desired).await?;
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
        descriptors::raise_limit();
        if let Err(error) = gate.takes_writes() {
            let is_awaited = !awaited.is_empty();
            tracing::warn!(%error, limits_wait = is_awaited, "the store is not there yet: the server is not ready until it is");
        }
        let telling = (&config.place, said);
        let settling = Settling { awaited, source };
        let ended = serve_until_told(server, &gate, settling, telling).await;
        gate.shut_down().await;
        ended
    })
}

/// The limits where the configuration wants them. A store that is not there yet may come later.
async fn opened(config: &Config) -> anyhow::Result<Tollgate> {
    let (age, bytes) = config.history;
    let builder = Tollgate::builder().history(age, bytes);
    match &config.place {
        Place::Memory => Ok(builder.memory()),
        Place::Folder(data) => {
            let opened = builder.open(data).await;
            opened.with_context(|| format!("cannot use {}", data.display()))
        }
        Place::Shared(url, prefix) => {
            let builder = prefix.iter().fold(builder, |builder, prefix| builder.prefix(prefix));
            connected(builder, url).await.with_context(|| format!("cannot use the store {url}"))
        }
    }
}

/// Waits for a database that is not there yet: nothing can be said of calls that nobody has read.
async fn connected(builder: Builder, url: &StoreUrl) -> Result<Tollgate, GateError> {
    loop {
        match builder.clone().connect(url.revealed()).await {
            Err(error) if error.is_for_now() => {
                tracing::warn!(%error, store = %url, "the store is not there yet: the server listens when it is");
            }
            connected => return connected,
        }
        clock::rest(CONNECT_PAUSE).await;
    }
}

/// What is yet to be put in force, and where more comes from.
struct Settling<'a> {
    awaited: Awaited,
    source: Option<&'a Source<'a>>,
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
    settling: Settling<'_>,
    (place, said): (&Place, impl FnOnce(&str)),
) -> anyhow::Result<Exit> {
    let (mut first, mut second) = (Signals::new()?, Signals::new()?);
    let (hangups, reloader) = (Hangups::new()?, server.reloader());
    // Only now: whoever reads it may send a signal.
    output::listening(&server.url(), place);
    said(&server.url());
    let twice = async {
        second.next().await;
        second.next().await;
    };
    tokio::select! {
        () = server.serve(first.next()) => {}
        () = twice => tracing::warn!("stopped at once"),
        () = gate.ended() => anyhow::bail!("the store failed, and nothing can be kept: see the log"),
        () = settling.go_on(hangups, &reloader, gate) => {}
    }
    Ok(Exit::Done)
}

impl Settling<'_> {
    /// Puts in force what the store could not take yet, reads the settings again with each hangup, and
    /// never ends.
    async fn go_on(mut self, mut hangups: Hangups, reloader: &Reloader, gate: &Tollgate) {
        let Self { awaited, source } = &mut self;
        loop {
            tokio::select! {
                () = hung_up(&mut hangups, source.is_some()) => {}
                () = awaited.again(gate) => continue,
            }
            let Some(source) = source else { continue };
            match reload(reloader, gate, source, awaited).await {
                Ok(()) if awaited.is_empty() => tracing::info!("the configuration was read again"),
                Ok(()) => tracing::warn!(
                    "the configuration was read again: its limits wait for the store"
                ),
                Err(error) => {
                    tracing::error!(
                        error = format!("{error:#}"),
                        "the configuration was not taken"
                    );
                }
            }
        }
    }
}

/// Ready with the next hangup, if anything is to be read then.
async fn hung_up(hangups: &mut Hangups, is_heard: bool) {
    if !is_heard {
        return pending().await;
    }
    hangups.next().await;
}

/// Tokens first: whoever takes one back wants it gone. All was checked before anything is changed.
async fn reload(
    reloader: &Reloader,
    gate: &Tollgate,
    source: &Source<'_>,
    awaited: &mut Awaited,
) -> anyhow::Result<()> {
    let config = source.read()?;
    reloader.replace_tokens(config.tokens)?;
    Ok(awaited.put(gate, config.desired).await?)
}
