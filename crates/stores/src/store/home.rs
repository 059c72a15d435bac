//! What a store asks of its home.

use super::TimeSource;
use super::command::Command;
use super::condition::Condition;
use super::elsewhere::Elsewhere;
use super::stream::Stream;
use super::wakes::Wakes;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tollgate_core::contract::{Answer, HistoryPage, HistoryQuery};
use tollgate_core::lanes::{CallId, Event, Payload};
use tollgate_core::{Now, Span};

/// Something that is being done.
pub(crate) type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a store's commands are done and what they did lasts. Dropped, it finishes what was asked for.
pub(crate) trait Home: Send + Sync {
    /// Who takes commands.
    fn commands(&self) -> Arc<dyn Commands>;

    /// The present, as well as it is known without asking anybody.
    fn now(&self) -> Now;

    /// Tells the present as [`Self::now`] does, and holds on to nothing else.
    fn time(&self) -> TimeSource;

    /// Who hears of what happens.
    fn listeners(&self) -> &Listeners;

    /// Bodies by where they are: the first of those that are wanted, at least one and as many as have
    /// so many bytes.
    fn read<'a>(
        &'a self,
        wanted: &'a [(CallId, u64)],
        bytes_max: usize,
    ) -> Doing<'a, Vec<Answer<Body>>>;

    /// What came of calls, if that is kept.
    fn past(&self) -> Option<&dyn Past>;

    /// Whether what a command did may be undone, and is not done then.
    fn undoes(&self) -> bool;

    /// For how long the oldest transaction of others has been open, where others have any.
    fn oldest_transaction(&self) -> Option<Span>;
}

/// A body that was looked for.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    There(Payload),
    /// Not there any more.
    Gone,
    /// It should be there, and what is there is something else: why it will never be read.
    Damaged(String),
}

impl Body {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::There(payload) => payload.bytes(),
            Self::Gone | Self::Damaged(_) => 0,
        }
    }
}

/// Takes commands, to be done in this order.
pub(crate) trait Commands: Send + Sync {
    /// Takes one. If nobody is left to do it, it is dropped.
    fn take(&self, command: Box<dyn Command>);

    /// Wakes whoever does them: some were taken without.
    fn announce(&self);
}

/// What came of attempts, and how calls ended.
pub(crate) trait Past: Send + Sync {
    /// Waits until all can be read that it was told before.
    fn flushed(&self) -> Doing<'_, ()>;

    /// How many events were dropped since the store was opened.
    fn dropped(&self) -> u64;

    /// The events of a call, oldest first.
    fn find(&self, call: CallId) -> Doing<'_, Answer<Vec<Event>>>;

    /// Some of the events that are asked for, newest first.
    fn page<'a>(&'a self, query: &'a HistoryQuery) -> Doing<'a, Answer<HistoryPage>>;
}

/// Who hears of what happens.
#[derive(Clone)]
pub(crate) struct Listeners {
    /// For those who only look.
    pub(crate) condition: Arc<Condition>,
    pub(crate) woken: Arc<Wakes>,
    pub(crate) stream: Arc<Stream>,
    /// What other nodes changed.
    pub(crate) elsewhere: Arc<Elsewhere>,
}

impl Listeners {
    /// Nothing will happen any more.
    pub(crate) fn end(&self) {
        self.condition.end();
        self.woken.end();
        self.stream.end();
    }
}
