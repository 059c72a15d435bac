//! The scripts that Redis runs.

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, ToRedisArgs, Value};

#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) read: Script,
    pub(super) write: Script,
    pub(super) names: Script,
    pub(super) consume: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            read: Script::new(include_str!("read.lua")),
            write: Script::new(include_str!("write.lua")),
            names: Script::new(include_str!("names.lua")),
            consume: Script::new(concat!(
                include_str!("consume.lua"),
                "\n",
                include_str!("consume_any.lua")
            )),
        }
    }
}

/// A script, and the name that Redis knows it by.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    hash: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        let hash = redis::Script::new(source).get_hash().to_owned();
        Self { source, hash }
    }

    pub(super) fn prepare_invoke(&self) -> Invocation<'_> {
        Invocation { script: self, keys: Vec::new(), args: Vec::new() }
    }
}

/// A script with what it is handed.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    script: &'a Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl Invocation<'_> {
    pub(super) fn key(&mut self, key: impl ToRedisArgs) -> &mut Self {
        key.write_redis_args(&mut self.keys);
        self
    }

    pub(super) fn arg(&mut self, arg: impl ToRedisArgs) -> &mut Self {
        arg.write_redis_args(&mut self.args);
        self
    }

    /// Runs it by its name, and with its text if the server does not know it. The client's own way
    /// would hand the text to all servers of a cluster first, of which one may be away.
    pub(super) async fn invoke(&self, connection: &mut impl ConnectionLike) -> RedisResult<Value> {
        let Script { source, hash } = self.script;
        let answer = self.command("EVALSHA", hash).query_async(connection).await;
        let is_unknown = |error: &redis::RedisError| {
            error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
        };
        match answer {
            Err(error) if is_unknown(&error) => {
                self.command("EVAL", source).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}
