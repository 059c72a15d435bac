//! A connection to Redis: to one server, or to a cluster of them.

use super::fault;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion,
    RedisError, RedisFuture, RedisResult, Value,
};
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::contract::StoreError;

/// A connection that is made again by itself whenever it is lost.
#[derive(Clone)]
pub struct Link(To);

#[derive(Clone)]
enum To {
    Server(Arc<Server>),
    Cluster(ClusterConnection),
}

/// A server, and the connection to it, which is made anew by itself if it breaks. One that breaks while the
/// server still introduces itself is taken for a server that speaks otherwise, for good; so we make
/// another.
struct Server {
    client: Client,
    config: ConnectionManagerConfig,
    connection: Mutex<ConnectionManager>,
}

impl Server {
    async fn new(client: Client, config: ConnectionManagerConfig) -> Result<Self, RedisError> {
        let connected = ConnectionManager::new_with_config(client.clone(), config.clone()).await?;
        Ok(Self { client, config, connection: Mutex::new(connected) })
    }

    fn connection(&self) -> ConnectionManager {
        self.connection.lock().clone()
    }

    /// What was answered; if that was cut in the middle, the next who asks connects.
    fn heard<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Parse) {
            let (client, config) = (self.client.clone(), self.config.clone());
            *self.connection.lock() = ConnectionManager::new_lazy_with_config(client, config)?;
        }
        answer
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let to = match self.0 {
            To::Server(_) => "Server",
            To::Cluster(_) => "Cluster",
        };
        f.debug_tuple("Link").field(&to).finish()
    }
}

impl Link {
    /// Connects to the server of a url; to the whole cluster if that is what it is one of, or if the url
    /// names several.
    pub(super) async fn to(
        url: &str,
        trusted: &Trusted,
        deadline: Duration,
    ) -> Result<Self, StoreError> {
        let urls = each_server(url);
        let nodes = urls.iter().map(|url| connection_info(url, deadline));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if let [node] = &nodes[..] {
            let server = to_server(node.clone(), trusted, deadline).await;
            let server = server.map_err(fault::of)?;
            if !is_of_cluster(&mut server.connection()).await? {
                return Ok(Self(To::Server(Arc::new(server))));
            }
        }
        let cluster = to_cluster(nodes, trusted, deadline).await.map_err(fault::of)?;
        Ok(Self(To::Cluster(cluster)))
    }
}

/// The url of each server, of one that names several: `redis://user:password@a:6379,b:6379/0`.
fn each_server(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{behind}")).collect()
}

/// What a url says, and how to find out that nobody is at the other end any more.
fn connection_info(url: &str, deadline: Duration) -> Result<ConnectionInfo, StoreError> {
    let info = url.into_connection_info().map_err(fault::of_url)?;
    let mut server = info.redis_settings().clone();
    // Under it the connection is made anew once it is cut, and not when it is needed next.
    if !url.contains("protocol=") {
        server = server.set_protocol(ProtocolVersion::RESP3);
    }
    Ok(info.set_redis_settings(server).set_tcp_settings(tcp_settings(deadline)))
}

#[cfg(target_os = "linux")]
fn tcp_settings(deadline: Duration) -> TcpSettings {
    TcpSettings::default().set_nodelay(true).set_user_timeout(deadline * 5)
}

#[cfg(not(target_os = "linux"))]
fn tcp_settings(_: Duration) -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

/// Whom to trust on the way, if that is encrypted.
#[derive(Default)]
pub(super) struct Trusted {
    /// As a PEM file; without, whom the system trusts.
    #[cfg(feature = "tls")]
    pub(super) authorities: Option<Vec<u8>>,
}

#[cfg(feature = "tls")]
impl Trusted {
    fn certificates(&self) -> redis::TlsCertificates {
        redis::TlsCertificates { client_tls: None, root_cert: self.authorities.clone() }
    }

