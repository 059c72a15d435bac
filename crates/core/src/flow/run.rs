//! A run of a step machine between its steps: what it waits for, what has arrived for it, and what follows.
//!
//! While a step is to be made there is a call for it, which carries the state; the run itself is then
//! [`Stands::Going`] and need not be looked at. It is looked at when it comes to wait, when a signal
//! arrives, when a child ends, and when the run does.

use crate::time::{Span, Timestamp};
use crate::tolls::Tolls;
use crate::turn::Priority;

/// Most signals that wait for a run.
pub const INBOX_MAX: usize = 1_000;
/// Most bytes of them: they are kept in memory, and written whenever one arrives.
pub const INBOX_BYTES_MAX: usize = 1 << 20;
/// How many keys of signals a run remembers.
pub const KEYS_MAX: usize = 1_000;
/// Most children that one step begins: they begin in one act.
pub const CHILDREN_MAX: usize = 10_000;
/// Most names that a run waits for at a time.
pub const NAMES_MAX: usize = 100;

/// What follows: a step, with what it is given, and what it owes when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which step.
    pub step: Box<str>,
    /// The state that it is given.
    pub state: Box<[u8]>,
    /// What it owes; kept while it is tried again, and for no other step.
    pub tolls: Tolls,
    /// Who goes first at the meters.
    pub priority: Priority,
    /// How long it waits before it may start.
    pub delay: Span,
}

/// Something that a run is told from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// What it is called.
    pub name: Box<str>,
    /// What it says.
    pub payload: Box<[u8]>,
    /// A second one of this key is this one.
    pub key: Option<Box<str>>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// There is a call for its next step.
    Going,
    /// A signal of one of these names lets it go on.
    Awaiting {
        /// Which.
        names: Vec<Box<str>>,
        /// What follows.
        then: Plan,
    },
    /// The time of its wait is over, and there is a call for what follows. Who starts that call a second
    /// time sees that it was the first.
    TimedOut,
    /// It goes on when all its children have ended: there is a call then, and it may stand so until it waits
    /// again.
    Joining {
        /// How many there are.
        children: u32,
        /// What follows.
        then: Plan,
    },
}

/// The run that waits for this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Which.
    pub run: Box<str>,
    /// At which of its waits.
    pub turn: u64,
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Of which machine.
    pub machine: Box<str>,
    /// Of which version of it the present step is.
    pub version: u32,
    /// The key that no other run of the machine has meanwhile.
    pub correlation: Option<Box<str>>,
    /// When it began, on the wall clock.
    pub began: Timestamp,
    /// How often it came to wait. Calls and children of a wait that is over have a lower one.
    pub turn: u64,
    /// Where it stands.
    pub stands: Stands,
    /// Signals that nobody waited for yet, in order.
    pub inbox: Vec<Signal>,
    /// The keys of the last signals, in order.
    pub keys: Vec<Box<str>>,
    /// Who waits for it.
    pub parent: Option<Parent>,
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It had arrived before: nothing is changed.
    Known,
    /// It waits until the run asks for it.
    Kept,
    /// The run goes on, with all signals that it waited for.
    Wakes(Plan, Vec<Signal>),
}

/// Why a run does not take a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// It has too many already.
    #[error(
        "the run has {INBOX_MAX} signals, or {INBOX_BYTES_MAX} bytes of them, that it has not asked for yet: signal it later"
    )]
    InboxFull,
}

impl Run {
    /// Tells it something.
    pub fn signal(&mut self, signal: Signal) -> Result<Heard, SignalError> {
        if signal.key.as_ref().is_some_and(|key| self.keys.contains(key)) {
            return Ok(Heard::Known);
        }
        let bytes = |signal: &Signal| signal.name.len() + signal.payload.len();
        let kept: usize = self.inbox.iter().map(bytes).sum();
        if self.inbox.len() >= INBOX_MAX || kept + bytes(&signal) > INBOX_BYTES_MAX {
            return Err(SignalError::InboxFull);
        }
        if let Some(key) = &signal.key {
            let forgotten = (self.keys.len() + 1).saturating_sub(KEYS_MAX);
            self.keys.drain(..forgotten);
            self.keys.push(key.clone());
        }
        self.inbox.push(signal);
        Ok(self.wake().map_or(Heard::Kept, |(then, signals)| Heard::Wakes(then, signals)))
    }

    /// Waits for a signal of one of these names; goes on at once with those that have arrived already.
    pub fn wait(&mut self, names: Vec<Box<str>>, then: Plan) -> Option<(Plan, Vec<Signal>)> {
        self.turn += 1;
        self.stands = Stands::Awaiting { names, then };
        self.wake()
    }

    /// Goes on with the signals that it waits for, if there are any.
    fn wake(&mut self) -> Option<(Plan, Vec<Signal>)> {
        let Stands::Awaiting { names, then } = &self.stands else { return None };
        let is_awaited = |signal: &Signal| names.contains(&signal.name);
        if !self.inbox.iter().any(is_awaited) {
            return None;
        }
        let (signals, left) = std::mem::take(&mut self.inbox).into_iter().partition(is_awaited);
        let then = then.clone();
        (self.inbox, self.stands) = (left, Stands::Going);
        Some((then, signals))
    }

