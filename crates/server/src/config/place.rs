//! Where a server keeps what it is told.

use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where limits are, and all else that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this process: limits alone.
    Memory,
    /// In a folder of this process.
    Folder(PathBuf),
    /// In a store that other processes share, under a prefix if one is said: in Redis and NATS limits alone.
    Shared(StoreUrl, Option<String>),
}

/// The url of a store. Shown without what lets one in.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// All of it, for whoever connects.
    pub(crate) fn revealed(&self) -> &str {
        &self.0
    }

    /// Whether it is of a database, which keeps calls, too.
    pub(crate) fn keeps_calls(&self) -> bool {
        self.0.starts_with("postgres://") || self.0.starts_with("postgresql://")
    }
}

impl FromStr for StoreUrl {
    type Err = std::convert::Infallible;

    /// Any text: what is wrong with it is for its store to say.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str("…") };
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (named, asked) = rest.split_at(end);
        // A password may hold any of these marks: where it could be cut in two, nothing is shown.
        let host = match named.rsplit_once('@') {
            _ if asked.contains('@') => "…",
            Some((_, host)) => host,
            None => named,
        };
        write!(f, "{scheme}://{host}")
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_shown_without_what_lets_one_in() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/2", "redis://127.0.0.1:6379/2"),
            ("redis://:hush@cache:6379", "redis://cache:6379"),
            ("redis://me:h@u/s,h@cache:6379", "redis://cache:6379"),
            ("redis://:hu?sh@cache", "redis://…"),
            ("redis://:hu#sh@cache", "redis://…"),
            ("postgres://me:hush@db/app?options=hush", "postgres://db/app"),
            ("postgres://db/app?user=me&password=h@sh", "postgres://…"),
            ("nats://hush@one,nats://hush@two", "nats://two"),
            ("hush", "…"),
        ] {
            let url: StoreUrl = url.parse().unwrap();
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }
}
