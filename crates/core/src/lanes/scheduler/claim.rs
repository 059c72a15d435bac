//! Claiming: which heads are tried, and how one starts.

use super::Scheduler;
use super::calls::{LaneSlot, MeterSlot, Start};
use super::lanes::{Head, Stand};
use super::meters::QueueSlot;
use crate::gate::{self, LINES_MAX, Verdict};
use crate::lanes::call::{Lease, Started};
use crate::lanes::claim::{CLAIM_MAX, Claim};
use crate::lanes::effect::Effect;
use crate::lanes::queue::LEASE_MAX;
use crate::meter::Cause;
use crate::name::QueueName;
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use smallvec::SmallVec;

impl Scheduler {
    /// Starts calls of a queue, the first that may go first, up to as many as the worker can take.
    pub fn claim(&mut self, claim: &Claim, now: Now) -> Vec<Started> {
        self.advance(now);
        let found = self.lanes.find(&claim.queue);
        let Some(queue) = found.filter(|queue| !self.lanes.queue(*queue).is_paused) else {
            return Vec::new();
        };
        let lease = claim.lease.unwrap_or(self.lanes.queue(queue).spec.lease);
        let expires = now.at.plus(lease.clamp(Span::from_nanos(1), LEASE_MAX));
        let most = claim.most.min(CLAIM_MAX);
        let mut started = Vec::new();
        while started.len() < most {
            let Some(lane) = self.next_candidate(queue, now) else {
                // Nobody is left to be tried.
                self.woken.remove(&queue);
                self.withheld.remove(&queue);
                break;
            };
            started.extend(self.try_head(lane, now, expires));
        }
        self.end_granting();
        if started.len() < most {
            self.asked_for(queue, now.at.plus(claim.asks));
        }
        started
    }

    /// A worker asks for the calls of a queue until then, whatever it said with its claim.
    pub fn goes_on_asking(&mut self, queue: &QueueName, until: Timestamp) {
        let found = self.lanes.find(queue);
        if let Some(queue) = found.filter(|queue| !self.lanes.queue(*queue).is_paused) {
            self.asked_for(queue, until);
        }
    }

    fn asked_for(&mut self, queue: QueueSlot, until: Timestamp) {
        let asking = self.lanes.queue_mut(queue);
        if until > asking.asks_until {
            asking.asks_until = until;
            self.asked.extend(self.shares_asks.then_some(queue));
        }
    }

    /// Says until when someone asks for a queue's calls, whatever was said before.
    pub fn ask(&mut self, queue: &QueueName, until: Timestamp, now: Now) {
        self.advance(now);
        let Some(queue) = self.lanes.find(queue) else { return };
        let before = std::mem::replace(&mut self.lanes.queue_mut(queue).asks_until, until);
        self.asked.extend(self.shares_asks.then_some(queue));
        if until < before {
            self.stop_yielding();
        }
    }

    /// A queue is not asked for any more: who let its heads go first need not.
    pub(super) fn stop_yielding(&mut self) {
        for (meter, queue) in std::mem::take(&mut self.yielding) {
            self.offer(meter, queue);
        }
    }

    /// The head of a queue that goes first of those that owe nothing, or have their turn where they
    /// stand and are open there.
    fn next_candidate(&mut self, queue: QueueSlot, now: Now) -> Option<LaneSlot> {
        loop {
            let book = self.lanes.queue(queue);
            let (free, open) = (book.free.first(), book.open.first());
            let (rank, meter) = match (free, open) {
                (Some((rank, lane)), None) => return Some(self.checked(rank, lane)),
                (Some((rank, lane)), Some((other, _))) if rank < other => return Some(lane),
                (_, Some(open)) => open,
                (None, None) => return None,
            };
            let Some(lane) = self.open_at(meter, queue, now) else { continue };
            return Some(self.checked(rank, lane));
        }
    }

