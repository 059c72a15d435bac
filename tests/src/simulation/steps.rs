//! What happens in a world, step by step, and how it is brought to its end.

use super::catalog::Size;
use super::record::Expected;
use super::run::{Asking, Checked, Run};
use tollgate_core::lanes::{Order, QueueSpec, Scope};
use tollgate_core::{Now, Span};

/// Most rounds of the end: worlds of this size need some hundred.
const ENDING_ROUNDS_MAX: usize = 3_000;

impl Run {
    /// So many steps, and then the end.
    pub(super) fn run(&mut self, steps: usize) -> Checked {
        for _ in 0..steps {
            self.step()?;
        }
        self.end()
    }

    fn step(&mut self) -> Checked {
        match self.random.index(50) {
            0..=8 => self.produce()?,
            9..=18 => {
                let asking = self.asking();
                self.claim_twice(&asking)?;
            }
            19..=29 => self.pass_time()?,
            30 | 31 => self.probe()?,
            32 => self.jump(),
            33 => self.change_limit()?,
            34 => self.hold()?,
            35 => self.let_go()?,
            36 => self.take_back()?,
            37 => self.restart()?,
            38 => {
                let (limit, _) = self.random.pick(&self.catalog.limits).clone();
                self.reopen(limit, None)?;
            }
            39 | 40 => self.change_queue()?,
            41 | 42 => self.change_together()?,
            43 | 44 => self.explain_and_claim()?,
            45 | 46 => self.wait_out()?,
            47 | 48 => self.raise()?,
            49 if self.random.one_in(2) => self.bury()?,
            _ => self.advance()?,
        }
        // Several commands become durable together.
        if self.random.one_in(3) {
            self.sync();
        }
        Ok(())
    }

    fn asking(&mut self) -> Asking {
        let has_lease = self.random.one_in(4);
        let lease = Span::from_millis(self.random.between(1, 4_000));
        Asking {
            queue: self.catalog.queue(&mut self.random),
            most: [1, 1, 2, 3, 10][self.random.index(5)],
            lease: has_lease.then_some(lease),
            asks_for: Span::from_millis(self.random.between(0, 4_000)),
        }
    }

    /// The clock goes to the next thing that happens, or not quite so far.
    fn pass_time(&mut self) -> Checked {
        let some = Span::from_millis(self.random.between(0, 1_500));
        let some = self.now.at.plus(some);
        let next = self.next_event().filter(|_| !self.random.one_in(4)).unwrap_or(some);
        self.move_to(next.min(some));
        self.work()
    }

    /// Nothing starts between an instant at which everyone was asked and the next at which
    /// something is due.
    fn probe(&mut self) -> Checked {
        let asks_for = Span::from_millis(self.random.between(0, 3_000));
        self.claim_all(asks_for)?;
        let far = self.now.at.plus(Span::from_secs(20));
        let next = self.next_event().unwrap_or(far).min(far);
        let room = next.since(self.now.at).as_nanos();
        if room > 1 {
            let on = Span::from_nanos(self.random.between(1, room - 1));
            self.move_to(self.now.at.plus(on));
            self.claim_in_vain()?;
        }
        Ok(())
    }

    /// The wall clock is set, forwards or backwards, by seconds or by days.
    fn jump(&mut self) {
        let is_far = self.catalog.has_days && self.random.one_in(2);
        let most = if is_far { 180_000_000 } else { 20_000 };
        let span = Span::from_millis(self.random.between(0, most));
        let wall = match self.random.one_in(2) {
            true => self.now.wall.plus(span),
            false => self.now.wall.minus(span),
        };
        self.latest_wall = self.latest_wall.max(self.now.wall);
        self.now = Now { wall, ..self.now };
    }

    fn change_limit(&mut self) -> Checked {
        let (limit, kind) = self.random.pick(&self.catalog.limits).clone();
        let definition = kind.definition(&mut self.random);
        let is_removed = self.random.one_in(3);
        self.define(&limit, (!is_removed).then_some(definition))
    }

    /// A queue becomes another, in one respect or in all, or is to become what none can be. Now and
    /// then it is removed before, if it can be.
    fn change_queue(&mut self) -> Checked {
        let queue = self.catalog.queue(&mut self.random);
        let mut spec = self.catalog.spec(&mut self.random);
        if self.random.one_in(10) {
            spec = match self.random.index(4) {
                0 => QueueSpec { order: Order::Parallel(0), ..spec },
                1 => QueueSpec { lease: Span::from_days(2), ..spec },
                2 => QueueSpec { failures_max: 0, ..spec },
                _ => QueueSpec { depth_max: 0, ..spec },
            };
        } else if self.random.one_in(3) {
            self.remove_queue(queue.clone())?;
        }
        self.define_queue(queue, spec)
    }

    fn scope(&mut self) -> Scope {
        let queue = self.catalog.queue(&mut self.random);
        match self.random.index(3) {
            0 => Scope::Queue(queue),
            1 => Scope::Lane(queue, self.random.pick(&self.catalog.lanes).clone()),
            _ => Scope::Limit(self.random.pick(&self.catalog.limits).0.clone()),
        }
    }

    fn hold(&mut self) -> Checked {
        let scope = self.scope();
        self.pause(scope)
    }

    /// Most of what is held back is let go at once, or worlds would stand still.
    fn let_go(&mut self) -> Checked {
        for _ in 0..4 {
            let scope = self.scope();
            self.resume(scope)?;
        }
        Ok(())
    }

    /// Everything is resumed, all limits let every call pass, and workers are done at once: every
    /// call ends.
    fn end(&mut self) -> Checked {
        self.sync();
        self.restart()?;
        // The wall clock is right again: no window is left behind that it must reach first.
        self.now.wall = self.now.wall.max(self.latest_wall);
        let calls = if self.size == Size::Small { 1 } else { 1_000 };
        for (limit, kind) in self.catalog.limits.clone() {
            self.define(&limit, Some(kind.large(calls)))?;
            self.resume(Scope::Limit(limit))?;
        }
        for queue in self.catalog.queues.clone() {
            self.resume(Scope::Queue(queue))?;
        }
        self.workers.become_diligent();
        for _ in 0..ENDING_ROUNDS_MAX {
            if self.oracle.is_over() {
                return self.compare();
            }
            self.ending_round()?;
        }
        Err(format!("nothing accepted is lost: {} never ends", self.oracle.first_waiting()))
    }

    fn ending_round(&mut self) -> Checked {
        // A call that crashed too often may hold its lane at any time, and a worker that was slow may
        // say only now that the upstream asked for a pause.
        for (queue, lane) in self.oracle.held_lanes() {
            self.resume(Scope::Lane(queue, lane))?;
        }
        for (limit, partition) in self.oracle.closed_meters(self.now) {
            self.reopen(limit, partition)?;
        }
        let mut count = 0;
        for asking in self.everyone(Span::from_secs(1)) {
            let most = if self.size == Size::Small { 7 } else { 400 };
            count += self.claim(&Asking { most, ..asking }, Expected::Anything)?;
        }
        self.sync();
        let before = self.entries.len();
        self.work()?;
        self.sync();
        if count > 0 || self.entries.len() > before {
            return Ok(());
        }
        match self.next_event() {
            Some(next) => self.move_to(next),
            None if self.oracle.is_over() => {}
            None if !self.oracle.held_lanes().is_empty() => {}
            None => {
                let call = self.oracle.first_waiting();
                return Err(format!("nothing accepted is lost: {call} waits, and nothing is due"));
            }
        }
        self.work()
    }
}
