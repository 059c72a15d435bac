//! Heads: where each stands, and which meters have one to offer.

use super::Scheduler;
use super::calls::{LaneSlot, Line, MeterSlot};
use super::lanes::{Head, LineNumber, Stand};
use super::meters::QueueSlot;
use crate::gate;
use crate::meter::{Blocker, Cause};
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use crate::turn::{CALENDAR_LOOK, Company, Place};

impl Scheduler {
    /// Sees to it that the heads of all lanes that were touched are the calls that they should be.
    #[inline]
    pub(super) fn rehead(&mut self) {
        while let Some(lane) = self.touched.pop() {
            self.rehead_lane(lane);
        }
    }

    fn rehead_lane(&mut self, lane: LaneSlot) {
        // It may have been touched and then removed with its queue.
        if !self.lanes.is_known(lane) {
            return;
        }
        let first = self.lanes.first_of(lane, &self.calls);
        self.listed(lane);
        let head = self.lanes[lane].head;
        if head.map(|head| head.call) == first {
            return;
        }
        if head.is_some() {
            self.dismiss(lane);
        }
        if let Some(call) = first {
            self.lanes[lane].head = Some(Head::new(call));
            self.come_to_stand(lane, 0);
        }
    }

    /// Notes that the head of a lane may have changed.
    #[inline]
    pub(super) fn touch(&mut self, lane: LaneSlot) {
        if self.touched.last() != Some(&lane) {
            self.touched.push(lane);
        }
    }

    /// Takes a lane's head from all books.
    pub(super) fn dismiss(&mut self, lane: LaneSlot) {
        self.leave(lane);
        self.end_seniority(lane);
        self.lanes[lane].head = None;
        if !self.stood.is_empty() {
            self.stood.remove(&lane);
        }
    }

    /// Lets a head stand at one of its lines, from where it is in no book; parked if the limit there
    /// is shut to it.
    pub(super) fn come_to_stand(&mut self, lane: LaneSlot, line: usize) {
        let Some(head) = self.lanes[lane].head else { return };
        let queue = self.lanes[lane].queue;
        let Some(&Line { meter, weight, .. }) = self.calls.lines_at(head.call).get(line) else {
            let rank = self.calls[head.call].rank();
            self.lanes.queue_mut(queue).free.insert((rank, lane));
            self.woken.insert(queue);
            return;
        };
        if self.is_shut(head, line) {
            return self.park(lane, line);
        }
        let place = self.place(lane, head, line);
        self.set_stand(lane, Stand::At { line: LineNumber::new(line), tag: place.tag() });
        self.meters[meter].stand(queue, (place, lane), weight);
        self.mark(lane);
        // Who comes has the turn, or leaves it with whoever had it.
        if self.turn_at(meter, queue) == Some(lane) {
            self.offer(meter, queue);
        }
    }

    /// Sets a head aside at one of its lines, from where it is in no book.
    pub(super) fn park(&mut self, lane: LaneSlot, line: usize) {
        let Some(head) = self.lanes[lane].head else { return };
        let meter = self.calls.lines_at(head.call)[line].meter;
        self.end_seniority(lane);
        self.set_stand(lane, Stand::Parked { line: LineNumber::new(line) });
        self.meters.park(meter, lane);
        self.mark(lane);
    }

    /// Takes a head from where it stands.
    pub(super) fn leave(&mut self, lane: LaneSlot) {
        let Some(head) = self.lanes[lane].head else { return };
        let queue = self.lanes[lane].queue;
        match head.stand {
            Stand::Free => {
                let rank = self.calls[head.call].rank();
                self.lanes.queue_mut(queue).free.remove((rank, lane));
            }
            Stand::Parked { line } => {
                let meter = self.calls.lines_at(head.call)[line.index()].meter;
                self.meters.unpark(meter, lane);
                self.set_stand(lane, Stand::Free);
            }
            Stand::At { line, .. } => {
                let Line { meter, weight, .. } = self.calls.lines_at(head.call)[line.index()];
                let place = self.place(lane, head, line.index());
                let had_turn = self.turn_at(meter, queue) == Some(lane);
                self.meters[meter].leave(queue, (place, lane), weight);
                if let Some(crowd) = self.meters[meter].crowd_mut(queue).filter(|_| had_turn) {
                    crowd.reopened(self.present.at);
                }
                self.set_stand(lane, Stand::Free);
                self.served.push(meter);
                // Whoever had to let it go first may go now, of whichever queue.
                self.refresh(meter);
            }
        }
    }

    /// Makes a head the senior of all its meters, if none of them has one.
    pub(super) fn make_senior(&mut self, lane: LaneSlot) {
        let Some(head) = self.lanes[lane].head else { return };
        let lines = self.calls.lines_at(head.call);
        if lines.iter().any(|line| self.meters[line.meter].senior.is_some()) {
            return;
        }
        for line in lines {
            self.meters[line.meter].senior = Some(lane);
        }
        if let Some(head) = &mut self.lanes[lane].head {
            head.is_senior = true;
        }
    }

