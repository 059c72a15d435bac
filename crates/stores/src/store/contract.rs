//! The contracts, as commands to the home.

use super::Store;
use super::command::Kind;
use super::home::Body;
use super::state::State;
use tollgate_core::contract::{
    Among, Answer, Ask, AskError, BusyLanes, BusyMeters, CallView, CallsQuery, Configure,
    ConfigureError, Cost, EventCursor, EventPage, HistoryPage, HistoryQuery, LaneState, Lanes,
    LimitView, MeterError, MeterName, MeterPage, MeterState, Meters, Onward, Paid, QueueState,
    Receipt, ReceiptError, Totals, Woken,
};
use tollgate_core::lanes::{
    Act, ActError, Acted, CallId, Claim, Claimed, End, Event, Explanation, Lease, Payload,
    QueueError, QueueSpec, Record, Scope, Watch,
};
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, QueueName, Span, Standing, Timestamp,
};

impl Meters for Store {
    async fn now(&self) -> Answer<Now> {
        Ok(self.home.now())
    }

    async fn configure(&self, change: Configure) -> Answer<Result<(), ConfigureError>> {
        self.tell_of(Kind::Change, change.bytes(), move |state, now| {
            state.limits_changed(change.named());
            state.scheduler.configure(change, now)
        })
        .await
    }

    async fn consume(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>> {
        self.tell(Kind::Consume, move |state, now| state.consume(&asks, now)).await
    }

    async fn peek(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Standing, AskError>>> {
        self.tell(Kind::Change, move |state, now| {
            asks.iter().map(|ask| state.scheduler.peek(ask, now)).collect()
        })
        .await
    }

    async fn settle(
        &self,
        receipts: Vec<(Receipt, Cost)>,
    ) -> Answer<Vec<Result<(), ReceiptError>>> {
        self.tell(Kind::Change, move |state, now| {
            let each = receipts.iter();
            each.map(|(receipt, cost)| state.scheduler.settle_receipt(receipt, cost, now)).collect()
        })
        .await
    }

    async fn renew(
        &self,
        receipts: Vec<Receipt>,
        life: Span,
    ) -> Answer<Vec<Result<Receipt, ReceiptError>>> {
        self.tell(Kind::Renew, move |state, now| {
            let each = receipts.iter();
            each.map(|receipt| state.scheduler.renew_receipt(receipt, life, now)).collect()
        })
        .await
    }

    async fn inspect(&self, meters: Vec<MeterName>) -> Answer<Vec<Option<MeterState>>> {
        self.tell(Kind::Look, move |state, now| {
            meters.iter().map(|meter| state.scheduler.inspect(meter, now)).collect()
        })
        .await
    }

    async fn reopen(&self, (limit, partition): MeterName) -> Answer<()> {
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.reopen(&limit, partition.as_ref(), now);
        })
        .await
    }

    async fn close(
        &self,
        meter: MeterName,
        span: Span,
        reason: String,
    ) -> Answer<Result<(), MeterError>> {
        self.tell(Kind::Change, move |state, now| state.scheduler.close(&meter, span, &reason, now))
            .await
    }

    async fn reset(&self, meter: MeterName) -> Answer<Result<(), MeterError>> {
        self.tell(Kind::Change, move |state, now| state.scheduler.reset(&meter, now)).await
    }

    async fn records(&self, keys: Vec<Key>) -> Answer<Vec<Option<Record>>> {
        // A revision that was told is never given again.
        self.tell(Kind::Change, move |state, _| {
            keys.iter().map(|key| state.scheduler.record(key).cloned()).collect()
        })
        .await
    }

    async fn limits(&self, after: Option<LimitName>, most: usize) -> Answer<Vec<LimitView>> {
        self.tell(Kind::Look, move |state, now| state.scheduler.limits(after.as_ref(), most, now))
            .await
    }
}

impl Lanes for Store {
    async fn define_queue(
        &self,
        queue: QueueName,
        spec: QueueSpec,
    ) -> Answer<Result<(), QueueError>> {
        self.tell(Kind::Change, move |state, now| state.scheduler.define_queue(&queue, spec, now))
            .await
    }

