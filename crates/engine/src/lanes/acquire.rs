//! Waiting one's turn in a store: a call in a lane of its own, and nobody else's.
//!
//! Who waits asks for its call by the name of its lane. One chore claims for all of them. What is left
//! of a process that ended is claimed by nobody who knows it, and is taken back.

use super::claims::Patience;
use super::holds::{Doing, KeptPass};
use super::{Engine, Parts};
use crate::ask::Ask;
use crate::error::Error;
use crate::pass::Pass;
use crate::report;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::oneshot;
use tollgate_core::contract::{CallsQuery, Lanes, MeterName, Meters, StoreError};
use tollgate_core::lanes::{Act, CallId, Lease, NewCall, Settle, Settlement, Started};
use tollgate_core::{Cause, LaneName, QueueName, Span, Standing, Timestamp, Toll};

use super::consume::Asked;
use super::holds::HOLD;

/// The queue of all who wait so. Visible as any other: who waits for a pass can be seen and explained.
pub(super) const QUEUE: &str = "tollgate:acquire";
/// Most that one claim takes.
const MOST: usize = 1_000;
/// How long one claim waits before it is made anew.
const WAIT: Span = Span::from_secs(10);
/// How long a store that fails a claim is left alone.
const AGAIN: Span = Span::from_secs(1);

/// Who waits for the name of its call.
type Reply = oneshot::Sender<Result<Option<CallId>, Error>>;

/// Who waits, by the lane of its call.
pub(super) struct Waiting {
    /// Tells the lanes of this run from those of others.
    run: Timestamp,
    /// Where they wait: a node calls its own, and nobody else's.
    queue: Box<str>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    waiting: HashMap<LaneName, Waiter>,
    named: u64,
    is_claiming: bool,
}

struct Waiter {
    called: oneshot::Sender<Started>,
    /// Known once it is enqueued.
    call: Option<CallId>,
}

impl Waiting {
    pub(super) fn new(run: Timestamp) -> Self {
        Self { run, queue: QUEUE.into(), book: Mutex::default() }
    }

    /// Who waits at one of several nodes, in a queue of its own.
    pub(super) fn of_node(run: Timestamp, node: &str) -> Self {
        Self { queue: format!("{QUEUE}:{node}").into(), ..Self::new(run) }
    }

    /// Where they wait.
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    /// What the node is called among others, if there are any.
    pub(super) fn node(&self) -> Option<&str> {
        self.queue.strip_prefix(QUEUE)?.strip_prefix(':')
    }
}

/// An engine as it is asked for passes, whatever its store is.
pub(crate) trait Acquires: Send + Sync {
    fn acquire<'a>(&self, ask: Ask<'a>, max_wait: Option<Span>) -> Doing<'a, Result<Pass, Error>>;
}

impl<S: Meters + 'static> Acquires for Engine<S> {
    fn acquire<'a>(&self, ask: Ask<'a>, max_wait: Option<Span>) -> Doing<'a, Result<Pass, Error>> {
        let engine = self.clone();
        Box::pin(async move { engine.wait_for(&ask, max_wait).await.inspect_err(report::failed) })
    }
}

impl<S: Meters + 'static> Engine<S> {
    /// Waits until all tolls can be paid, in turn: higher priority first, then first come, first
    /// served. In a store of limits alone that is so in this process.
    pub fn acquire<'a>(&self, ask: impl crate::ask::Asking<'a>) -> crate::Acquire<'a> {
        crate::Acquire::kept(Arc::new(self.clone()), ask.into_ask())
    }

    async fn wait_for(&self, ask: &Ask<'_>, max_wait: Option<Span>) -> Result<Pass, Error> {
        let clock = &self.parts.pulse.clock;
        let until = max_wait.map(|wait| clock.now().plus(wait));
        let wait = async || {
            if let Some(error) = self.parts.reach.left_alone() {
                return Err(error);
            }
            let asked = Asked { is_open: true, ..self.asked_in_reach(ask, until).await? };
            let left = until.map(|until| until.since(clock.now()));
            self.parts.ways.acquire(self.clone(), asked, left).await
        };
        loop {
            let pass = match wait().await {
                // As when it is consumed.
                Err(error) if self.parts.was_removed(ask, &error) => wait().await,
                pass => pass,
            };
            match pass {
                Err(error) if error.may_pass() && self.parts.reach.does_without() => {
                    if let Some(pass) = self.wait_alone(ask, until, &error).await? {
                        return Ok(pass);
                    }
                }
                pass => return pass,
            }
        }
    }

    /// Asks the store once for one that would wait its turn.
    pub(super) async fn pay_in_turn(&self, ask: &Ask<'_>) -> Result<Pass, Error> {
        let asked = Asked { is_open: true, ..self.parts.asked(ask).await? };
        self.pay_now(&asked).await
    }

    /// Asks the store once. If this is dropped before there is an answer, what it granted is handed back.
    async fn pay_now(&self, asked: &Asked) -> Result<Pass, Error> {
        self.parts.check_turn(&asked.ask)?;
        let said = self.ask_now(asked, Vec::new()).await?;
        Ok(said.map_err(|error| self.parts.refused(error))?())
    }
}

