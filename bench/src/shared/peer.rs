//! What the stores do by themselves: one bare round trip, and the script that people write.

use super::Doing;
use anyhow::Context as _;
use std::sync::{Arc, Mutex};

/// One round, for a key.
pub(crate) type Round = Arc<dyn Fn(usize) -> Doing + Send + Sync>;

/// A token bucket as people write it: two fields, floats, and the server's clock.
const BUCKET: &str = r"
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (state[1] or burst) + (now - (state[2] or now)) * rate)
local granted = tokens >= cost
if granted then tokens = tokens - cost end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
return granted and 1 or 0
";

pub(crate) struct Redis {
    connection: redis::aio::MultiplexedConnection,
}

impl Redis {
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        Ok(Self { connection })
    }

    /// One connection for all tasks: what waits goes out together.
    pub(crate) fn incr(&self) -> Round {
        let connection = self.connection.clone();
        Arc::new(move |key| {
            let mut connection = connection.clone();
            Box::pin(async move {
                let mut incr = redis::cmd("INCR");
                incr.arg(format!("bench-incr-{key}"));
                let _: u64 = incr.query_async(&mut connection).await?;
                Ok(())
            })
        })
    }

    /// A connection for each task: a round trip for each.
    pub(crate) async fn incr_apart(&self, url: &str) -> anyhow::Result<Round> {
        let client = redis::Client::open(url)?;
        let mut free = Vec::new();
        for _ in 0..super::TASKS {
            free.push(client.get_multiplexed_async_connection().await?);
        }
        let free = Arc::new(Mutex::new(free));
        Ok(Arc::new(move |key| {
            let free = free.clone();
            Box::pin(async move {
                let taken = free.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?.pop();
                let mut connection = taken.context("there is one for each task")?;
                let mut incr = redis::cmd("INCR");
                incr.arg(format!("bench-incr-{key}"));
                let _: u64 = incr.query_async(&mut connection).await?;
                free.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?.push(connection);
                Ok(())
            })
        }))
    }

    pub(crate) fn script(&self) -> Round {
        let (connection, script) = (self.connection.clone(), Arc::new(redis::Script::new(BUCKET)));
        Arc::new(move |key| {
            let (mut connection, script) = (connection.clone(), script.clone());
            Box::pin(async move {
                let mut call = script.key(format!("bench-bucket-{key}"));
                call.arg(1_000_000_000).arg(1_000_000_000).arg(1);
                let granted: u64 = call.invoke_async(&mut connection).await?;
                anyhow::ensure!(granted == 1, "the script refused");
                Ok(())
            })
        })
    }
}

pub(crate) struct Postgres {
    client: Arc<tokio_postgres::Client>,
}

impl Postgres {
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(Self { client: Arc::new(client) })
    }

    /// One connection for all tasks: what waits goes out together.
    pub(crate) fn select(&self) -> Round {
        let client = self.client.clone();
        Arc::new(move |_| {
            let client = client.clone();
            Box::pin(async move {
                client.simple_query("SELECT 1").await?;
                Ok(())
            })
        })
    }
}

pub(crate) struct Nats {
    bucket: async_nats::jetstream::kv::Store,
}

impl Nats {
    pub(crate) async fn connect(url: &str, name: &str) -> anyhow::Result<Self> {
        let context = async_nats::jetstream::new(async_nats::connect(url).await?);
        let bucket = format!("{name}-peer");
        // As a bucket is made by hand: servers before 2.10 answer less than the driver wants to know.
        let subjects = vec![format!("$KV.{bucket}.>")];
        let config = async_nats::jetstream::stream::Config {
            name: format!("KV_{bucket}"),
            subjects,
            max_messages_per_subject: 1,
            allow_direct: true,
            allow_rollup: true,
            discard: async_nats::jetstream::stream::DiscardPolicy::New,
            ..Default::default()
        };
        context.create_stream(config).await?;
        let bucket = context.get_key_value(&bucket).await?;
        bucket.put("key", "value".into()).await?;
        Ok(Self { bucket })
    }

    pub(crate) fn get(&self) -> Round {
        let bucket = self.bucket.clone();
        Arc::new(move |_| {
            let bucket = bucket.clone();
            Box::pin(async move {
                bucket.get("key").await?.context("it is there")?;
                Ok(())
            })
        })
    }
}
