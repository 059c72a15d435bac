//! Units taken ahead: a process pays for a slice of a meter, and then decides by itself for as long as the
//! limit lends it. What is left is given back.
//!
//! The limit is kept whatever happens. What is used was paid before, and no longer before than the limit's
//! guard covers; a process that dies leaves its slice spent.

use super::clock::rest_until;
use super::command::{Lend, Lent, SettleLine};
use super::desk::Desk;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_core::contract::{
    Answer, Ask, AskError, MeterName, Paid, PaidLine, Receipt, StoreError,
};
use tollgate_core::{LimitName, Now, Payment, Standing, Timestamp};

/// Parts of the table, so that tasks on several cores seldom meet.
const SHARDS: usize = 16;
/// Most slices in one of them: who comes beyond asks the store.
const SLICES_MAX: usize = 4_096;
/// A slice is no more than this part of what a meter holds: the others are to have theirs.
const SLICE_PART: u64 = 4;

/// Limits that lend, as far as is known.
pub(super) type Lending = Arc<RwLock<HashSet<LimitName>>>;

/// Who waits for the first part of a slice.
type Reply = oneshot::Sender<Answer<Result<Paid, AskError>>>;

/// The slices of a process.
pub(super) struct Ahead {
    lending: Lending,
    hashing: RandomState,
    shards: [Mutex<HashMap<MeterName, Slice>>; SHARDS],
}

/// What a process has taken of one meter.
struct Slice {
    left: u64,
    /// From then on it is not to be used.
    until: Instant,
    /// When it was paid, and how the meter stood then.
    paid: Timestamp,
    standing: Standing,
    /// What was paid for it, and how much was taken; `None` between two slices.
    taken: Option<(PaidLine, u64)>,
    /// How much to take next.
    want: u64,
    is_fetching: bool,
    /// What is being fetched is not to be used: the meter was changed meanwhile.
    is_void: bool,
}

/// What becomes of an ask here.
enum Here {
    Granted(Paid),
    /// Take a slice of so much.
    Fetch(u64),
    /// Ask the store.
    Elsewhere,
}

impl Ahead {
    pub(super) fn new(lending: Lending) -> Arc<Self> {
        let shards = std::array::from_fn(|_| Mutex::default());
        Arc::new(Self { lending, hashing: RandomState::new(), shards })
    }

    /// Decides an ask by what was taken ahead, or takes ahead for it; `None`: the store has to be asked.
    pub(super) async fn consume(
        self: &Arc<Self>,
        ask: &Ask,
        desk: &Desk,
    ) -> Option<Answer<Result<Paid, AskError>>> {
        // One whose receipt is settled later has to be paid by itself.
        let ([toll], None, true) = (&ask.tolls[..], ask.delay_max, ask.life.is_zero()) else {
            return None;
        };
        if !self.lending.read().contains(&toll.limit) {
            return None;
        }
        let name = (toll.limit.clone(), toll.partition.clone());
        match self.here(&name, toll.weight) {
            Here::Granted(paid) => Some(Ok(Ok(paid))),
            Here::Elsewhere => None,
            Here::Fetch(want) => {
                let (reply, answer) = oneshot::channel();
                let (ahead, desk, ask) = (self.clone(), desk.clone(), ask.clone());
                // Seen through, also if nobody waits for it any more.
                tokio::spawn(ahead.fetch(name, ask, want, (desk, reply)));
                let ended = || StoreError::Failed { reason: "its runtime has ended".to_owned() };
                Some(answer.await.unwrap_or_else(|_| Err(ended())))
            }
        }
    }

    fn here(&self, name: &MeterName, weight: u64) -> Here {
        let mut shard = self.shard(name).lock();
        let now = Instant::now();
        let Some(slice) = shard.get_mut(name) else {
            if shard.len() >= SLICES_MAX {
                shard.retain(|_, slice| slice.until > now || slice.is_fetching);
            }
            if shard.len() >= SLICES_MAX {
                return Here::Elsewhere;
            }
            shard.insert(name.clone(), Slice::fetched_first(weight, now));
            return Here::Fetch(weight);
        };
        if weight > 0 && slice.left >= weight && slice.until > now {
            slice.left -= weight;
            return Here::Granted(slice.grant(name, weight));
        }
        if slice.is_fetching {
            return Here::Elsewhere;
        }
        slice.is_fetching = true;
        // What was used up before its time was too little.
        if slice.until > now {
            slice.want = slice.want.saturating_mul(2);
        }
        Here::Fetch(slice.want.max(weight))
    }