impl<S: Meters + 'static> Engine<S> {
    /// What is asked for. Who waits for a store that is out of reach waits for what must be looked up
    /// there, too.
    async fn asked_in_reach(
        &self,
        ask: &Ask<'_>,
        until: Option<Timestamp>,
    ) -> Result<Asked, Error> {
        let (parts, mut failures) = (&self.parts, 0);
        loop {
            let asked = parts.asked(ask).await;
            let now = parts.pulse.clock.now();
            let is_late = until.is_some_and(|until| until <= now) || parts.pulse.has_ended();
            match asked {
                Err(error)
                    if error.may_pass()
                        && parts.ways.is_patient()
                        && !parts.reach.does_without()
                        && !is_late =>
                {
                    failures += 1;
                    let again = now.plus(parts.reach.again_after(failures));
                    parts.pulse.sleep_until(again.min(until.unwrap_or(again))).await;
                }
                asked => return asked,
            }
        }
    }
}

impl<S: Lanes + 'static> Engine<S> {
    pub(super) async fn wait_in_lane(
        &self,
        asked: Asked,
        max_wait: Option<Span>,
    ) -> Result<Pass, Error> {
        let until = max_wait.map(|wait| self.parts.pulse.clock.now().plus(wait));
        // Who need not wait pays at once: nobody is overtaken by that.
        match self.pay_now(&asked).await {
            Err(Error::Refused(refusal)) => {
                let is_too_long = |wait: Span| refusal.retry_after.is_some_and(|span| span > wait);
                // Slots are told to be free when their holds expire, and may be at any time before: for those
                // who wait for them already, too.
                let is_known = match refusal.cause {
                    Cause::Slots => false,
                    Cause::Turn => !asked.has_slots,
                    _ => true,
                };
                if is_known && max_wait.is_some_and(is_too_long) {
                    return Err(refusal.into());
                }
            }
            outcome => return outcome,
        }
        let mut place = self.line_up(&asked).await?;
        if let Some(started) = place.called(until).await {
            drop(place);
            return Ok(self.started(started, asked).await);
        }
        // Given up: what it would be told now, without itself in the line, is the answer.
        match place.leave().await {
            Some(started) => Ok(self.started(started, asked).await),
            None => self.pay_now(&asked).await,
        }
    }

    async fn line_up(&self, asked: &Asked) -> Result<InLine<S>, Error> {
        let parts = &self.parts;
        self.claim_for_all().await?;
        let (sender, called) = oneshot::channel();
        let lane = {
            let mut book = parts.waiting.book.lock();
            book.named += 1;
            let lane = format!("{}-{}", parts.waiting.run.as_nanos(), book.named);
            let lane = LaneName::new(&lane)?;
            book.waiting.insert(lane.clone(), Waiter { called: sender, call: None });
            lane
        };
        let (reply, named) = oneshot::channel();
        // From here on the place is given up if this is dropped.
        let mut place =
            InLine { parts: parts.clone(), lane: lane.clone(), named, call: None, called };
        let call = NewCall {
            tolls: asked.ask.tolls.clone(),
            priority: asked.ask.priority,
            ..NewCall::new(QueueName::new(&parts.waiting.queue)?, lane)
        };
        // Who leaves before it has a name leaves nothing behind: the driver sees to that.
        let enqueue = parts.clone();
        parts.pulse.see_through(async move { enqueue.enqueue_for(call, reply).await });
        let closed = || StoreError::Failed { reason: "it is closed".to_owned() };
        place.call = (&mut place.named).await.map_err(|_| closed())??;
        Ok(place)
    }

    async fn started(&self, started: Started, asked: Asked) -> Pass {
        let Asked { ask, estimates, has_slots, is_open: _ } = asked;
        let limits = || ask.tolls.iter().map(|toll| toll.limit.clone());
        let open = if estimates.is_empty() { limits().collect() } else { estimates };
        // If this is dropped meanwhile, the call is handed back: nobody has started it.
        let mut held = KeptPass::of_lease(self.clone(), started.lease, has_slots, open);
        let pass = Pass::new(Span::ZERO, self.parts.tightest(&ask.tolls).await);
        held.is_given();
        pass.held(Box::new(held))
    }

    /// Sees to it that someone claims for all who wait.
    async fn claim_for_all(&self) -> Result<(), Error> {
        if self.parts.waiting.book.lock().is_claiming {
            return Ok(());
        }
        self.parts.be_there().await?;
        if !std::mem::replace(&mut self.parts.waiting.book.lock().is_claiming, true) {
            let parts = self.parts.clone();
            self.parts.pulse.go_on_with(async move { parts.call_all().await });
        }
        Ok(())
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Takes back the calls of those who waited in a process that ended.
    pub(super) async fn forget_who_waited(&self, queue: &str) -> Result<(), Error> {
        let (queue, mut after) = (QueueName::new(queue)?, None);
        loop {
            let (lane, state, most) = (None, None, MOST);
            let query = CallsQuery { queue: queue.clone(), lane, state, after, most };
            let left = self.store.calls(query).await?;
            let Some(last) = left.last() else { return Ok(()) };
            after = Some(last.id);
            let cancel = left.iter().map(|call| call.id).collect();
            let _ = self.act(Act { cancel, ..Act::default() }).await?;
        }
    }

    /// Calls whoever's turn has come, for as long as the engine runs.
    async fn call_all(&self) {
        let Ok(queue) = QueueName::new(&self.waiting.queue) else { return };
        let mut looked = self.pulse.clock.now();
        // Between two claims, too, somebody asks: nobody may overtake those who wait.
        let _asking = self.claims.come(&queue, Timestamp::MAX, &self.pulse);
        let patience = Patience { wait: WAIT, lingers: WAIT };
        loop {
            let claimed = match self.claim(&queue, MOST, patience, Some(HOLD)).await {
                Ok(claimed) => claimed,
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "nobody can be called who waits for a pass");
                    self.pulse.sleep(AGAIN).await;
                    continue;
                }
                // Who waits finds out why when it asks again.
                Err(_) => {
                    let mut book = self.waiting.book.lock();
                    book.is_claiming = false;
                    return book.waiting.clear();
                }
            };
            for claimed in claimed {
                let waiting = self.waiting.book.lock().waiting.remove(&claimed.started.lane);
                let lease = claimed.started.lease;
                let is_called =
                    waiting.is_some_and(|waiter| waiter.called.send(claimed.started).is_ok());
                if !is_called {
                    self.give_up(lease).await;
                }
            }
            let now = self.pulse.clock.now();
            if now.since(looked) >= WAIT {
                looked = now;
                self.let_go_who_was_cancelled().await;
                if self.waiting.node().is_some()
                    && let Err(error) = self.be_there().await
                {
                    tracing::warn!(%error, "others are not told that somebody waits for a pass here");
                }
            }
        }
    }

    /// Who waits for a call that an operator took back waits for nothing.
    async fn let_go_who_was_cancelled(&self) {
        let named = |(lane, waiter): (&LaneName, &Waiter)| Some((lane.clone(), waiter.call?));
        let named: Vec<_> = self.waiting.book.lock().waiting.iter().filter_map(named).collect();
        let (lanes, calls): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let Ok(found) = self.store.look(calls).await else { return };
        let mut book = self.waiting.book.lock();
        for (lane, _) in lanes.iter().zip(found).filter(|(_, found)| found.is_none()) {
            book.waiting.remove(lane);
        }
    }

    /// Which of a call's meters has the least left, and how it stands.
    async fn tightest(&self, tolls: &[Toll]) -> (usize, Standing) {
        let mut meters: Vec<MeterName> = Vec::new();
        for toll in tolls {
            let meter = (toll.limit.clone(), toll.partition.clone());
            if !meters.contains(&meter) {
                meters.push(meter);
            }
        }
        let states = self.store.inspect(meters).await.unwrap_or_default().into_iter().enumerate();
        let known = states.filter_map(|(at, state)| Some((at, state?.standing)));
        let tightest = known.min_by_key(|(_, standing)| standing.remaining);
        tightest.unwrap_or((0, Standing::NOTHING))
    }

    /// Enqueues a call for who waits to hear its name, and takes it back if nobody does.
    async fn enqueue_for(&self, call: NewCall, reply: Reply) {
        let lane = call.lane.clone();
        let acted = self.act(Act { enqueue: vec![call], ..Act::default() }).await;
        let named = acted.map(|acted| acted.enqueued.first().copied());
        if let Ok(call) = &named
            && let Some(waiter) = self.waiting.book.lock().waiting.get_mut(&lane)
        {
            waiter.call = *call;
        }
        if let Err(Ok(Some(call))) = reply.send(named) {
            self.cancel(call).await;
        }
    }

    async fn cancel(&self, call: CallId) {
        let cancel = Act { cancel: vec![call], ..Act::default() };
        if let Err(error) = self.act(cancel).await {
            tracing::warn!(%error, "a call that nobody waits for could not be cancelled");
        }
    }

    /// Takes back a call that nobody waits for any more.
    async fn give_up(&self, lease: Lease) {
        let settle = vec![Settle::new(lease, Settlement::Release)];
        let act = Act { settle, cancel: vec![lease.call], ..Act::default() };
        if let Err(error) = self.act(act).await {
            tracing::warn!(%error, "a call that nobody waits for could not be taken back");
        }
    }
}

