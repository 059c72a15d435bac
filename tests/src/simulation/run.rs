//! One world that runs: a scheduler, its clocks, and what is durable of all that happened.

use super::catalog::{Catalog, Size, beginning};
use super::oracle::Oracle;
use super::random::Random;
use super::record::{Entry, Event, Expected};
use super::workers::{Errand, Work, Workers};
use tollgate_core::lanes::{
    Act, ActError, Claim, Effect, Lease, QueueSpec, Scheduler, Scope, Started,
};
use tollgate_core::{Definition, LimitName, Now, Partition, QueueName, Span, Timestamp};

/// What a promise that was broken looks like.
pub(super) type Checked<T = ()> = Result<T, String>;

/// Most claims at one instant until nothing more starts: every world is far smaller.
const ROUNDS_MAX: usize = 200;
/// More than ever start at once.
pub(super) const HANDS: usize = 10_000;
/// One world in so many is crowded.
const CROWD_EVERY: u64 = 500;

/// A world and its past.
pub(super) struct Run {
    pub(super) random: Random,
    pub(super) catalog: Catalog,
    pub(super) size: Size,
    pub(super) scheduler: Scheduler,
    pub(super) now: Now,
    /// The wall clock once stood so far.
    pub(super) latest_wall: Timestamp,
    pub(super) workers: Workers,
    pub(super) oracle: Oracle,
    /// Everything that was done and answered, as far as it was not lost.
    pub(super) entries: Vec<Entry>,
    effects: Vec<Effect>,
    /// How much of both would survive a restart.
    durable: (usize, usize),
}

/// A claim as a worker makes it.
pub(super) struct Asking {
    pub(super) queue: QueueName,
    pub(super) most: usize,
    pub(super) lease: Option<Span>,
    pub(super) asks_for: Span,
}

impl Run {
    pub(super) fn new(seed: u64) -> Checked<Self> {
        let mut random = Random::new(seed);
        let size = size(seed);
        let catalog = Catalog::new(&mut random, size);
        let now = Now::both(beginning(&mut random));
        let mut run = Self {
            random,
            catalog,
            size,
            scheduler: Scheduler::new(),
            now,
            latest_wall: now.wall,
            workers: Workers::default(),
            oracle: Oracle::default(),
            entries: vec![],
            effects: vec![],
            durable: (0, 0),
        };
        for name in run.catalog.queues.clone() {
            let spec = run.catalog.spec(&mut run.random);
            run.define_queue(name, spec)?;
        }
        for (name, kind) in run.catalog.limits.clone() {
            let definition = kind.definition(&mut run.random);
            run.define(&name, Some(definition))?;
        }
        if size != Size::Small {
            run.fill()?;
        }
        run.sync();
        Ok(run)
    }