    /// Takes a slice, of which the ask that came first has its part; gives back what is left of it in
    /// the end.
    async fn fetch(
        self: Arc<Self>,
        name: MeterName,
        ask: Ask,
        want: u64,
        (desk, reply): (Desk, Reply),
    ) {
        // Counted from before it was paid: so it is never held for longer than the rules lend.
        let begun = Instant::now();
        let lent = match desk.ask(Lend { ask, want, part: SLICE_PART }).await {
            Ok(Ok(lent)) => lent,
            nothing => {
                self.change(&name, |slice| slice.fetched_nothing(nothing.is_ok()));
                let _ = reply.send(nothing.map(|refused| refused.map(|lent| lent.paid)));
                return;
            }
        };
        let until = begun + Duration::from(lent.ahead);
        let (paid, over) = self.install(&name, lent, (want, until));
        // Who does not wait any more has paid.
        let _ = reply.send(Ok(Ok(paid)));
        give_back(over, &desk).await;
        rest_until(until).await;
        let over = self.change(&name, |slice| slice.end(until)).flatten();
        give_back(over.into_iter().collect(), &desk).await;
    }

    /// Puts a slice in its place; says what the ask is told that came for it, and what is given back.
    fn install(
        &self,
        name: &MeterName,
        lent: Lent,
        (want, until): (u64, Instant),
    ) -> (Paid, Vec<Over>) {
        let Lent { paid, weight, units, .. } = lent;
        let mut over = Vec::new();
        let told = self.change(name, |slice| {
            over.extend(slice.end(slice.until));
            // There was not as much: others share it.
            let next = if units < want { (units / 2).max(1) } else { want.max(weight) };
            let is_void = slice.is_void;
            *slice = Slice {
                left: units - weight,
                until,
                paid: paid.starts,
                standing: paid.standing,
                taken: paid.receipt.lines.first().cloned().map(|line| (line, units)),
                want: next,
                is_fetching: false,
                is_void: false,
            };
            let told = slice.grant(name, weight);
            if is_void {
                over.extend(slice.end(until));
            }
            told
        });
        // Where nothing was taken ahead it is an ask like others, and may hold slots.
        (told.filter(|_| units > weight).unwrap_or(paid), over)
    }

    /// Ends the slices of such meters, and gives back what is left of them: they were changed here, and
    /// who did is not to find that it has no effect yet.
    pub(super) async fn end(&self, desk: &Desk, is_it: impl Fn(&MeterName) -> bool) {
        let mut over = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock();
            for (_, slice) in shard.iter_mut().filter(|(name, _)| is_it(name)) {
                slice.is_void = slice.is_fetching;
                over.extend(slice.end(slice.until));
                slice.until = Instant::now();
            }
        }
        give_back(over, desk).await;
    }

    fn change<T>(&self, name: &MeterName, change: impl FnOnce(&mut Slice) -> T) -> Option<T> {
        self.shard(name).lock().get_mut(name).map(change)
    }

    fn shard(&self, name: &MeterName) -> &Mutex<HashMap<MeterName, Slice>> {
        let place = usize::try_from(self.hashing.hash_one(name)).unwrap_or(usize::MAX);
        &self.shards[place % SHARDS]
    }
}

impl Slice {
    /// None yet, but one is on its way.
    fn fetched_first(want: u64, now: Instant) -> Self {
        let (paid, standing) = (Timestamp::default(), Standing::NOTHING);
        let (is_fetching, is_void) = (true, false);
        Self { left: 0, until: now, paid, standing, taken: None, want, is_fetching, is_void }
    }

    /// The store had none, or did not say.
    fn fetched_nothing(&mut self, is_refused: bool) {
        (self.is_fetching, self.is_void) = (false, false);
        if is_refused {
            self.want = (self.want / 2).max(1);
        }
    }

    fn grant(&self, (limit, partition): &MeterName, weight: u64) -> Paid {
        let payment = Payment {
            weight,
            paid_at: self.paid,
            starts: Now::both(self.paid),
            hold: None,
            sequence: 0,
            promised: 0,
        };
        let line = PaidLine { limit: limit.clone(), partition: partition.clone(), payment };
        let receipt = Receipt { id: 0, expires: self.paid, lines: vec![line] };
        let left = i64::try_from(self.left).unwrap_or(i64::MAX);
        let remaining = self.standing.remaining.saturating_add(left);
        let standing = Standing { remaining, ..self.standing };
        Paid { receipt, starts: self.paid, tightest: 0, standing }
    }

    /// Ends the slice that was to end then: says what settles it, and what it cost, if not all was used.
    fn end(&mut self, until: Instant) -> Option<Over> {
        if self.until != until {
            return None;
        }
        let (line, units) = self.taken.take()?;
        let left = std::mem::take(&mut self.left);
        if left > 0 {
            // As much as was needed is enough the next time.
            self.want = (units - left).max(1);
        }
        (left > 0).then_some((line, units - left))
    }
}

/// What settles a slice of which not all was used, and what it cost.
type Over = (PaidLine, u64);

async fn give_back(over: Vec<Over>, desk: &Desk) {
    for (line, used) in over {
        // Nobody else knows of it, so it is settled once. What cannot be given back is spent.
        if let Err(error) = desk.ask(SettleLine(line, used)).await {
            tracing::debug!(%error, "units that were taken ahead could not be given back");
        }
    }
}