/// A place in line.
struct InLine<S: Lanes + 'static> {
    parts: Arc<Parts<S>>,
    lane: LaneName,
    /// Tells the name of its call once it is enqueued.
    named: oneshot::Receiver<Result<Option<CallId>, Error>>,
    call: Option<CallId>,
    called: oneshot::Receiver<Started>,
}

impl<S: Lanes + 'static> InLine<S> {
    /// Waits to be called, until then at the latest.
    async fn called(&mut self, until: Option<Timestamp>) -> Option<Started> {
        // Also ready when nobody would call any more.
        let late = self.parts.pulse.sleep_until(until.unwrap_or(Timestamp::MAX));
        let mut late = pin!(late);
        let started = poll_fn(|context| {
            if let Poll::Ready(started) = pin!(&mut self.called).poll(context) {
                return Poll::Ready(started.ok());
            }
            late.as_mut().poll(context).map(|()| None)
        })
        .await;
        if started.is_some() {
            self.call = None;
        }
        started
    }

    /// Gives the place up, and waits until it is, unless it was called just now.
    async fn leave(mut self) -> Option<Started> {
        let is_waiting = self.parts.waiting.book.lock().waiting.remove(&self.lane).is_some();
        let call = self.call.take();
        if !is_waiting {
            return self.called.try_recv().ok();
        }
        let call = call?;
        let (parts, (reply, left)) = (self.parts.clone(), oneshot::channel::<()>());
        self.parts.pulse.see_through(async move {
            parts.cancel(call).await;
            drop(reply);
        });
        let _ = left.await;
        None
    }
}

impl<S: Lanes + 'static> Drop for InLine<S> {
    fn drop(&mut self) {
        let is_waiting = self.parts.waiting.book.lock().waiting.remove(&self.lane).is_some();
        let parts = self.parts.clone();
        if !is_waiting {
            // It was called, and does not come: it is handed back as if it had not been.
            self.called.close();
            if let Ok(started) = self.called.try_recv() {
                let give_up = async move { parts.give_up(started.lease).await };
                self.parts.pulse.see_through(give_up);
            }
            return;
        }
        // One that is not named yet is taken back by whoever would name it.
        self.named.close();
        let named = self.named.try_recv().ok().and_then(|named| named.ok().flatten());
        let Some(call) = self.call.or(named) else { return };
        self.parts.pulse.see_through(async move { parts.cancel(call).await });
    }
}
