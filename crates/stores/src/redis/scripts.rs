//! The scripts that Redis runs.

use redis::Script;

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
            consume: Script::new(include_str!("consume.lua")),
        }
    }
}