    fn end_seniority(&mut self, lane: LaneSlot) {
        let Some(head) = self.lanes[lane].head.filter(|head| head.is_senior) else { return };
        for at in 0..self.calls.lines_at(head.call).len() {
            let meter = self.calls.lines_at(head.call)[at].meter;
            self.meters[meter].senior = None;
            self.refresh(meter);
        }
        if let Some(head) = &mut self.lanes[lane].head {
            head.is_senior = false;
        }
    }

    /// Something changed at a meter: every queue whose heads stand there tries again.
    pub(super) fn refresh(&mut self, meter: MeterSlot) {
        // From the last to the first: an empty crowd goes.
        for at in (0..self.meters[meter].crowds.len()).rev() {
            let queue = self.meters[meter].crowds[at].queue;
            self.offer(meter, queue);
        }
    }

    /// Puts a meter among those that a queue may try, under the rank of who has the turn there.
    pub(super) fn offer(&mut self, meter: MeterSlot, queue: QueueSlot) {
        let now = self.present.at;
        if !self.yielding.is_empty() {
            self.yielding.remove(&(meter, queue));
        }
        let head = self.turn_at(meter, queue).and_then(|lane| self.lanes[lane].head);
        let rank = head.map(|head| self.calls[head.call].rank());
        let Some(crowd) = self.meters[meter].crowd_mut(queue) else { return };
        crowd.try_again(now);
        let was_offered = std::mem::replace(&mut crowd.offered, rank);
        if let Some(before) = crowd.wake_at(None) {
            self.timers.wakes.remove((before, meter, queue));
        }
        if was_offered != rank {
            let open = &mut self.lanes.queue_mut(queue).open;
            was_offered.inspect(|rank| open.remove((*rank, meter)));
            rank.inspect(|rank| open.insert((*rank, meter)));
        }
        match rank {
            Some(_) => {
                self.woken.insert(queue);
            }
            None => self.meters[meter].crowds.retain(|crowd| crowd.queue != queue),
        }
    }

    /// Takes a meter from those that a queue may try, until an instant, give or take how late that may
    /// be, or until something changes.
    pub(super) fn withdraw(
        &mut self,
        meter: MeterSlot,
        queue: QueueSlot,
        wakes: Option<(Timestamp, Span)>,
    ) {
        let Some(crowd) = self.meters[meter].crowd_mut(queue) else { return };
        if let Some(rank) = crowd.offered.take() {
            self.lanes.queue_mut(queue).open.remove((rank, meter));
        }
        if let Some(before) = crowd.wake_at(wakes.map(|(at, _)| at)) {
            self.timers.wakes.remove((before, meter, queue));
        }
        if let Some((at, slack)) = wakes.filter(|(at, _)| *at < Timestamp::MAX) {
            self.timers.wakes.insert((at, meter, queue), slack);
        }
    }

    /// When a queue should look at a meter again where its first head met a blocker.
    pub(super) fn looked_at_again(
        &self,
        meter: MeterSlot,
        queue: QueueSlot,
        blocker: Blocker,
        now: Now,
    ) -> Option<Timestamp> {
        if blocker.cause == Cause::Turn {
            // The others keep their turn as long as someone asks for them. Where one is only expected back, it is told
            // when that is over.
            let crowds = self.meters[meter].crowds.iter().map(|crowd| crowd.queue);
            let seniors = self.meters[meter].senior.map(|lane| self.lanes[lane].queue);
            let others = crowds.chain(seniors).filter(|other| *other != queue);
            let asked_for = others.map(|other| self.lanes.queue(other));
            let until = asked_for.filter(|other| !other.is_paused).map(|other| other.told_until());
            return until.filter(|until| *until > now.at).min();
        }
        let is_on_calendar = self.meters.definition(meter).is_some_and(|d| d.follows_wall());
        match blocker.opening {
            Opening::At(opens) if is_on_calendar => Some(opens.min(now.at.plus(CALENDAR_LOOK))),
            Opening::At(opens) => Some(opens),
            Opening::OnRelease => None,
        }
    }

    /// How late a head may start without a rate being lost.
    pub(super) fn slack(&self, head: Head) -> Span {
        let each = self
            .calls
            .lines_at(head.call)
            .iter()
            .filter_map(|line| Some(self.meters.definition(line.meter)?.slack(line.weight)));
        each.min().unwrap_or(Span::ZERO)
    }

