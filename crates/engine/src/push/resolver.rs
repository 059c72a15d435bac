//! Names to addresses: a name is resolved for each connection anew, and every address is judged.

use super::address::AddressPolicy;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::lookup_host;
use tokio::sync::{Semaphore, watch};

/// Most names that are resolved at once: each holds a thread of the runtime while it lasts.
const LOOKUPS_MAX: usize = 64;
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Resolves names to addresses that may be connected to.
pub(super) struct Resolver {
    policy: AddressPolicy,
    lookups: Arc<Lookups>,
}

/// What is being looked up: a name once at a time, however many ask for it, so that one whose servers do not
/// answer holds one place and not all of them.
struct Lookups {
    names: Names,
    places: Semaphore,
    under_way: Mutex<HashMap<String, watch::Sender<Found>>>,
}

/// Who knows the addresses of a name.
type Names = Box<dyn Fn(String) -> Addresses + Send + Sync>;
type Addresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// What came of a lookup, if it has ended. An error as what can be told to many.
type Found = Option<Result<Vec<IpAddr>, (io::ErrorKind, String)>>;

impl Resolver {
    /// One that asks the machine: its files, and the servers it asks.
    pub(super) fn new(policy: AddressPolicy) -> Self {
        let names = |name: String| -> Addresses {
            Box::pin(async move {
                let found = lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        };
        Self::asking(policy, names)
    }

    pub(super) fn asking(
        policy: AddressPolicy,
        names: impl Fn(String) -> Addresses + Send + Sync + 'static,
    ) -> Self {
        let (names, under_way) = (Box::new(names), Mutex::default());
        let places = Semaphore::new(LOOKUPS_MAX);
        Self { policy, lookups: Arc::new(Lookups { names, places, under_way }) }
    }

    /// The addresses of a host that may be connected to.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![ip],
            Err(_) => self.lookups.look_up(host).await?,
        };
        let mut forbidden = None;
        let mut allowed = Vec::new();
        for ip in found {
            match self.policy.check(ip) {
                Ok(()) => allowed.push(SocketAddr::new(ip, port)),
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
}

impl Lookups {
    async fn look_up(self: &Arc<Self>, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut found = {
            let mut under_way = self.under_way.lock();
            let begin = || {
                let sender = watch::Sender::new(None);
                // Seen through by a task of its own: a lookup holds its thread, and so its place, also when
                // nobody waits for it any more.
                tokio::spawn(self.clone().see_through(name.to_owned(), sender.clone()));
                sender
            };
            under_way.entry(name.to_owned()).or_insert_with(begin).subscribe()
        };
        let found = found.wait_for(Option::is_some).await.map_err(io::Error::other)?;
        match &*found {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            Some(Err((kind, reason))) => Err(io::Error::new(*kind, reason.clone())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    async fn see_through(self: Arc<Self>, name: String, sender: watch::Sender<Found>) {
        let Some(_place) = self.place(&name, &sender).await else { return };
        let found = (self.names)(name.clone()).await;
        // Who asks from now on is answered anew.
        self.under_way.lock().remove(&name);
        sender.send_replace(Some(found.map_err(|error| (error.kind(), error.to_string()))));
    }

    /// Its turn; `None` if all who asked have left before.
    async fn place(&self, name: &str, sender: &watch::Sender<Found>) -> Option<impl Drop> {
        let mut place = std::pin::pin!(self.places.acquire());
        loop {
            tokio::select! {
                place = &mut place => return place.ok(),
                () = sender.closed() => {
                    let mut under_way = self.under_way.lock();
                    if sender.receiver_count() == 0 {
                        under_way.remove(name);
                        return None;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;
    use std::time::Duration;
    use tokio::time::timeout;

    /// One for which `good` has an address, and nobody ever answers for other names; and how often those were asked.
    fn resolver() -> (Arc<Resolver>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let names = move |name: String| -> Addresses {
            if name == "good" {
                return Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) });
            }
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(pending())
        };
        let policy = AddressPolicy { allowed: vec!["127.0.0.1".parse().unwrap()] };
        (Arc::new(Resolver::asking(policy, names)), asked)
    }

    async fn ask_in_vain(resolver: &Resolver, name: &str) {
        let mut asking = std::pin::pin!(resolver.resolve(name, 80));
        // Time for the task to begin, and nobody waits any longer.
        for _ in 0..3 {
            assert!(
                std::future::poll_fn(|it| Poll::Ready(asking.as_mut().poll(it))).await.is_pending()
            );
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_nobody_answers_for_holds_one_place_however_many_ask() {
        let (resolver, asked) = resolver();
        for _ in 0..1_000 {
            ask_in_vain(&resolver, "dead").await;
        }
        let good = timeout(Duration::from_secs(1), resolver.resolve("good", 80)).await;
        assert_eq!(good.unwrap().unwrap(), ["127.0.0.1:80".parse().unwrap()]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_nobody_waits_for_any_more_gives_up_its_turn() {
        let (resolver, asked) = resolver();
        for number in 0..10 * LOOKUPS_MAX {
            ask_in_vain(&resolver, &format!("dead-{number}")).await;
        }
        tokio::task::yield_now().await;
        let under_way = resolver.lookups.under_way.lock().len();
        assert_eq!((asked.load(Ordering::Relaxed), under_way), (LOOKUPS_MAX, LOOKUPS_MAX));
    }
}
