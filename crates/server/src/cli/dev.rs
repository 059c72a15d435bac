//! `tollgate dev`: a server for one's own machine that unmodified QStash SDKs find by themselves.

use super::serve::{Lent, run};
use super::{DevArguments, Environment, Exit, output};
use crate::config::{Config, ServerWire};
use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tollgate::push::address::AddressPolicy;

/// Where the SDKs look for it.
const PORT: u16 = 8080;
/// What says otherwise, to them and to us.
const PORT_VARIABLE: &str = "QSTASH_DEV_PORT";
/// Where it keeps what it is told, unless it is told where.
const FOLDER: &str = "./tollgate-dev";
/// The token that the SDKs show in development.
const TOKEN: &str = "eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=";
/// The keys by which they know the server there.
const KEYS: Lent =
    Lent { current: "sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r", next: "sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs" };
/// All there are: destinations on one's own machine, too.
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

pub(super) fn dev(arguments: &DevArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let port = arguments.port.map_or_else(port_of_environment, Ok)?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let flags = ServerWire {
        listen: Some(listen.to_string()),
        data: Some(data),
        memory: Some(false),
        ..ServerWire::default()
    };
    let mut config = Config::read(flags, environment, None)?;
    // Whoever is on this machine may ask, whatever they show.
    config.tokens.clear();
    let allowed = ALL.iter().map(|network| network.parse()).collect::<Result<_, _>>()?;
    config.push.addresses = AddressPolicy { allowed };
    run(config, Some(KEYS), None, |url| {
        output::text(&format!(
            "for development alone: it asks for no token, and sends to any address\n\
             with @upstash/qstash, QSTASH_DEV=true is enough; else\n  \
             QSTASH_URL={url}\n  QSTASH_TOKEN={TOKEN}\n  \
             QSTASH_CURRENT_SIGNING_KEY={}\n  QSTASH_NEXT_SIGNING_KEY={}",
            KEYS.current, KEYS.next
        ));
    })
}

fn port_of_environment() -> anyhow::Result<u16> {
    let Some(text) = std::env::var_os(PORT_VARIABLE) else { return Ok(PORT) };
    let text = text.to_string_lossy();
    text.parse().with_context(|| format!("{PORT_VARIABLE} is {text:?}: a port is 1 to 65535"))
}