    async fn remove_queue(&self, queue: QueueName) -> Answer<Result<bool, QueueError>> {
        self.tell(Kind::Change, move |state, now| state.scheduler.remove_queue(&queue, now)).await
    }

    async fn make(&self, acts: &mut [Act]) -> Answer<Vec<Result<Acted, ActError>>> {
        self.make_all(acts).await
    }

    async fn act(&self, acts: Vec<Act>) -> Answer<Vec<Result<Acted, ActError>>> {
        self.act_all(acts).await
    }

    async fn claim(&self, claim: Claim) -> Answer<Vec<Claimed>> {
        self.claim_calls(claim, false).await.map(|(claimed, _)| claimed)
    }

    async fn claim_and_leave(&self, claim: Claim) -> Answer<(Vec<Claimed>, bool)> {
        self.claim_calls(claim, true).await
    }

    async fn ask(&self, queue: QueueName, until: Timestamp) -> Answer<()> {
        self.tell(Kind::Change, move |state, now| state.scheduler.ask(&queue, until, now)).await
    }

    async fn renew_leases(&self, leases: Vec<Lease>, lease: Span) -> Answer<Vec<bool>> {
        self.tell(Kind::Renew, move |state, now| state.scheduler.renew(&leases, lease, now)).await
    }

    async fn pause(&self, scope: Scope) -> Answer<()> {
        self.tell(Kind::Change, move |state, now| state.scheduler.pause(&scope, now)).await
    }

    async fn resume(&self, scope: Scope) -> Answer<()> {
        self.tell(Kind::Change, move |state, now| state.scheduler.resume(&scope, now)).await
    }

