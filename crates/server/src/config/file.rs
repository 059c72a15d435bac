//! The configuration file: TOML, read strictly.

use super::desired::{Desired, DesiredLimit};
use super::{ConfigError, PushWire, ServerWire};
use crate::access::{Namespace, Role, Roles, TokenSpec};
use crate::http::definitions;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use toml::{Spanned, Table, Value};

/// Longest file: more is a mistake.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Where a limit has its partitions with rules of their own.
const PARTITIONS: &str = "partitions";

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct FileWire {
    pub(super) server: ServerWire,
    pub(super) push: PushWire,
    sections: Sections,
    /// Its name and text, to say where something is.
    name: String,
    text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    #[serde(default)]
    server: ServerWire,
    #[serde(default)]
    push: PushWire,
    #[serde(default)]
    tokens: Vec<Spanned<TokenWire>>,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<Table>>,
    #[serde(default)]
    queues: BTreeMap<String, Spanned<Table>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenWire {
    name: String,
    hash: String,
    roles: Vec<String>,
    namespace: Option<String>,
}

impl FileWire {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| ConfigError::new(&name, error);
        if fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
            return Err(ConfigError::new(&name, "it has over 16 MiB: is it the right file?"));
        }
        Self::parse(&name, &fs::read_to_string(path).map_err(failed)?)
    }

    pub(super) fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let sections: Result<Sections, toml::de::Error> = toml::from_str(text);
        let mut sections = sections.map_err(|error| {
            let place =
                error.span().map_or_else(|| name.to_owned(), |it| place(name, text, it.start));
            ConfigError::new(place, error.message())
        })?;
        let server = std::mem::take(&mut sections.server);
        let push = std::mem::take(&mut sections.push);
        Ok(Self { server, push, sections, name: name.to_owned(), text: text.to_owned() })
    }

    pub(super) fn tokens(&self) -> Result<Vec<TokenSpec>, ConfigError> {
        let read = |token: &Spanned<TokenWire>| {
            token.get_ref().spec().map_err(|what| self.wrong(token, what))
        };
        self.sections.tokens.iter().map(read).collect()
    }

    /// The limits and queues, checked.
    pub(super) fn desired(&self) -> Result<Desired, ConfigError> {
        let mut desired = Desired::default();
        for (name, table) in &self.sections.limits {
            let limit = limit(table.get_ref());
            let wrong = |what| self.wrong(table, format!("limits.{name}: {what}"));
            desired.limits.insert(name.clone(), limit.map_err(wrong)?);
        }
        for (name, table) in &self.sections.queues {
            let queue = json(table.get_ref()).and_then(definitions::queue);
            let wrong = |what| self.wrong(table, format!("queues.{name}: {what}"));
            desired.queues.insert(name.clone(), queue.map_err(wrong)?);
        }
        Ok(desired)
    }

    fn wrong<T>(&self, at: &Spanned<T>, what: impl Display) -> ConfigError {
        ConfigError::new(place(&self.name, &self.text, at.span().start), what)
    }
}

impl TokenWire {
    fn spec(&self) -> Result<TokenSpec, String> {
        let roles: Result<Vec<Role>, _> = self.roles.iter().map(|role| role.parse()).collect();
        let namespace = self.namespace.as_deref().map(Namespace::new).transpose();
        let told = |error: &dyn Display| format!("token {:?}: {error}", self.name);
        Ok(TokenSpec {
            name: self.name.clone(),
            hash: self.hash.parse().map_err(|error| told(&error))?,
            roles: Roles::of(roles.map_err(|error| told(&error))?),
            namespace: namespace.map_err(|error| told(&error))?,
        })
    }
}

fn limit(table: &Table) -> Result<DesiredLimit, String> {
    let mut table = table.clone();
    let partitions = match table.remove(PARTITIONS) {
        None => Table::new(),
        Some(Value::Table(partitions)) => partitions,
        Some(_) => return Err("`partitions` is a table of limits".to_owned()),
    };
    let own = partitions.into_iter().map(|(partition, own)| {
        let own = json(&own).and_then(definitions::limit);
        own.map(|own| (partition.clone(), own)).map_err(|what| format!("{partition}: {what}"))
    });
    let partitions = own.collect::<Result<_, _>>()?;
    Ok(DesiredLimit { limit: json(&table).and_then(definitions::limit)?, partitions })
}

/// As the API has it: there, too, whole numbers are not negative.
fn json(value: &impl serde::Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// The line of a byte, as editors count.
fn place(name: &str, text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    format!("{name}:{}", before.matches('\n').count() + 1)
}
