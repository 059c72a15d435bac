//! Limits and queues as a file wants them.

use super::ConfigError;
use super::file::FileWire;
use std::collections::BTreeMap;
use std::path::Path;
use tollgate::lanes::QueueSpec;
use tollgate::{Error, Limit, Tollgate};

/// What a file says of limits and queues. What it does not name is left as it is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(crate) limits: BTreeMap<String, DesiredLimit>,
    pub(crate) queues: BTreeMap<String, QueueSpec>,
}

/// A limit, and partitions with rules of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DesiredLimit {
    pub(crate) limit: Limit,
    pub(crate) partitions: BTreeMap<String, Limit>,
}

impl Desired {
    /// What a file says, checked.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        FileWire::read(path)?.desired()
    }

    pub(crate) fn has_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Defines all of it. What is so already stays untouched.
    pub(crate) async fn put_in_force(&self, gate: &Tollgate, who: &str) -> Result<(), Error> {
        for (name, desired) in &self.limits {
            gate.limit_as(who, name, desired.limit.clone()).await?;
            for (partition, own) in &desired.partitions {
                gate.override_partition_as(who, name, partition, Some(own.clone())).await?;
            }
        }
        for (name, spec) in &self.queues {
            gate.queue_as(who, name, spec.clone()).await?;
        }
        Ok(())
    }
}