    /// The time of a wait is over: it goes on without a signal, if it did so before or nothing else let it go
    /// on.
    pub fn time_out(&mut self, turn: u64) -> bool {
        if self.turn != turn || !matches!(self.stands, Stands::Awaiting { .. } | Stands::TimedOut) {
            return false;
        }
        self.stands = Stands::TimedOut;
        true
    }

    /// Waits for so many children.
    pub fn join(&mut self, children: u32, then: Plan) {
        self.turn += 1;
        self.stands = Stands::Joining { children, then };
    }

    /// What follows when the children of a wait have ended, and how many there are; `None` if it does not
    /// wait for them any more.
    pub fn joins(&self, turn: u64) -> Option<(u32, &Plan)> {
        match &self.stands {
            Stands::Joining { children, then } if self.turn == turn => Some((*children, then)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run {
            machine: "m".into(),
            version: 1,
            correlation: None,
            began: Timestamp::default(),
            turn: 0,
            stands: Stands::Going,
            inbox: Vec::new(),
            keys: Vec::new(),
            parent: None,
        }
    }

    fn plan(step: &str) -> Plan {
        let (step, state, tolls) = (step.into(), [].into(), Vec::new());
        Plan { step, state, tolls: tolls.into(), priority: Priority::default(), delay: Span::ZERO }
    }

    fn signal(name: &str, key: Option<&str>) -> Signal {
        Signal { name: name.into(), payload: [].into(), key: key.map(Into::into) }
    }

    #[test]
    fn what_arrived_before_it_is_waited_for_is_not_waited_for() {
        let mut run = run();
        assert_eq!(run.signal(signal("paid", None)), Ok(Heard::Kept));
        assert_eq!(run.signal(signal("other", None)), Ok(Heard::Kept));
        let woken = run.wait(vec!["paid".into(), "refused".into()], plan("ship"));
        assert_eq!(woken, Some((plan("ship"), vec![signal("paid", None)])));
        assert_eq!((run.stands, run.inbox), (Stands::Going, vec![signal("other", None)]));
    }

    #[test]
    fn who_waits_goes_on_with_the_first_that_it_waits_for() {
        let mut run = run();
        assert_eq!(run.wait(vec!["paid".into()], plan("ship")), None);
        assert_eq!(run.signal(signal("other", None)), Ok(Heard::Kept));
        let wakes = Heard::Wakes(plan("ship"), vec![signal("paid", None)]);
        assert_eq!(run.signal(signal("paid", None)), Ok(wakes));
        assert!(!run.time_out(1), "it went on");
    }

    #[test]
    fn a_signal_of_a_key_is_heard_once_also_when_it_was_used() {
        let mut run = run();
        assert_eq!(run.wait(vec!["paid".into()], plan("ship")), None);
        assert!(matches!(run.signal(signal("paid", Some("1"))), Ok(Heard::Wakes(..))));
        assert_eq!(run.signal(signal("paid", Some("1"))), Ok(Heard::Known));
        assert_eq!(run.signal(signal("paid", Some("2"))), Ok(Heard::Kept));
        assert_eq!(run.inbox.len(), 1);
    }

    #[test]
    fn the_time_of_another_wait_is_not_the_time_of_this_one() {
        let mut run = run();
        assert_eq!(run.wait(vec!["a".into()], plan("a")), None);
        assert!(matches!(run.signal(signal("a", None)), Ok(Heard::Wakes(..))));
        assert_eq!(run.wait(vec!["b".into()], plan("b")), None);
        assert!(!run.time_out(1));
        assert!(run.time_out(2));
        assert!(run.time_out(2), "tried again");
        assert_eq!(run.signal(signal("b", None)), Ok(Heard::Kept), "too late for this wait");
        assert_eq!(run.wait(vec!["c".into()], plan("c")), None);
        assert!(!run.time_out(2));
    }

    #[test]
    fn children_of_another_wait_let_nobody_go_on() {
        let mut run = run();
        run.join(2, plan("a"));
        assert_eq!(run.joins(1), Some((2, &plan("a"))));
        run.join(3, plan("b"));
        assert_eq!(run.joins(1), None);
        assert_eq!(run.joins(2), Some((3, &plan("b"))));
    }

    #[test]
    fn an_inbox_has_a_bound_and_so_have_the_keys() {
        let mut run = run();
        for at in 0..INBOX_MAX {
            assert_eq!(run.signal(signal("x", Some(&at.to_string()))), Ok(Heard::Kept));
        }
        assert_eq!(run.signal(signal("x", Some("new"))), Err(SignalError::InboxFull));
        assert_eq!(run.signal(signal("x", Some("7"))), Ok(Heard::Known));
        assert!(run.wait(vec!["x".into()], plan("a")).is_some());
        let large = Signal { payload: vec![0; INBOX_BYTES_MAX].into(), ..signal("y", None) };
        assert_eq!(run.signal(large), Err(SignalError::InboxFull));
        assert_eq!(run.signal(signal("x", Some("new"))), Ok(Heard::Kept));
        assert_eq!((run.keys.len(), &*run.keys[0]), (KEYS_MAX, "1"));
    }
}
