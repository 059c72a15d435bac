//! Where the requests of one process come together: whatever waits while the store is busy goes to it as
//! one change. Who comes alone carries its request itself.

mod carried;
pub(super) mod queue;

use super::agree::agree;
use super::apart::{self, Group};
use super::batch::{Again, Asked, Batch, Request, answer_all};
use super::cells::{Cells, Wanted};
use super::command::Command;
use super::condition::Condition;
use super::memory::Memory;
use super::wants::Wants;
use carried::Carried;
use parking_lot::Mutex;
use queue::{Pace, Queue, TOGETHER_MAX, UnderWay, Waiting};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_core::contract::{Answer, StoreError};

/// Most changes under way of limits that are spread: each is small, and of one server of several.
const SPREAD_MAX: usize = 128;
/// How often something may turn out not to be as it was remembered.
const AGAIN_MAX: usize = 8;

/// Takes requests, and tells what came of them.
#[derive(Clone)]
pub(super) struct Desk {
    door: Arc<Door>,
    clerk: Clerk,
    runtime: Handle,
    /// How the store was when it was last asked.
    pub(super) condition: Arc<Condition>,
}

/// Where requests come in, until the last handle is gone.
struct Door(Arc<Queue>);

impl Drop for Door {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Whether the store answers.
#[derive(Default)]
struct Reach {
    answered: Option<Instant>,
    /// When it was found out of reach last, and why.
    outage: Option<(Instant, StoreError)>,
}

impl Reach {
    /// Takes note of what came of a change that was begun then. One that came to nothing while others
    /// were answered says nothing of the store: at its meter somebody else was always faster.
    fn note(&mut self, (begun, now): (Instant, Instant), outcome: &Answer<()>) {
        let Err(error @ StoreError::Unreachable { .. }) = outcome else {
            self.answered = Some(now);
            return;
        };
        let lately = begun + (now - begun) / 2;
        if self.answered.is_none_or(|answered| answered <= lately) {
            self.outage = Some((now, error.clone()));
        }
    }

    /// Why it is out of reach, if that was found since then.
    fn outage_since(&self, since: Instant) -> Option<StoreError> {
        let (found, error) = self.outage.as_ref()?;
        (since <= *found).then(|| error.clone())
    }
}

impl Desk {
    /// Serves requests on the runtime that this is called on, until the last handle is gone.
    pub(super) fn open(cells: Arc<dyn Cells>, memory: Memory) -> Self {
        let changes_max = cells.changes_max().max(1);
        // Where each meter is a change of its own, all that wait are seen to before the next: two changes
        // of one meter would only be in each other's way.
        let together_max = if cells.writes_together() { changes_max } else { 1 };
        let queue = Queue::new(Pace { changes_max: together_max, shares: cells.shares().max(1) });
        let parts_max = if cells.spreads() { SPREAD_MAX } else { changes_max };
        let changes = Arc::new(Semaphore::new(parts_max));
        let memory = Arc::new(Mutex::new(memory));
        let condition = Arc::<Condition>::default();
        let (agreeing, noting, reach) = (Arc::default(), condition.clone(), Arc::default());
        let clerk = Clerk { cells, memory, changes, agreeing, condition: noting, reach };
        let (runtime, door) = (Handle::current(), Arc::new(Door(queue.clone())));
        tokio::spawn(clerk.clone().serve(Serving(queue)));
        Self { door, clerk, runtime, condition }
    }

    pub(super) async fn ask<C: Command>(&self, command: C) -> Answer<C::Answer> {
        let (request, answer) = Request::new(command);
        // Nothing but what the store decides in one step is carried by who asks: who does not look after it
        // for a while would hold up others, or what is locked.
        let may_carry = request.asks().is_some() && self.clerk.cells.decides_itself();
        let request: Box<dyn Asked> = Box::new(request);
        match may_carry.then(|| self.door.0.alone()).flatten() {
            Some(under_way) => self.carry(request, under_way).await,
            None => self.door.0.push(vec![request])?,
        }
        told(answer).await
    }