    async fn weigh(&self, queue: QueueName, lane: LaneName, weight: u32) -> Answer<()> {
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.weigh(&queue, &lane, weight, now);
        })
        .await
    }

    async fn advance(&self) -> Answer<()> {
        self.tell(Kind::Advance, |state, now| {
            state.due_told = None;
            state.scheduler.advance(now);
            state.take_back_slices(now);
        })
        .await
    }

    async fn next_due(&self) -> Answer<Option<Timestamp>> {
        self.tell(Kind::Look, |state, now| state.scheduler.next_due(now)).await
    }

    async fn woken(&self) -> Answer<Woken> {
        self.home.listeners().woken.take().await
    }

    async fn explain(&self, calls: Vec<CallId>) -> Answer<Vec<Option<Explanation>>> {
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            calls.into_iter().map(|id| state.scheduler.explain(id, now)).collect()
        })
        .await
    }

    async fn ends(&self, calls: Vec<CallId>) -> Answer<Vec<Option<End>>> {
        // An end that was told has happened, whatever comes.
        self.tell(Kind::Change, |state, now| state.scheduler.advance(now)).await?;
        let ends = self.tell(Kind::Change, move |state, _| {
            let is_there = |id| state.scheduler.located(id).is_some();
            calls.into_iter().map(|id| (id, state.end(id), is_there(id))).collect::<Vec<_>>()
        });
        let ends = ends.await?;
        let is_forgotten =
            |(_, end, is_there): &(CallId, Option<End>, bool)| end.is_none() && !is_there;
        if !ends.iter().any(is_forgotten) {
            return Ok(ends.into_iter().map(|(_, end, _)| end).collect());
        }
        let past = self.past_now().await?;
        let mut told = Vec::with_capacity(ends.len());
        for known in ends {
            told.push(match past {
                Some(past) if is_forgotten(&known) => {
                    // The last one: a dead call that was cancelled, or revived, ended twice.
                    past.find(known.0).await?.last().and_then(Event::end)
                }
                _ => known.1,
            });
        }
        Ok(told)
    }

    async fn events(&self, after: Option<EventCursor>, most: usize) -> Answer<EventPage> {
        let stream = &self.home.listeners().stream;
        if !stream.is_on() {
            let stream = stream.clone();
            let watch = move |state: &mut State, _: Now| {
                stream.turn_on();
                state.scheduler.watch(Watch::Everything);
            };
            self.tell(Kind::Look, watch).await?;
        }
        stream.page(after, most).await
    }

    async fn histories(&self, calls: Vec<CallId>) -> Answer<Vec<Vec<Event>>> {
        let Some(past) = self.past_now().await? else { return Ok(vec![Vec::new(); calls.len()]) };
        let mut histories = Vec::with_capacity(calls.len());
        for call in calls {
            histories.push(past.find(call).await?);
        }
        Ok(histories)
    }

    async fn history(&self, query: HistoryQuery) -> Answer<HistoryPage> {
        match self.past_now().await? {
            Some(past) => past.page(&query).await,
            None => Ok(HistoryPage::default()),
        }
    }

    async fn queues(&self, after: Option<QueueName>, most: usize) -> Answer<Vec<QueueState>> {
        self.tell(Kind::Look, move |state, _| state.scheduler.queues(after.as_ref(), most)).await
    }

    async fn lanes(
        &self,
        queue: QueueName,
        after: Option<LaneName>,
        most: usize,
    ) -> Answer<Option<Vec<LaneState>>> {
        // The name of a call that was told is never given to another.
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            state.scheduler.lanes(&queue, after.as_ref(), most)
        })
        .await
    }

    async fn lane(&self, queue: QueueName, lane: LaneName) -> Answer<Option<LaneState>> {
        // As with lanes.
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            state.scheduler.lane(&queue, &lane)
        })
        .await
    }

    async fn calls(&self, query: CallsQuery) -> Answer<Vec<CallView>> {
        // As with lanes.
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            state.scheduler.calls(&query, now)
        })
        .await
    }

    async fn look(&self, calls: Vec<CallId>) -> Answer<Vec<Option<CallView>>> {
        // A death that was told has happened, whatever comes.
        self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            state.scheduler.look(&calls, now)
        })
        .await
    }

    async fn payloads(&self, calls: Vec<CallId>) -> Answer<Vec<Option<Payload>>> {
        let found = self.tell(Kind::Change, move |state, now| {
            state.scheduler.advance(now);
            calls.iter().map(|id| (*id, state.body(*id))).collect::<Vec<_>>()
        });
        let bodies = self.bodies(found.await?, usize::MAX).await.into_iter();
        let payloads = bodies.map(|body| match body? {
            Body::There(payload) => Ok(Some(payload)),
            Body::Gone => Ok(None),
            Body::Damaged(reason) => {
                tracing::error!(reason, "a body cannot be read");
                Ok(None)
            }
        });
        payloads.collect()
    }

    async fn meters(
        &self,
        limit: LimitName,
        after: Option<Partition>,
        most: usize,
    ) -> Answer<Option<MeterPage>> {
        self.tell(Kind::Look, move |state, now| {
            state.scheduler.meters(&limit, after.as_ref(), most, now)
        })
        .await
    }

    async fn busiest_lanes(&self, among: Among, most: usize, from: Onward) -> Answer<BusyLanes> {
        self.tell(Kind::Look, move |state, _| state.scheduler.busiest_lanes(&among, most, from))
            .await
    }

    async fn busiest_meters(&self, among: Among, most: usize, from: Onward) -> Answer<BusyMeters> {
        self.tell(Kind::Look, move |state, now| {
            state.scheduler.busiest_meters(&among, most, from, now)
        })
        .await
    }

    async fn totals(&self) -> Answer<Totals> {
        self.tell(Kind::Look, |state, _| state.totals()).await
    }

    async fn records_of(
        &self,
        prefix: String,
        after: Option<Key>,
        most: usize,
    ) -> Answer<Vec<(Key, Record)>> {
        // A revision that was told is never given again.
        self.tell(Kind::Change, move |state, _| {
            state.scheduler.records_of(&prefix, after.as_ref(), most)
        })
        .await
    }
}
