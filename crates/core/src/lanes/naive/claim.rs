//! Claims: which calls of a queue start now, and where the others go to stand.

use super::heads::rank;
use super::ways::{Line, Serving, lines, stands_at};
use super::{Call, Flight, Head, MeterKey, Naive, Stand, State};
use crate::lanes::call::{CallId, Lease, Started};
use crate::lanes::claim::{CLAIM_MAX, Claim};
use crate::lanes::event::What;
use crate::lanes::queue::LEASE_MAX;
use crate::meter::{Blocker, Holding, Meter, Payment};
use crate::rule::slots::HoldId;
use crate::time::{Now, Span};
use crate::turn::{self, Judgement, judge};
use std::collections::BTreeSet;

/// How often each head, and each call that may start, is tried in one claim at most: far more than
/// moving from meter to meter takes.
const TRIES_EACH_MAX: usize = 4;

impl Naive {
    /// Starts up to `most` calls of a queue.
    pub fn claim(&mut self, claim: &Claim, now: Now) -> Vec<Started> {
        self.advance(now);
        let found = self.queues.get(&claim.queue).filter(|queue| !queue.is_paused);
        let Some(queue) = found else { return Vec::new() };
        let lease = claim.lease.unwrap_or(queue.spec.lease);
        let lease = lease.min(LEASE_MAX).max(Span::from_nanos(1));
        let serving = Serving { queue: &claim.queue, now };
        let most = claim.most.min(CLAIM_MAX);
        let tries = TRIES_EACH_MAX * (self.heads_served(serving).count() + most);
        let mut started = Vec::new();
        for _ in 0..tries {
            if started.len() == most {
                break;
            }
            let Some(id) = self.candidate(serving) else { break };
            started.extend(self.try_head(id, lease, serving));
        }
        // Who has all hands full asks no more.
        if let Some(queue) = self.queues.get_mut(&claim.queue).filter(|_| started.len() < most) {
            queue.asks_until = queue.asks_until.max(now.at.plus(claim.asks));
        }
        started
    }

    fn heads_served(&self, serving: Serving<'_>) -> impl Iterator<Item = (&Call, &Head)> {
        self.heads().filter(move |(call, _)| call.new.queue == *serving.queue)
    }

    /// Who is tried next: the first of those that stand nowhere and those that have the turn where
    /// they stand.
    pub(super) fn candidate(&self, serving: Serving<'_>) -> Option<CallId> {
        let ready = self.heads_served(serving).filter(|(_, head)| head.stand == Stand::Ready);
        let mut candidates: Vec<&Call> = ready.map(|(call, _)| call).collect();
        let meters: BTreeSet<&MeterKey> = self
            .heads_served(serving)
            .filter_map(|(_, head)| match &head.stand {
                Stand::At(meter, _) => Some(meter),
                Stand::Ready | Stand::Parked(_) => None,
            })
            .collect();
        candidates.extend(meters.into_iter().filter_map(|meter| self.turn_at(meter, serving)));
        candidates.into_iter().min_by_key(|call| rank(call)).map(|call| call.id)
    }

    /// The head of the queue that has the turn at a meter, if nothing is in its way there.
    fn turn_at(&self, meter: &MeterKey, serving: Serving<'_>) -> Option<&Call> {
        let standing = || self.heads_served(serving).filter(|(_, head)| stands_at(head, meter));
        let (first, _) = standing().min_by_key(|(call, _)| self.place(call, meter))?;
        let senior = standing()
            .find(|(call, head)| head.is_senior && call.new.priority >= first.new.priority);
        let turn = senior.map_or(first, |(senior, _)| senior);
        let lines = lines(&turn.new.tolls);
        let line = lines.iter().find(|line| line.meter == *meter)?;
        self.way(turn, line, serving).is_none().then_some(turn)
    }

    fn try_head(&mut self, id: CallId, lease: Span, serving: Serving<'_>) -> Option<Started> {
        let call = self.calls.get(&id)?.clone();
        let ways = self.ways(&call, serving);
        match judge(ways.iter().copied()) {
            Judgement::Start => Some(self.start(&call, lease, serving.now)),
            Judgement::Stand { at, .. } => {
                self.lose_patience(&call, &ways);
                let lines = lines(&call.new.tolls);
                self.stand_at(id, &lines.get(at)?.meter);
                None
            }
        }
    }

    /// A head that stood somewhere and was refused elsewhere comes closer to being senior.
    fn lose_patience(&mut self, call: &Call, ways: &[Option<Blocker>]) {
        let lines = lines(&call.new.tolls);
        let has_senior = lines.iter().any(|line| self.senior_at(&line.meter).is_some());
        let Some(head) = self.heads.get_mut(&call.id) else { return };
        if head.patience.try_on(ways.iter().copied()) && !has_senior {
            head.is_senior = true;
        }
    }

    fn start(&mut self, call: &Call, lease: Span, now: Now) -> Started {
        self.last_token += 1;
        let token = self.last_token;
        let expires = now.at.plus(lease);
        self.note_service(call);
        let holding = Holding { id: HoldId(token), expires };
        let lines = lines(&call.new.tolls);
        let payments = lines.iter().filter_map(|line| self.pay(line, holding, now)).collect();
        lines.iter().for_each(|line| self.admit(&line.meter, line.weight));
        let (attempt, started) = (call.tried() + 1, now);
        let flight = Flight { token, attempt, started, expires, is_cancelled: false, payments };
        if let Some(call) = self.calls.get_mut(&call.id) {
            call.state = State::InFlight(flight);
        }
        let queue = self.queues.get(&call.new.queue);
        let is_told = queue.is_some_and(|queue| queue.spec.tells_accepted);
        let waits = [].into();
        self.tell(call.id, now, What::Started { token, attempt, waits, is_told });
        self.refresh_heads();
        let lease = Lease { call: call.id, token };
        Started { lease, lane: call.new.lane.clone(), attempts: call.attempts, at: now.at, expires }
    }

    /// The lane was served: what starts later at these meters is measured from there.
    fn note_service(&mut self, call: &Call) {
        let lines = lines(&call.new.tolls);
        let lane = self.lanes.get(&call.lane_key());
        let lane_weight = lane.map_or(1, |lane| lane.weight.max(1));
        let tags: Vec<u64> = lines.iter().map(|line| self.tag(call, &line.meter)).collect();
        for (line, tag) in lines.into_iter().zip(tags) {
            let vtime = self.vtimes.entry(line.meter.clone()).or_default();
            *vtime = tag.max(*vtime);
            let finish = turn::finish(tag, line.weight, lane_weight);
            let standing = self.heads.values().filter(|head| stands_at(head, &line.meter)).count();
            let round = self.rounds.entry(line.meter.clone()).or_default();
            let next = turn::round((*round).max(tag), finish - tag, standing as u64);
            self.finishes.insert((call.lane_key(), line.meter.clone()), finish);
            let here = self.finishes.iter().filter(|((_, meter), _)| *meter == line.meter);
            *round = next.min(here.map(|(_, finish)| *finish).max().unwrap_or(0));
        }
    }

    fn pay(&mut self, line: &Line, holding: Holding, now: Now) -> Option<(MeterKey, Payment)> {
        let definition = self.definition(&line.meter)?.clone();
        let fresh = || Meter::new(&definition, now.at);
        let meter = self.meters.entry(line.meter.clone()).or_insert_with(fresh);
        let payment = meter.pay(&definition, line.weight, (now, now.at), Some(holding));
        Some((line.meter.clone(), payment))
    }
}
