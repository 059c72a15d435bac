//! What an operator does to a limit, a queue, a lane or a meter beside defining it. What changes by it has
//! a line in the audit log, written first.

use super::audit::Altered;
use super::door::check_queue;
use super::{Engine, Parts};
use crate::error::Error;
use crate::limits::UNSAID;
use std::sync::Arc;
use tollgate_core::Span;
use tollgate_core::contract::{Lanes, MeterName, REASON_CHARS_MAX};
use tollgate_core::lanes::Scope;
use tollgate_core::meter::CLOSED_MAX;

/// What an operator does beside defining.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Holds back a limit, a queue or a lane: nothing of it starts.
    Pause(Scope),
    /// Lets a limit, a queue or a lane go on; a lane that a dead call holds, too.
    Resume(Scope),
    /// Lets nothing pass a meter for so long, at most a day.
    Close {
        /// Which meter.
        meter: MeterName,
        /// How long.
        span: Span,
        /// Why: the first 256 characters are kept.
        reason: String,
    },
    /// Ends a closure before its time.
    Reopen(MeterName),
    /// Forgets what was spent at a meter.
    Reset(MeterName),
}

impl Operation {
    /// The name of the limit or queue.
    pub fn name(&self) -> &str {
        match self {
            Self::Pause(scope) | Self::Resume(scope) => match scope {
                Scope::Limit(limit) => limit,
                Scope::Queue(queue) | Scope::Lane(queue, _) => queue,
            },
            Self::Close { meter, .. } | Self::Reopen(meter) | Self::Reset(meter) => &meter.0,
        }
    }

    /// What is done, in a word.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Close { .. } => "close",
            Self::Reopen(_) => "reopen",
            Self::Reset(_) => "reset",
        }
    }

    /// As it is kept: no longer than may be.
    fn cut(self) -> Self {
        match self {
            Self::Close { meter, span, reason } => Self::Close {
                meter,
                span: span.min(CLOSED_MAX),
                reason: reason.chars().take(REASON_CHARS_MAX).collect(),
            },
            other => other,
        }
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// Does what an operator asks for, and writes into the audit log who did unless it changes nothing. Once
    /// begun it is seen through, also if nobody waits for it any more.
    pub async fn operate(&self, who: &str, operation: Operation) -> Result<(), Error> {
        self.parts.operate(who, operation).await
    }

    /// Holds back a queue, a lane or a limit: nothing of it starts.
    pub async fn pause(&self, scope: Scope) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Pause(scope)).await
    }

    /// Lets a queue, a lane or a limit go on; a lane that a dead call holds, too.
    pub async fn resume(&self, scope: Scope) -> Result<(), Error> {
        self.operate(UNSAID, Operation::Resume(scope)).await
    }
}

impl<S: Lanes + 'static> Parts<S> {
    async fn operate(self: &Arc<Self>, who: &str, operation: Operation) -> Result<(), Error> {
        if let Operation::Pause(Scope::Queue(queue) | Scope::Lane(queue, _)) = &operation {
            check_queue(queue)?;
        }
        let (parts, who, operation) = (self.clone(), who.to_owned(), operation.cut());
        self.seen_through(async move {
            let _alone = parts.known.changing.lock().await;
            if parts.is_changed_by(&operation).await? {
                parts.write_down(&who, Altered::Operated(operation.clone())).await?;
                let (name, action) = (operation.name(), operation.action());
                tracing::info!(name, action, who, "an operator acted");
            }
            match operation {
                Operation::Pause(scope) => Ok(parts.store.pause(scope).await?),
                Operation::Resume(scope) => Ok(parts.store.resume(scope).await?),
                Operation::Close { meter, span, reason } => {
                    Ok(parts.store.close(meter, span, reason).await??)
                }
                Operation::Reopen(meter) => parts.reopen(meter).await,
                Operation::Reset(meter) => parts.reset(meter).await,
            }
        })
        .await
    }

    /// Whether there is anything to tell. Fails where there is no such limit that a meter could be of.
    async fn is_changed_by(&self, operation: &Operation) -> Result<bool, Error> {
        match operation {
            Operation::Pause(scope) => Ok(self.is_paused(scope).await? == Some(false)),
            Operation::Resume(scope) => {
                Ok(self.is_paused(scope).await? == Some(true) || self.is_held(scope).await?)
            }
            Operation::Reopen(meter) => Ok(self.known_meter(meter).await?.closed.is_some()),
            Operation::Close { meter, span, .. } => {
                let (kept, now) = (self.known_meter(meter).await?, self.store.now().await?.at);
                Ok(kept.closed.is_none_or(|(until, _)| until < now.plus(*span)))
            }
            Operation::Reset(meter) => self.known_meter(meter).await.map(|_| true),
        }
    }

    /// Whether an operator holds something back; `None` if there is no such queue or limit.
    async fn is_paused(&self, scope: &Scope) -> Result<Option<bool>, Error> {
        match scope {
            Scope::Limit(limit) => {
                Ok(self.meter_of(&(limit.clone(), None)).await?.map(|it| it.is_paused))
            }
            Scope::Queue(queue) => Ok(self.queue_named(queue).await?.map(|it| it.is_paused)),
            Scope::Lane(queue, lane) => {
                let found = self.store.lane(queue.clone(), lane.clone()).await?;
                if let Some(lane) = found {
                    return Ok(Some(lane.is_paused));
                }
                // Of a lane that is held back before anything comes nothing is known yet.
                Ok(self.queue_named(queue).await?.map(|_| false))
            }
        }
    }

    /// Whether a dead call holds a lane.
    async fn is_held(&self, scope: &Scope) -> Result<bool, Error> {
        let Scope::Lane(queue, lane) = scope else { return Ok(false) };
        let found = self.store.lane(queue.clone(), lane.clone()).await?;
        Ok(found.is_some_and(|lane| lane.is_held))
    }
}
