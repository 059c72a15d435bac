//! What happens in a world, step by step, and how it is brought to its end.

use super::record::Expected;
use super::run::{Asking, Checked, Run};
use tollgate_core::lanes::{CallId, Scope};
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
        match self.random.index(40) {
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
            _ => self.advance()?,
        }
        // Several commands become durable together.
        if self.random.one_in(3) {
            self.sync();
        }
        Ok(())
    }

    fn produce(&mut self) -> Checked {
        let count = [1, 1, 2, 3, 6, 10][self.random.index(6)];
        let calls = (0..count).map(|_| self.catalog.call(&mut self.random, self.now));
        let calls = calls.collect();
        self.enqueue(calls)
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

    /// The wall clock is set, forwards or backwards.
    fn jump(&mut self) {
        let span = Span::from_millis(self.random.between(0, 20_000));
        let wall = match self.random.one_in(2) {
            true => self.now.wall.plus(span),
            false => self.now.wall.minus(span),
        };
        self.now = Now { wall, ..self.now };
    }

    fn change_limit(&mut self) -> Checked {
        let (limit, kind) = self.random.pick(&self.catalog.limits).clone();
        let definition = kind.definition(&mut self.random);
        let is_removed = self.random.one_in(3);
        self.define(&limit, (!is_removed).then_some(definition))
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

    fn take_back(&mut self) -> Checked {
        let known = self.oracle.calls().count() as u64;
        let id = CallId(self.random.between(0, known));
        self.cancel(id)
    }

    /// Everything is resumed, all limits let every call pass, and workers are done at once: every
    /// call ends.
    fn end(&mut self) -> Checked {
        self.sync();
        self.restart()?;
        for (limit, kind) in self.catalog.limits.clone() {
            self.define(&limit, Some(kind.large()))?;
            self.resume(Scope::Limit(limit))?;
        }
        for (queue, _) in self.catalog.queues.clone() {
            self.resume(Scope::Queue(queue))?;
        }
        self.workers.become_diligent();
        for _ in 0..ENDING_ROUNDS_MAX {
            if self.oracle.calls().all(|(_, is_over)| is_over) {
                return self.compare();
            }
            self.ending_round()?;
        }
        Err(format!("nothing accepted is lost: {} never ends", self.oracle.first_waiting()))
    }

    fn ending_round(&mut self) -> Checked {
        // A call that crashed too often may hold its lane at any time.
        for (queue, lane) in self.oracle.held_lanes() {
            self.resume(Scope::Lane(queue, lane))?;
        }
        let mut count = 0;
        for asking in self.everyone(Span::from_secs(1)) {
            count += self.claim(&Asking { most: 7, ..asking }, Expected::Anything)?;
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
            None if self.oracle.calls().all(|(_, is_over)| is_over) => {}
            None if !self.oracle.held_lanes().is_empty() => {}
            None => {
                let call = self.oracle.first_waiting();
                return Err(format!("nothing accepted is lost: {call} waits, and nothing is due"));
            }
        }
        self.work()
    }
}