    /// A call in every lane.
    fn fill(&mut self) -> Checked {
        let lanes = 0..self.catalog.lanes.len();
        let enqueue = lanes.map(|lane| self.catalog.call_of(lane, &mut self.random, self.now));
        let mut enqueue: Vec<_> = enqueue.collect();
        for call in &mut enqueue {
            (call.dedupe, call.expires) = (None, None);
            call.tolls = std::mem::take(&mut call.tolls).into_iter().take(1).collect();
            call.tolls.iter_mut().for_each(|toll| toll.weight = 1);
        }
        let refused = self.act(Act { enqueue, ..Act::default() })?;
        refused.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// Writes down what was just done, and has it judged.
    fn note(&mut self, event: Event) -> Checked {
        let effects = self.scheduler.take_effects();
        let ended = effects.iter().filter_map(|effect| match effect {
            Effect::Ended { id, end } => Some((*id, *end)),
            _ => None,
        });
        self.entries.push(Entry { now: self.now, event, ends: ended.collect() });
        self.effects.extend(effects);
        self.oracle.observe(self.entries.last().unwrap())
    }

    pub(super) fn define(&mut self, limit: &LimitName, to: Option<Definition>) -> Checked {
        self.scheduler.define_limit(limit, to.clone(), self.now);
        self.note(Event::Limit(limit.clone(), to))
    }

    pub(super) fn define_queue(&mut self, name: QueueName, spec: QueueSpec) -> Checked {
        let answer = self.scheduler.define_queue(&name, spec.clone(), self.now);
        self.note(Event::Queue(name, spec, answer))
    }

    pub(super) fn remove_queue(&mut self, name: QueueName) -> Checked {
        let answer = self.scheduler.remove_queue(&name, self.now);
        self.note(Event::RemoveQueue(name, answer))
    }

    /// One act; says why it was refused.
    pub(super) fn act(&mut self, act: Act) -> Checked<Option<ActError>> {
        let answer = self.scheduler.act(act.clone(), self.now);
        let refusal = answer.as_ref().err().cloned();
        self.note(Event::Act(Box::new(act), answer))?;
        self.compare_records()?;
        Ok(refusal)
    }

    pub(super) fn claim(&mut self, asking: &Asking, expected: Expected) -> Checked<usize> {
        let Asking { queue, most, lease, asks_for } = asking;
        let (queue, asks) = (queue.clone(), *asks_for);
        let claim = Claim { queue: queue.clone(), most: *most, lease: *lease, asks };
        let started = self.scheduler.claim(&claim, self.now);
        let count = started.len();
        let (most, lease) = (*most, *lease);
        self.note(Event::Claim { queue, most, lease, expected, started })?;
        Ok(count)
    }

    /// A claim that is made again at once if it got fewer than it asked for.
    pub(super) fn claim_twice(&mut self, asking: &Asking) -> Checked {
        if self.claim(asking, Expected::Anything)? < asking.most {
            self.claim(asking, Expected::Nothing)?;
        }
        Ok(())
    }

    /// All queues are asked, and those again that are said to be woken: then nothing more starts at
    /// this instant.
    pub(super) fn claim_all(&mut self, asks_for: Span) -> Checked {
        let mut asked = self.everyone(asks_for);
        for _ in 0..ROUNDS_MAX {
            for asking in &asked {
                self.claim(asking, Expected::Anything)?;
            }
            let woken = self.scheduler.take_woken();
            if woken.is_empty() {
                return Ok(());
            }
            asked = self.everyone(asks_for);
            asked.retain(|asking| woken.contains(&asking.queue));
        }
        Err("calls go on starting at one instant".to_owned())
    }

    pub(super) fn everyone(&self, asks_for: Span) -> Vec<Asking> {
        let queues = self.catalog.queues.iter().cloned();
        queues.map(|queue| Asking { queue, most: HANDS, lease: None, asks_for }).collect()
    }

    /// Nothing starts at this instant: nothing was due since all were asked.
    pub(super) fn claim_in_vain(&mut self) -> Checked {
        for asking in self.everyone(Span::ZERO) {
            self.claim(&asking, Expected::Nothing)?;
        }
        Ok(())
    }

    pub(super) fn renew(&mut self, lease: Lease, span: Span) -> Checked<bool> {
        let is_held = self.scheduler.renew(&[lease], span, self.now)[0];
        self.note(Event::Renew(lease, span, is_held))?;
        Ok(is_held)
    }

    pub(super) fn pause(&mut self, scope: Scope) -> Checked {
        self.scheduler.pause(&scope, self.now);
        self.note(Event::Pause(scope))
    }

    pub(super) fn resume(&mut self, scope: Scope) -> Checked {
        self.scheduler.resume(&scope, self.now);
        self.note(Event::Resume(scope))
    }

    pub(super) fn reopen(&mut self, limit: LimitName, partition: Option<Partition>) -> Checked {
        self.scheduler.reopen(&limit, partition.as_ref(), self.now);
        self.note(Event::Reopen(limit, partition))
    }

    pub(super) fn advance(&mut self) -> Checked {
        self.scheduler.advance(self.now);
        self.note(Event::Advance)
    }

    /// What happened so far is durable: answers are given, and workers begin with what they got.
    pub(super) fn sync(&mut self) {
        let fresh = &self.entries[self.durable.0..];
        let started: Vec<Started> = fresh
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Claim { started, .. } => Some(started.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        self.durable = (self.entries.len(), self.effects.len());
        self.workers.answered(&mut self.random, self.now.at);
        for started in started {
            let follows = !self.workers.are_diligent() && self.random.one_in(3);
            let parts = if follows { self.parts() } else { Act::default() };
            let paid = self.oracle.limits_paid(started.lease.call);
            self.workers.begin(&mut self.random, Work { started, paid, parts }, self.now.at);
        }
    }

    /// The process dies and comes back: what was not durable never happened, and nobody was told.
    pub(super) fn restart(&mut self) -> Checked {
        self.entries.truncate(self.durable.0);
        self.effects.truncate(self.durable.1);
        self.scheduler = Scheduler::recovered(&self.effects);
        self.oracle = Oracle::default();
        for entry in &self.entries {
            self.oracle.observe(entry)?;
        }
        self.workers.ask_again(self.now.at);
        self.compare()
    }

    /// The scheduler knows the calls that have not ended, and no others.
    pub(super) fn compare(&self) -> Checked {
        for (id, is_over) in self.oracle.calls() {
            let is_known = self.scheduler.is_waiting(id) || self.scheduler.is_in_flight(id);
            if is_known == is_over {
                let state = if is_over { "ended and is there" } else { "is lost" };
                return Err(format!("nothing accepted is lost: call {} {state}", id.0));
            }
        }
        self.compare_records()
    }

    /// What was written is kept, to the byte.
    fn compare_records(&self) -> Checked {
        for key in &self.catalog.keys {
            let (found, due) = (self.scheduler.record(key), self.oracle.record(key));
            if found != due {
                return Err(format!("what was written is kept: {found:?} instead of {due:?}"));
            }
        }
        Ok(())
    }

    /// When something happens next by itself: at the scheduler's, or at a worker's.
    pub(super) fn next_event(&self) -> Option<Timestamp> {
        let due = self.scheduler.next_due(self.now).map(|due| due.max(self.now.at));
        due.into_iter().chain(self.workers.next_due()).min()
    }

    /// Both clocks go on to this instant of limit time.
    pub(super) fn move_to(&mut self, at: Timestamp) {
        self.now = self.now.moved_to(at.max(self.now.at));
    }

    /// Workers do what they were going to do by now.
    pub(super) fn work(&mut self) -> Checked {
        while let Some(mut errand) = self.workers.due(self.now.at) {
            match errand.clone() {
                Errand::Act(act) => {
                    let act = self.together(*act);
                    self.work_off(&act)?;
                    errand = Errand::Act(Box::new(act));
                }
                Errand::Renew { lease, span, then } => {
                    if self.renew(lease, span)? {
                        let half = Span::from_nanos(span.as_nanos() / 2);
                        self.workers.later(self.now.at.plus(half), *then);
                    }
                }
            }
            self.workers.unanswered(errand);
        }
        Ok(())
    }
}

fn size(seed: u64) -> Size {
    match (seed % CROWD_EVERY, seed / CROWD_EVERY % 2) {
        (0, 0) => Size::CrowdAtOneMeter,
        (0, _) => Size::CrowdOfMeters,
        _ => Size::Small,
    }
}
