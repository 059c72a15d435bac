//! The scripts that Redis runs.

use redis::{Arg, Cmd};

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

    /// The name that Redis knows it by.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// A call of it by its name, with its text in place of that: for a server that does not know it.
    pub(super) fn in_full(&self, call: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(self.source);
        for arg in call.args_iter().skip(2) {
            if let Arg::Simple(bytes) = arg {
                full.arg(bytes);
            }
        }
        full
    }
}