    /// Asks all of them, each as a request of its own; fails if one does.
    pub(super) async fn ask_each<C: Command>(&self, commands: Vec<C>) -> Answer<Vec<C::Answer>> {
        let (mut commands, mut answers) = (commands.into_iter(), Vec::new());
        while commands.len() > 0 {
            // No more at a time than go together: others have requests, too.
            let some = commands.by_ref().take(TOGETHER_MAX).map(Request::new);
            let boxed = some.map(|(request, told)| (Box::new(request) as Box<dyn Asked>, told));
            let (requests, told): (Vec<_>, Vec<_>) = boxed.unzip();
            self.door.0.push(requests)?;
            for answer in told {
                answers.push(self::told(answer).await?);
            }
        }
        Ok(answers)
    }

    /// Sees to a request on the caller's own task, which need not wake another and be woken by it. Dropped,
    /// it goes on without the caller.
    async fn carry(&self, request: Box<dyn Asked>, under_way: Arc<UnderWay>) {
        let clerk = self.clerk.clone();
        let doing = Box::pin(async move { clerk.see_to(vec![request], under_way).await });
        Carried::new(doing, self.runtime.clone(), self.door.0.clone()).await;
    }
}

async fn told<T>(answer: oneshot::Receiver<Answer<T>>) -> Answer<T> {
    answer.await.unwrap_or_else(|_| Err(ended()))
}

fn ended() -> StoreError {
    StoreError::Failed { reason: "the runtime on which it was opened has ended".to_owned() }
}

fn keeps_forgetting() -> StoreError {
    let reason = "it keeps forgetting: is something removing its keys?".to_owned();
    StoreError::Failed { reason }
}

/// What came of a change.
enum Made {
    Done,
    /// Nothing yet: its cells do not lie where they were looked for.
    Elsewhere,
}

/// However it ends, those who wait are told that it has.
struct Serving(Arc<Queue>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Clone)]
struct Clerk {
    cells: Arc<dyn Cells>,
    memory: Arc<Mutex<Memory>>,
    /// Bounds the changes under way, where what goes together is made one by one.
    changes: Arc<Semaphore>,
    /// Held by who agrees with the store since when it remembers.
    agreeing: Arc<tokio::sync::Mutex<()>>,
    condition: Arc<Condition>,
    reach: Arc<Mutex<Reach>>,
}

impl Clerk {
    async fn serve(self, serving: Serving) {
        while let Some((requests, under_way)) = serving.0.next().await {
            let requests = self.still_worth_asking(requests, &under_way);
            if requests.is_empty() {
                // Many may have waited for a store that is out of reach.
                tokio::task::yield_now().await;
                continue;
            }
            let clerk = self.clone();
            tokio::spawn(async move { clerk.see_to(requests, under_way).await });
        }
    }

    /// Those that came since the store was found out of reach. The others are told so: who waited with
    /// those for whom that was found out would wait a deadline for each of them.
    fn still_worth_asking(&self, requests: Vec<Waiting>, under_way: &UnderWay) -> Group {
        let outage = self.reach.lock().outage.clone();
        let (mut left, mut told) = (Vec::with_capacity(requests.len()), Vec::new());
        for (since, request) in requests {
            match outage.as_ref().is_some_and(|(found, _)| since <= *found) {
                true => told.push(request),
                false => left.push(request),
            }
        }
        if let Some((_, error)) = outage {
            answer_all(told, &Err(error), under_way);
        }
        left
    }

    /// Those whose cells turn out to lie elsewhere are seen to again.
    async fn see_to(&self, mut requests: Group, under_way: Arc<UnderWay>) {
        for _ in 0..AGAIN_MAX {
            requests = self.see_to_once(requests, &under_way).await;
            if requests.is_empty() {
                return;
            }
        }
        answer_all(requests, &Err(keeps_forgetting()), &under_way);
    }

