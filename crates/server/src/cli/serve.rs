//! `tollgate serve`: the server in the foreground, until a signal ends it.

use super::signals::Signals;
use super::{Environment, Exit, ServeArguments, descriptors, log, output};
use crate::access::TokenSpec;
use crate::server::{Server, Settings};
use crate::tls::Tls;
use crate::token::Token;
use anyhow::Context;
use tollgate::Tollgate;

pub(super) fn serve(arguments: &ServeArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let settings = Settings {
        tokens: tokens(environment)?,
        tls: tls(arguments)?,
        ..Settings::new(arguments.listen)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let gate = if arguments.memory {
            Tollgate::memory()
        } else {
            let data = arguments.data.display();
            Tollgate::open(&arguments.data).await.with_context(|| format!("cannot use {data}"))?
        };
        let server = Server::bind(gate.clone(), settings).await?;
        log::start(arguments.log, environment.log.as_deref())?;
        descriptors::raise_limit();
        serve_until_told(server, &gate, arguments).await
    })
}

/// The first signal lets answers under way finish; the second does not. A store that fails ends it.
async fn serve_until_told(
    server: Server,
    gate: &Tollgate,
    arguments: &ServeArguments,
) -> anyhow::Result<Exit> {
    let (mut first, mut second) = (Signals::new()?, Signals::new()?);
    output::listening(&server.url(), (!arguments.memory).then_some(&*arguments.data));
    let twice = async {
        second.next().await;
        second.next().await;
    };
    tokio::select! {
        () = server.serve(first.next()) => {}
        () = twice => tracing::warn!("stopped at once"),
        () = gate.ended() => anyhow::bail!("the store failed, and nothing can be kept: see the log"),
    }
    Ok(Exit::Done)
}

fn tokens(environment: &Environment) -> anyhow::Result<Vec<TokenSpec>> {
    let Some(text) = &environment.token else { return Ok(Vec::new()) };
    let token = Token::new(&text.to_string_lossy()).context("TOLLGATE_TOKEN does not do")?;
    Ok(vec![TokenSpec::admin(&token)])
}

fn tls(arguments: &ServeArguments) -> anyhow::Result<Option<Tls>> {
    // The one is not taken without the other.
    let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else {
        return Ok(None);
    };
    Ok(Some(Tls::read(certificate, key)?))
}
