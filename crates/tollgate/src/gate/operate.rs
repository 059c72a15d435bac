//! What an operator does beside defining: told in the audit log, where there is one.

use super::{Backend, Tollgate, on_store};
use tollgate_core::contract::MeterName;
use tollgate_core::lanes::Scope;
use tollgate_core::{LaneName, LimitName, Partition, QueueName};
use tollgate_engine::{Error, Operation, UNSAID};

impl Tollgate {
    /// Does what an operator asks for, and writes into the audit log who did, unless it changes nothing.
    /// In memory, and in a store that others share, there is no such log, and nothing is held back.
    pub async fn operate(&self, who: &str, operation: Operation) -> Result<(), Error> {
        if let Backend::Kept(engine) = &self.backend {
            return engine.operate(who, operation).await;
        }
        match operation {
            Operation::Close { meter: (limit, partition), span, reason } => {
                self.close(&limit, partition.as_deref(), span, &reason).await
            }
            Operation::Reopen((limit, partition)) => {
                self.reopen(&limit, partition.as_deref()).await
            }
            Operation::Reset((limit, partition)) => on_store! {
                &self.backend,
                limiter => limiter.reset(&limit, partition.as_deref()),
                engine => engine.reset(&limit, partition.as_deref()).await,
            },
            // It says why not.
            _ => self.engine().map(|_| ()),
        }
    }

    /// Holds back a queue: none of its calls start.
    pub async fn pause_queue(&self, queue: &str) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Pause(Scope::Queue(QueueName::new(queue)?))).await
    }

    /// Lets a queue go on.
    pub async fn resume_queue(&self, queue: &str) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Resume(Scope::Queue(QueueName::new(queue)?))).await
    }

    /// Holds back a lane.
    pub async fn pause_lane(&self, queue: &str, lane: &str) -> Result<(), Error> {
        let scope = Scope::Lane(QueueName::new(queue)?, LaneName::new(lane)?);
        self.operate(UNSAID, Operation::Pause(scope)).await
    }

    /// Lets a lane go on, also one that a dead call holds.
    pub async fn resume_lane(&self, queue: &str, lane: &str) -> Result<(), Error> {
        let scope = Scope::Lane(QueueName::new(queue)?, LaneName::new(lane)?);
        self.operate(UNSAID, Operation::Resume(scope)).await
    }

    /// Holds back all calls that pay at a limit.
    pub async fn pause_limit(&self, limit: &str) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Pause(Scope::Limit(LimitName::new(limit)?))).await
    }

    /// Lets calls go on that pay at a limit.
    pub async fn resume_limit(&self, limit: &str) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Resume(Scope::Limit(LimitName::new(limit)?))).await
    }

    /// Forgets what was spent at a meter: an operator's act.
    pub async fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Reset(meter(limit, partition)?)).await
    }
}

fn meter(limit: &str, partition: Option<&str>) -> Result<MeterName, Error> {
    Ok((LimitName::new(limit)?, partition.map(Partition::new).transpose()?))
}
