//! Acts of several parts: records, joins, cancels and new calls, together or not at all.

use super::run::{Checked, Run};
use tollgate_core::lanes::{
    Act, ActError, CallId, Count, NewCall, Revision, Revive, Settle, Write,
};
use tollgate_core::{Key, LimitName, Span};

impl Run {
    pub(super) fn produce(&mut self) -> Checked {
        let count = [1, 1, 2, 3, 6, 10][self.random.index(6)];
        let calls = (0..count).map(|_| self.catalog.call(&mut self.random, self.now));
        let enqueue = calls.collect();
        self.act(Act { enqueue, ..Act::default() })?;
        Ok(())
    }

    /// A call is taken back: any, or one that is in flight.
    pub(super) fn take_back(&mut self) -> Checked {
        let cancel = vec![self.someone()];
        self.act(Act { cancel, ..Act::default() })?;
        Ok(())
    }

    /// One of the dead is deleted, or a call of which somebody thinks that it is dead.
    pub(super) fn bury(&mut self) -> Checked {
        let delete = vec![self.dead_or_someone()];
        self.act(Act { delete, ..Act::default() })?;
        Ok(())
    }

    fn dead_or_someone(&mut self) -> CallId {
        let dead = self.oracle.dead();
        let is_dead = !dead.is_empty() && !self.random.one_in(8);
        if is_dead { *self.random.pick(&dead) } else { self.someone() }
    }

    /// Dead calls are tried again, at once or one after the other.
    pub(super) fn raise(&mut self) -> Checked {
        let mut due = self.now.wall;
        let mut revive = vec![];
        for _ in 0..1 + self.random.index(3) {
            let call = self.dead_or_someone();
            due = due.plus(Span::from_millis(self.random.between(0, 3_000)));
            revive.push(Revive { call, not_before: self.random.one_in(3).then_some(due) });
        }
        self.act(Act { revive, ..Act::default() })?;
        Ok(())
    }

    /// Someone writes, counts, sends and takes back at once.
    pub(super) fn change_together(&mut self) -> Checked {
        let act = self.parts();
        self.act(act)?;
        Ok(())
    }

    /// A worker asks for something. What is refused whole it asks for again call by call, and without
    /// what has nothing to do with them.
    pub(super) fn work_off(&mut self, act: &Act) -> Checked {
        let refused = self.act(act.clone())?;
        let is_lost = matches!(refused, Some(ActError::LeaseLost { .. }));
        if refused.is_none() || (is_lost && act.settle.len() == 1) {
            return Ok(());
        }
        for settle in &act.settle {
            let settle = vec![Settle { actual: vec![], ..settle.clone() }];
            self.act(Act { settle, ..Act::default() })?;
        }
        Ok(())
    }

    /// Some workers have more than one call, and ask for all that is due at once.
    pub(super) fn together(&mut self, mut act: Act) -> Act {
        while self.random.one_in(3)
            && let Some(due) = self.workers.due_act(self.now.at)
        {
            act.extend(due);
        }
        act
    }

    /// Parts of an act, as they may follow from a call that was settled. What they expect of records
    /// is what is there now; when they are sent it may be there no more.
    pub(super) fn parts(&mut self) -> Act {
        let mut act = Act::default();
        for _ in 0..1 + self.random.index(2) {
            match self.random.index(5) {
                0 | 1 => act.write.extend(self.writes()),
                2 | 3 => act.count_down.push(self.count()),
                _ if self.random.one_in(2) => act.cancel.push(self.someone()),
                _ => act.enqueue.push(self.new_call()),
            }
        }
        act
    }

    /// A record is written, removed, or removed and written again at once.
    fn writes(&mut self) -> Vec<Write> {
        let key = self.key();
        let found = self.scheduler.record(&key).map_or(Revision(0), |record| record.revision);
        let is_wrong = self.random.one_in(6);
        let expected = if is_wrong { Revision(self.random.between(0, 9)) } else { found };
        let bytes = self.random.between(0, u64::MAX - 1).to_le_bytes();
        let bytes: Option<Box<[u8]>> = Some(Box::from(bytes));
        let write = |expected, bytes| Write { key: key.clone(), expected, bytes };
        match self.random.index(5) {
            0 => vec![write(expected, None)],
            1 => vec![write(expected, None), write(Revision(0), bytes)],
            _ => vec![write(expected, bytes)],
        }
    }

    fn count(&mut self) -> Count {
        let from = [0, 1, 2, 2, 3, 5][self.random.index(6)];
        Count { key: self.key(), from, then: self.new_call() }
    }

    fn key(&mut self) -> Key {
        self.random.pick(&self.catalog.keys).clone()
    }

    /// A new call, now and then one that nobody can take.
    fn new_call(&mut self) -> NewCall {
        let mut call = self.catalog.call(&mut self.random, self.now);
        match self.random.index(30) {
            0 => call.queue = tollgate_core::QueueName::new("nowhere").unwrap(),
            1 => call.tolls.iter_mut().for_each(|toll| toll.weight = 0),
            2 => {
                let limit = LimitName::new("nothing").unwrap();
                call.tolls.iter_mut().for_each(|toll| toll.limit = limit.clone());
            }
            _ => {}
        }
        call
    }

    fn someone(&mut self) -> CallId {
        let in_flight = self.oracle.in_flight();
        if !in_flight.is_empty() && self.random.one_in(2) {
            return *self.random.pick(&in_flight);
        }
        let known = self.oracle.calls().count() as u64;
        CallId(self.random.between(0, known))
    }
}