    /// Who has the turn at a meter, if its way is open there; the queue does not look there again
    /// until it may be.
    fn open_at(&mut self, meter: MeterSlot, queue: QueueSlot, now: Now) -> Option<LaneSlot> {
        if self.shares_asks {
            self.try_elsewhere(meter, Some(queue), now);
        }
        let lane = self.turn_at(meter, queue);
        let head = lane.and_then(|lane| Some((lane, self.lanes[lane].head?)));
        let Some((lane, head @ Head { stand: Stand::At { line, .. }, .. })) = head else {
            self.withdraw(meter, queue, None);
            return None;
        };
        let way = self.line((lane, head), line.index(), now).way(head.is_senior, now);
        if let Some(blocker) = way {
            let wakes = self.looked_at_again(meter, queue, blocker, now);
            self.withdraw(meter, queue, wakes.map(|at| (at, self.slack(head))));
            self.refused_at(meter, queue);
            // At one that is open others go first, and it is no limit that is in the way.
            if blocker.opening != Opening::At(now.at) {
                self.throttled(meter, lane);
            }
            if blocker.cause == Cause::Turn {
                self.yielding.insert((meter, queue));
            }
            return None;
        }
        Some(lane)
    }

    /// Whether nothing is in a head's way at the meter where it stands.
    pub(super) fn is_open_at(&self, meter: MeterSlot, lane: LaneSlot, now: Now) -> bool {
        let Some(head @ Head { stand: Stand::At { line, .. }, .. }) = self.lanes[lane].head else {
            return false;
        };
        let is_here = self.calls.lines_at(head.call)[line.index()].meter == meter;
        is_here && self.line((lane, head), line.index(), now).way(head.is_senior, now).is_none()
    }

    fn checked(&self, rank: super::calls::Rank, lane: LaneSlot) -> LaneSlot {
        debug_assert_eq!(
            self.lanes[lane].head.map(|head| self.calls[head.call].rank()),
            Some(rank),
            "a queue knows its heads by their rank"
        );
        lane
    }

    /// Starts a head that may go, or lets it stand where it must. It is open where it stands.
    fn try_head(&mut self, lane: LaneSlot, now: Now, expires: Timestamp) -> Option<Started> {
        let head = self.lanes[lane].head?;
        let stands_elsewhere = self.calls.lines_at(head.call).len() > 1;
        let head = if stands_elsewhere { self.judge_head(lane, now)? } else { head };
        Some(self.start(lane, head, now, expires))
    }

    /// A head, if it may go; otherwise it stands where it must.
    pub(super) fn judge_head(&mut self, lane: LaneSlot, now: Now) -> Option<Head> {
        let head = self.lanes[lane].head?;
        let mut patience = head.patience;
        let count = self.calls.lines_at(head.call).len().min(LINES_MAX);
        let lines = (0..count).map(|at| self.line((lane, head), at, now));
        let lines: SmallVec<[gate::Line<'_>; 2]> = lines.collect();
        let verdict = gate::pass(&lines, head.is_senior, &mut patience, now);
        drop(lines);
        match verdict {
            Verdict::Start => return Some(head),
            Verdict::Park { at, .. } => {
                self.set_patience(lane, patience);
                self.note_wait(lane);
                self.leave(lane);
                self.park(lane, at);
            }
            Verdict::Stand { at, is_impatient, .. } => {
                self.set_patience(lane, patience);
                self.note_wait(lane);
                self.leave(lane);
                if is_impatient {
                    self.make_senior(lane);
                }
                self.come_to_stand(lane, at);
            }
        }
        None
    }

    fn set_patience(&mut self, lane: LaneSlot, patience: crate::turn::Patience) {
        if let Some(head) = &mut self.lanes[lane].head {
            head.patience = patience;
        }
    }

    fn start(&mut self, lane: LaneSlot, head: Head, now: Now, expires: Timestamp) -> Started {
        let call = &self.calls[head.call];
        let lease = Lease { call: call.id, token: self.tokens + 1 };
        let attempts = self.calls.attempts(call);
        let waits = self.waits(lane, head);
        let effect = Effect::Started { lease, now, expires, waits: waits.clone() };
        self.observe(&effect, Some(head.call));
        self.count_start(head.call, &waits);
        self.count_started(lane, head, now);
        self.granted(head);
        self.start_at(head.call, lease.token, Start { now, expires, waits });
        self.effects.push(effect);
        self.rehead();
        Started { lease, lane: self.lanes[lane].name.clone(), attempts, at: now.at, expires }
    }
}
