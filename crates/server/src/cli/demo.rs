//! `tollgate demo`: APIs with real limits, tenants with too much to send, and two ways to send it side by
//! side: at once and again on every 429, and through a server that runs for as long.

mod apis;
mod naive;
mod picture;
mod score;
mod upstream;

use self::apis::APIS;
use self::picture::Picture;
use self::score::Scores;
use self::upstream::Upstream;
use super::signals::Signals;
use super::{DemoArguments, Exit};
use crate::clock;
use crate::server::{Server, Settings};
use anyhow::Context;
use serde_json::json;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tollgate::push::address::AddressPolicy;
use tollgate::{Call, Tollgate};
use tollgate_client::Client;
use tollgate_client::path::path;

/// How often the picture is drawn.
const EVERY: Duration = Duration::from_millis(200);
/// Whatever happens, it is over by then.
const LONGEST: Duration = Duration::from_secs(90);

pub(super) fn demo(arguments: &DemoArguments) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let folder = Folder::new()?;
        let gate = Tollgate::open(&folder.0).await.context("the demo needs a temporary folder")?;
        let server = bound(&gate, arguments.port).await?;
        let url = server.url();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        tokio::select! {
            shown = show(&gate, &url) => shown?,
            () = signals.next() => return Ok(Exit::Done),
        }
        if arguments.stay {
            super::output::text(&format!("the server stays: {url}/ until Ctrl-C"));
            signals.next().await;
        }
        drop(stop);
        serving.await?;
        gate.shut_down().await;
        Ok(Exit::Done)
    })
}

/// Sends everything both ways, and shows how that goes.
async fn show(gate: &Tollgate, url: &str) -> anyhow::Result<()> {
    let scores = Arc::new(Scores::default());
    let upstream = Upstream::start(scores.clone()).await?;
    let mut picture = Picture::new(url);
    picture.draw(&scores);
    let client = Client::connect(url)?;
    for api in &APIS {
        for bound in &api.bounds {
            gate.limit(bound.name, bound.kept()).await?;
        }
        let destination =
            json!({ "url": format!("http://{}/{}/tollgate", upstream.address, api.name) });
        let queue = json!({ "order": { "parallel": 1000 }, "destination": destination });
        client.request("PUT", &path(&["queues", api.name]), Some(queue)).await?;
    }
    let naive = naive::send_all(upstream.address, &scores);
    for api in &APIS {
        let calls = api.orders().map(|order| {
            let [first, second] = api.tolls(&order, order.tenant);
            let call = Call::new(order.tenant).body(order.body());
            call.pays(first).pays(second)
        });
        gate.enqueue_all(api.name, calls).await?;
    }
    let drawing = async {
        while !scores.is_over() {
            clock::rest(EVERY).await;
            picture.draw(&scores);
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(LONGEST, drawing) => {}
        never = naive => match never {},
    }
    picture.sum_up(&scores);
    Ok(())
}

/// A server where it was asked for, or anywhere if another is there.
async fn bound(gate: &Tollgate, port: u16) -> anyhow::Result<Server> {
    let at = |port: u16| -> anyhow::Result<Settings> {
        let mut settings = Settings::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        // The upstream is on this machine.
        settings.push.addresses = AddressPolicy { allowed: vec!["127.0.0.0/8".parse()?] };
        Ok(settings)
    };
    match Server::bind(gate.clone(), at(port)?).await {
        Ok(server) => Ok(server),
        Err(_) => Ok(Server::bind(gate.clone(), at(0)?).await?),
    }
}

/// A folder that goes with the demo.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        // One that is there already is another's.
        let name = format!("tollgate-demo-{:016x}", getrandom::u64()?);
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
