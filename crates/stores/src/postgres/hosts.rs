//! The hosts of a url, one of which takes writes: each is tried, the one that was good last first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};

/// A connection, and what carries its bytes.
type Connecting<T> = (Client, Connection<Socket, <T as MakeTlsConnect<Socket>>::Stream>);

/// How each is connected to.
pub(super) struct Hosts {
    // Invariant: there is at least one.
    each: Vec<Config>,
    /// Where the one is that was good last.
    good: AtomicUsize,
    /// How long each is given but the last: one that accepts connections may never say anything.
    share: Duration,
}

impl Hosts {
    /// Those of a url. All but one are given so long together; for how long the last is waited for is
    /// the caller's affair.
    pub(super) fn new(config: &Config, patience: Duration) -> Self {
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let (count, ports) = (hosts.len().max(addresses.len()), config.get_ports().len());
        let is_sound = (hosts.is_empty() || addresses.is_empty() || hosts.len() == addresses.len())
            && (ports < 2 || ports == count);
        // What does not fit together is told when it is connected to.
        let each = match count > 1 && is_sound {
            true => (0..count).map(|at| of_one(config, at)).collect(),
            false => vec![config.clone()],
        };
        let others = u32::try_from(each.len() - 1).unwrap_or(u32::MAX).max(1);
        Self { each, good: AtomicUsize::new(0), share: patience / others }
    }

    /// Connects to the first that takes writes.
    pub(super) async fn connect<T>(&self, tls: T) -> Result<Connecting<T>, Error>
    where
        T: MakeTlsConnect<Socket> + Clone,
    {
        let (first, last) = (self.good.load(Ordering::Relaxed), self.each.len() - 1);
        let mut told = None;
        for step in first..first + last {
            match timeout(self.share, self.one(step).connect(tls.clone())).await {
                Ok(Ok(connected)) => return Ok(self.was_good(step, connected)),
                // What a server says of itself tells more than that another only reads, or is not there.
                Ok(Err(error)) if error.as_db_error().is_some() => told = told.or(Some(error)),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        match self.one(first + last).connect(tls).await {
            Ok(connected) => Ok(self.was_good(first + last, connected)),
            Err(error) => Err(told.unwrap_or(error)),
        }
    }

    fn one(&self, step: usize) -> &Config {
        &self.each[step % self.each.len()]
    }

    fn was_good<C>(&self, step: usize, connected: C) -> C {
        self.good.store(step % self.each.len(), Ordering::Relaxed);
        connected
    }
}

/// How one of several is connected to: nodes write, so it must be one that takes writes unless the url
/// says otherwise.
fn of_one(config: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match config.get_hosts().get(at) {
        Some(Host::Tcp(host)) => drop(one.host(host)),
        #[cfg(unix)]
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    config.get_hostaddrs().get(at).map(|address| one.hostaddr(*address));
    let ports = config.get_ports();
    ports.get(at).or(ports.first()).map(|port| one.port(*port));
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|span| one.connect_timeout(*span));
    config.get_tcp_user_timeout().map(|span| one.tcp_user_timeout(*span));
    config.get_keepalives_interval().map(|span| one.keepalives_interval(span));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding());
    one.load_balance_hosts(config.get_load_balance_hosts());
    one.target_session_attrs(match config.get_target_session_attrs() {
        TargetSessionAttrs::Any => TargetSessionAttrs::ReadWrite,
        asked => asked,
    });
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Hosts {
        Hosts::new(&url.parse().unwrap(), Duration::from_secs(6))
    }

    #[test]
    fn each_host_is_connected_to_with_all_that_the_url_says() {
        let url = "postgres://me:secret@a:1,b:2,c:3/shop?application_name=x&connect_timeout=4\
                   &sslmode=require&options=-c%20a%3Db&keepalives_idle=7&channel_binding=disable";
        let hosts = hosts(url);
        let expected = |host: &str, port: u16| {
            let url = url.replace("a:1,b:2,c:3", &format!("{host}:{port}"));
            let mut config: Config = url.parse().unwrap();
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            config
        };
        assert_eq!(hosts.each, [expected("a", 1), expected("b", 2), expected("c", 3)]);
        assert_eq!(hosts.share, Duration::from_secs(3));
    }

    #[test]
    fn a_url_whose_hosts_and_ports_do_not_fit_is_left_as_it_is() {
        for url in ["postgres://a:1/shop", "host=a,b,c port=1,2", "host=a,b hostaddr=127.0.0.1"] {
            assert_eq!(hosts(url).each, [url.parse().unwrap()], "{url}");
        }
    }
}
