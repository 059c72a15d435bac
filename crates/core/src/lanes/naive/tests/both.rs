//! The naive reference and the scheduler side by side: every answer of one is the other's, too.

use crate::lanes::naive::Naive;
use crate::lanes::{
    Act, ActError, Acted, CallId, Claim, Lease, QueueError, QueueSpec, Scheduler, Scope, Started,
};
use crate::limit::Definition;
use crate::name::{LimitName, Partition, QueueName};
use crate::time::{Now, Span};
use std::ops::Deref;

#[derive(Default)]
pub(super) struct Both {
    naive: Naive,
    scheduler: Scheduler,
}

/// What is only looked at is looked at in the naive one.
impl Deref for Both {
    type Target = Naive;

    fn deref(&self) -> &Naive {
        &self.naive
    }
}

impl Both {
    pub(super) fn define_limit(
        &mut self,
        name: &LimitName,
        definition: Option<Definition>,
        now: Now,
    ) {
        self.scheduler.define_limit(name, definition.clone(), now);
        self.naive.define_limit(name, definition, now);
    }

    pub(super) fn define_queue(
        &mut self,
        name: &QueueName,
        spec: QueueSpec,
        now: Now,
    ) -> Result<(), QueueError> {
        let answer = self.naive.define_queue(name, spec.clone(), now);
        assert_eq!(self.scheduler.define_queue(name, spec, now), answer);
        answer
    }

    pub(super) fn act(&mut self, act: &Act, now: Now) -> Result<Acted, ActError> {
        let answer = self.naive.act(act, now);
        assert_eq!(self.scheduler.act(act, now), answer);
        answer
    }

    pub(super) fn claim(&mut self, claim: &Claim, now: Now) -> Vec<Started> {
        let answer = self.naive.claim(claim, now);
        assert_eq!(self.scheduler.claim(claim, now), answer);
        answer
    }

    pub(super) fn renew(&mut self, leases: &[Lease], lease: Span, now: Now) -> Vec<bool> {
        let answer = self.naive.renew(leases, lease, now);
        assert_eq!(self.scheduler.renew(leases, lease, now), answer);
        answer
    }

    pub(super) fn pause(&mut self, scope: &Scope, now: Now) {
        self.naive.pause(scope, now);
        self.scheduler.pause(scope, now);
    }

    pub(super) fn resume(&mut self, scope: &Scope, now: Now) {
        self.naive.resume(scope, now);
        self.scheduler.resume(scope, now);
    }

    pub(super) fn reopen(&mut self, limit: &LimitName, partition: Option<&Partition>, now: Now) {
        self.naive.reopen(limit, partition, now);
        self.scheduler.reopen(limit, partition, now);
    }

    pub(super) fn advance(&mut self, now: Now) {
        self.naive.advance(now);
        self.scheduler.advance(now);
    }

    pub(super) fn is_waiting(&self, id: CallId) -> bool {
        let answer = self.naive.is_waiting(id);
        assert_eq!(self.scheduler.is_waiting(id), answer);
        answer
    }

    pub(super) fn is_in_flight(&self, id: CallId) -> bool {
        let answer = self.naive.is_in_flight(id);
        assert_eq!(self.scheduler.is_in_flight(id), answer);
        answer
    }
}