    /// Who has the turn among a queue's heads at a meter: the senior, if nobody of a higher priority
    /// stands there, or else the first.
    pub(super) fn turn_at(&self, meter: MeterSlot, queue: QueueSlot) -> Option<LaneSlot> {
        let book = &self.meters[meter];
        let (first, lane) = book.crowd(queue)?.standing.first()?;
        let senior = book.senior.filter(|senior| {
            self.lanes[*senior].queue == queue
                && self.stands_at(*senior, meter)
                && self.priority(*senior) >= Some(first.priority())
        });
        Some(senior.unwrap_or(lane))
    }

    fn stands_at(&self, lane: LaneSlot, meter: MeterSlot) -> bool {
        self.lanes[lane].head.is_some_and(|head| match head.stand {
            Stand::At { line, .. } => self.calls.lines_at(head.call)[line.index()].meter == meter,
            _ => false,
        })
    }

    fn priority(&self, lane: LaneSlot) -> Option<crate::turn::Priority> {
        self.lanes[lane].head.map(|head| self.calls[head.call].priority)
    }

    fn set_stand(&mut self, lane: LaneSlot, stand: Stand) {
        if let Some(head) = &mut self.lanes[lane].head {
            head.stand = stand;
        }
    }

    /// A head's place at one of its meters.
    pub(super) fn place(&self, lane: LaneSlot, head: Head, line: usize) -> Place {
        let call = &self.calls[head.call];
        let tag = match head.stand {
            Stand::At { line: at, tag } if at.index() == line => tag,
            _ => {
                let meter = self.calls.lines(call)[line].meter;
                let book = &self.meters[meter];
                crate::turn::start(self.lanes[lane].finish(meter, book), book.vtime, book.round)
            }
        };
        Place::new(call.priority, tag, call.arrival)
    }

    /// Who else is at a meter, of those whose queue is asking.
    pub(super) fn company(
        &self,
        lane: Option<LaneSlot>,
        meter: MeterSlot,
        asks: impl Fn(QueueSlot) -> bool,
    ) -> Company {
        let book = &self.meters[meter];
        let firsts = book.crowds.iter().filter(|crowd| asks(crowd.queue));
        let firsts = firsts.filter_map(|crowd| {
            let mut others = crowd.standing.iter().filter(|(_, other)| Some(*other) != lane);
            others.next().map(|(place, _)| place)
        });
        let senior =
            book.senior.filter(|other| Some(*other) != lane && asks(self.lanes[*other].queue));
        let senior = senior.and_then(|other| {
            let head = self.lanes[other].head?;
            let lines = self.calls.lines_at(head.call);
            let line = lines.iter().position(|line| line.meter == meter)?;
            Some(self.place(other, head, line))
        });
        Company { first: firsts.min(), senior }
    }

    /// All that matters to a head at one of its lines.
    pub(super) fn line(
        &self,
        (lane, head): (LaneSlot, Head),
        line: usize,
        now: Now,
    ) -> gate::Line<'_> {
        let Line { meter, weight, .. } = self.calls.lines_at(head.call)[line];
        let own = self.lanes[lane].queue;
        let asks = |queue: QueueSlot| queue == own || self.is_asking(queue, now);
        gate::Line {
            definition: self.meters.definition(meter),
            is_paused: self.meters.is_paused(meter),
            meter: self.meters[meter].meter.as_deref(),
            weight,
            place: self.place(lane, head, line),
            company: self.company(Some(lane), meter, asks),
        }
    }

    fn is_shut(&self, head: Head, line: usize) -> bool {
        let Line { meter, weight, .. } = self.calls.lines_at(head.call)[line];
        let shuts = |definition: &crate::Definition| weight > definition.capacity();
        self.meters.is_paused(meter) || self.meters.definition(meter).is_none_or(shuts)
    }

    /// A limit changed: those it shuts out are set aside, the others at its meters try again.
    pub(super) fn limit_changed(&mut self, limit: super::limits::LimitSlot, wakes_parked: bool) {
        for meter in self.meters.of(limit) {
            self.meter_changed(meter, wakes_parked);
        }
    }

    /// The rules of a meter changed: those they shut out are set aside, the others there try again.
    pub(super) fn meter_changed(&mut self, meter: MeterSlot, wakes_parked: bool) {
        let parked = self.meters.parked(meter).filter(|_| wakes_parked);
        let parked: Vec<_> = parked.collect();
        let crowds = self.meters[meter].crowds.iter();
        let standing: Vec<_> =
            crowds.flat_map(|crowd| crowd.standing.iter().map(|(_, lane)| lane)).collect();
        for lane in parked {
            if let Some(Stand::Parked { line }) = self.lanes[lane].head.map(|head| head.stand) {
                self.note_wait(lane);
                self.leave(lane);
                self.come_to_stand(lane, line.index());
            }
        }
        for lane in standing {
            if let Some(head) = self.lanes[lane].head
                && let Stand::At { line, .. } = head.stand
                && self.is_shut(head, line.index())
            {
                self.note_wait(lane);
                self.leave(lane);
                self.park(lane, line.index());
            }
        }
        self.refresh(meter);
    }
}