    async fn see_to_once(&self, requests: Group, under_way: &Arc<UnderWay>) -> Group {
        if !self.cells.writes_together() {
            return self.make_apart(apart::rounds(requests), under_way).await;
        }
        let (together, spread) = self.parted(requests);
        if spread.is_empty() {
            return self.make(self.batch(together, under_way).written_together()).await;
        }
        let together = async {
            match together.is_empty() {
                true => Vec::new(),
                false => self.make(self.batch(together, under_way).written_together()).await,
            }
        };
        let rounds = apart::rounds_by_place(spread, &self.memory.lock());
        let (mut left, others) = tokio::join!(together, self.make_apart(rounds, under_way));
        left.extend(others);
        left
    }

    /// Those whose cells lie together, and the others.
    fn parted(&self, requests: Vec<Box<dyn Asked>>) -> (Group, Group) {
        let memory = self.memory.lock();
        if !memory.has_spread() {
            return (requests, Vec::new());
        }
        requests.into_iter().partition(|request| {
            let mut wants = Wants::default();
            request.wants(&mut wants);
            memory.put_apart(&mut wants);
            !wants.read.iter().chain(&wants.change).any(|cell| cell.kind.is_spread())
        })
    }

    fn batch(&self, requests: Group, under_way: &Arc<UnderWay>) -> Batch {
        Batch::new(requests, self.memory.clone(), under_way.clone())
    }

    /// Makes groups apart from each other; hands back those whose cells turn out to lie elsewhere.
    async fn make_apart(&self, rounds: Vec<Vec<Group>>, under_way: &Arc<UnderWay>) -> Group {
        let (begun, mut left) = (Instant::now(), Vec::new());
        for round in rounds {
            let mut parts = JoinSet::new();
            for part in round.into_iter().map(|group| self.batch(group, under_way)) {
                let clerk = self.clone();
                parts.spawn(async move {
                    let _permit = clerk.changes.acquire().await;
                    // Who waited for those for whom it was found out need not find out again.
                    let outage = clerk.reach.lock().outage_since(begun);
                    match outage {
                        Some(error) => {
                            part.answer(Err(error));
                            Vec::new()
                        }
                        None => clerk.make(part).await,
                    }
                });
            }
            while let Some(made) = parts.join_next().await {
                left.extend(made.into_iter().flatten());
            }
        }
        left
    }

    /// Answers all, or hands back those whose cells turn out to lie elsewhere.
    async fn make(&self, mut batch: Batch) -> Group {
        let begun = Instant::now();
        let outcome = match self.made(&mut batch).await {
            Ok(Made::Elsewhere) => return batch.into_requests(),
            Ok(Made::Done) => Ok(()),
            Err(error) => Err(error),
        };
        self.reach.lock().note((begun, Instant::now()), &outcome);
        batch.answer(outcome);
        Vec::new()
    }

    async fn made(&self, batch: &mut Batch) -> Answer<Made> {
        for _ in 0..AGAIN_MAX {
            let (read, change) = batch.wanted();
            let wanted = Wanted { read: &read, change: &change };
            self.condition.noted(self.cells.change(wanted, batch).await)?;
            match batch.came()? {
                None => return Ok(Made::Done),
                Some(Again::Epoch) => self.agree().await?,
                Some(Again::Own) => {}
                Some(Again::Elsewhere) => return Ok(Made::Elsewhere),
            }
        }
        Err(keeps_forgetting())
    }

    async fn agree(&self) -> Answer<()> {
        let before = self.memory.lock().epoch();
        let _alone = self.agreeing.lock().await;
        // Others have done it meanwhile.
        if self.memory.lock().epoch() != before {
            return Ok(());
        }
        self.condition.noted(agree(&self.cells, &self.memory).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_change_that_fails_while_others_are_answered_is_no_outage() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let away = Err(StoreError::Unreachable { reason: "nobody is there".to_owned() });
        let mut reach = Reach::default();
        reach.note((begun, begun + second), &Ok(()));
        reach.note((begun, begun + second), &away);
        assert_eq!(reach.outage_since(begun), None);
        reach.note((begun, begun + 3 * second), &away);
        let (before, after) = (begun + 3 * second, begun + 4 * second);
        assert!(reach.outage_since(before).is_some(), "it has answered nobody for a while");
        assert_eq!(reach.outage_since(after), None);
    }
}