    fn client(&self, node: ConnectionInfo) -> Result<Client, RedisError> {
        match is_encrypted(&node) {
            true => Client::build_with_tls(node, self.certificates()),
            false => Client::open(node),
        }
    }

    fn builder(&self, nodes: Vec<ConnectionInfo>) -> ClusterClientBuilder {
        let is_encrypted = nodes.iter().any(is_encrypted);
        let builder = ClusterClientBuilder::new(nodes);
        if is_encrypted { builder.certs(self.certificates()) } else { builder }
    }
}

#[cfg(feature = "tls")]
fn is_encrypted(node: &ConnectionInfo) -> bool {
    matches!(node.addr(), redis::ConnectionAddr::TcpTls { .. })
}

#[cfg(not(feature = "tls"))]
impl Trusted {
    #[expect(clippy::unused_self, reason = "with encryption it matters")]
    fn client(&self, node: ConnectionInfo) -> Result<Client, RedisError> {
        Client::open(node)
    }

    #[expect(clippy::unused_self, reason = "with encryption it matters")]
    fn builder(&self, nodes: Vec<ConnectionInfo>) -> ClusterClientBuilder {
        ClusterClientBuilder::new(nodes)
    }
}

async fn to_server(
    node: ConnectionInfo,
    trusted: &Trusted,
    deadline: Duration,
) -> Result<Server, RedisError> {
    let config = ConnectionManagerConfig::new()
        // Who asks is told at once that there is no connection; the next who asks tries again.
        .set_number_of_retries(0)
        .set_connection_timeout(Some(deadline / 2))
        .set_response_timeout(Some(deadline));
    Server::new(trusted.client(node)?, config).await
}

async fn to_cluster(
    nodes: Vec<ConnectionInfo>,
    trusted: &Trusted,
    deadline: Duration,
) -> Result<ClusterConnection, RedisError> {
    let cluster = trusted.builder(nodes);
    cluster
        // What was sent on a connection that broke may have been done, and is not sent again. What a
        // server says that is not the right one, we follow by ourselves.
        .retries(0)
        .connection_timeout(deadline / 2)
        .response_timeout(deadline)
        .tcp_settings(tcp_settings(deadline))
        .build()?
        .get_async_connection()
        .await
}

/// Whether a server is one of a cluster. One that may not say is taken for one that stands alone.
async fn is_of_cluster(server: &mut ConnectionManager) -> Result<bool, StoreError> {
    let said: Result<String, RedisError> =
        redis::cmd("INFO").arg("cluster").query_async(server).await;
    match said {
        Ok(said) => Ok(said.lines().any(|line| line.trim() == "cluster_enabled:1")),
        Err(error) if error.is_io_error() || error.is_timeout() => Err(fault::of(error)),
        Err(_) => Ok(false),
    }
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match &mut self.0 {
            To::Server(server) => Box::pin(async move {
                let answer = server.connection().req_packed_command(cmd).await;
                server.heard(answer)
            }),
            To::Cluster(cluster) => cluster.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match &mut self.0 {
            To::Server(server) => Box::pin(async move {
                let answer = server.connection().req_packed_commands(cmd, offset, count).await;
                server.heard(answer)
            }),
            To::Cluster(cluster) => cluster.req_packed_commands(cmd, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match &self.0 {
            To::Server(server) => server.connection().get_db(),
            To::Cluster(cluster) => cluster.get_db(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::each_server;

    #[test]
    fn a_url_may_name_several_servers() {
        assert_eq!(each_server("redis://a:1/2?x=,"), ["redis://a:1/2?x=,"]);
        assert_eq!(each_server("redis://a,b:7"), ["redis://a", "redis://b:7"]);
        let both = ["redis://u:p,@a:1/0", "redis://u:p,@b:2/0"];
        assert_eq!(each_server("redis://u:p,@a:1,b:2/0"), both);
        assert_eq!(each_server("nothing"), ["nothing"]);
    }
}
