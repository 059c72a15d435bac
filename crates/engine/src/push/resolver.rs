//! Names to addresses: a name is resolved for each connection anew, and every address is judged.

use super::address::AddressPolicy;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::lookup_host;
use tokio::sync::Semaphore;

/// Most names that are resolved at once: each holds a thread of the runtime while it lasts.
const LOOKUPS_MAX: usize = 64;
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Resolves names to addresses that may be connected to.
pub(super) struct Resolver {
    policy: AddressPolicy,
    lookups: Arc<Semaphore>,
    names: Names,
}

/// Who knows names.
enum Names {
    /// The machine: its files, and the servers it asks.
    System,
    /// A test, which answers once with each of these.
    #[cfg(test)]
    Told(parking_lot::Mutex<std::collections::VecDeque<Vec<IpAddr>>>),
}

impl Resolver {
    pub(super) fn new(policy: AddressPolicy) -> Self {
        Self { policy, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)), names: Names::System }
    }

    /// One for which every name has the first of these addresses, then the next, and then none.
    #[cfg(test)]
    pub(super) fn told<const N: usize>(policy: AddressPolicy, answers: [Vec<IpAddr>; N]) -> Self {
        let names = Names::Told(parking_lot::Mutex::new(answers.into()));
        Self { names, ..Self::new(policy) }
    }

    /// The addresses of a host that may be connected to.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => self.look_up(host, port).await?,
        };
        let mut forbidden = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.policy.check(address.ip()) {
                Ok(()) => allowed.push(address),
                Err(error) => forbidden = Some(error),
            }
        }
        allowed.truncate(ADDRESSES_MAX);
        match (allowed.is_empty(), forbidden) {
            (false, _) => Ok(allowed),
            (true, Some(error)) => Err(io::Error::new(io::ErrorKind::PermissionDenied, error)),
            (true, None) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        }
    }

    async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let lookup = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
        match &self.names {
            Names::System => {
                let host = host.to_owned();
                // Seen through by a task of its own: a lookup holds its thread, and so its place, also when
                // nobody waits for it any more.
                let found = tokio::spawn(async move {
                    let found = lookup_host((host.as_str(), port)).await;
                    drop(lookup);
                    found.map(Iterator::collect)
                });
                found.await.map_err(io::Error::other)?
            }
            #[cfg(test)]
            Names::Told(answers) => {
                let answer = answers.lock().pop_front().unwrap_or_default();
                Ok(answer.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
            }
        }
    }
}
