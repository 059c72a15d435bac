//! Acts on their way to the home, which come back if they are not made.

use super::command::{Command, Kind, Reply};
use super::state::State;
use super::{Store, closed};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{Act, ActError, Acted};

/// Bodies and records of acts that are made together.
const ACTS_BYTES: usize = 8 << 20;
/// So many acts are made before what they changed is written down: it is in the processor's caches then, and the
/// memory it took is used again for the next.
const ACTS_AT_ONCE: usize = 64;

/// That there is no room says that nothing was made, and some of these were.
fn in_part(error: StoreError, is_first: bool) -> StoreError {
    match error {
        StoreError::Full { reason } if !is_first => StoreError::Unreachable { reason },
        error => error,
    }
}

/// What became of each.
type Answers = Vec<Result<Acted, ActError>>;

impl Store {
    pub(super) async fn act_all(&self, mut acts: Vec<Act>) -> Answer<Answers> {
        let mut answers = Vec::new();
        // Each is whole by itself: together they need not be in one batch, and may not fit one.
        while !acts.is_empty() {
            let (fit, bytes) = fitting(&acts);
            if fit == acts.len() && answers.is_empty() {
                return self.act_together(acts, bytes).await;
            }
            let rest = acts.split_off(fit);
            let some = std::mem::replace(&mut acts, rest);
            let more = self.act_together(some, bytes).await;
            answers.extend(more.map_err(|error| in_part(error, answers.is_empty()))?);
        }
        Ok(answers)
    }

    pub(super) async fn make_all(&self, acts: &mut [Act]) -> Answer<Answers> {
        let (mut answers, mut rest) = (Vec::with_capacity(acts.len()), acts);
        while !rest.is_empty() {
            let (fit, bytes) = fitting(rest);
            let (some, others) = rest.split_at_mut(fit);
            let made = match self.home.undoes() {
                true => self.act_together(some.to_vec(), bytes).await?,
                false => self.make_together(some, bytes).await?,
            };
            Act::clear_made(some, &made);
            answers.extend(made);
            rest = others;
        }
        Ok(answers)
    }

    async fn act_together(&self, acts: Vec<Act>, bytes: usize) -> Answer<Answers> {
        let (permit, (reply, answer)) = (self.room_for(bytes).await?, oneshot::channel());
        let answers = Vec::with_capacity(acts.len());
        self.home.commands().take(Box::new(Together { acts, answers, reply, permit }));
        answer.await.unwrap_or_else(|_| Err(closed())).map(|(answers, _)| answers)
    }

    async fn make_together(&self, acts: &mut [Act], bytes: usize) -> Answer<Answers> {
        let lent = Lent::of(acts);
        let given = lent.clone();
        let made = self.tell_of(Kind::Change, bytes, move |state, now| {
            given.lock().iter_mut().map(|act| state.scheduler.make(act, now)).collect()
        });
        let made = made.await;
        lent.back_to(acts);
        made
    }
}

/// Acts that are made one after the other, each whole by itself.
struct Together {
    acts: Vec<Act>,
    /// To those that were made, the first ones.
    answers: Answers,
    /// Who asked gives their memory back: the home has others to serve.
    reply: oneshot::Sender<Answer<(Answers, Vec<Act>)>>,
    permit: OwnedSemaphorePermit,
}

impl Together {
    fn make(&mut self, most: usize, state: &mut State, now: Now) {
        for act in self.acts.iter_mut().skip(self.answers.len()).take(most) {
            self.answers.push(state.scheduler.make(act, now));
        }
    }
}

impl Command for Together {
    fn kind(&self) -> Kind {
        Kind::Change
    }

    fn do_some(&mut self, state: &mut State, now: Now) -> bool {
        let is_long = self.acts.len() - self.answers.len() > ACTS_AT_ONCE;
        if is_long {
            self.make(ACTS_AT_ONCE, state, now);
        }
        is_long
    }

    fn perform(mut self: Box<Self>, state: &mut State, now: Now) -> Reply {
        self.make(usize::MAX, state, now);
        let Self { acts, answers, reply, permit } = *self;
        Box::new(move |outcome| {
            // Whoever asked may have gone.
            let _ = reply.send(outcome.map(|()| (answers, acts)));
            drop(permit);
        })
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

/// Acts that the home is to make. They are still here if nobody comes to do it.
#[derive(Clone)]
struct Lent(Arc<Mutex<Vec<Act>>>);

impl Lent {
    fn of(acts: &mut [Act]) -> Self {
        Self(Arc::new(Mutex::new(acts.iter_mut().map(std::mem::take).collect())))
    }

    fn back_to(&self, acts: &mut [Act]) {
        let back = std::mem::take(&mut *self.lock());
        acts.iter_mut().zip(back).for_each(|(place, act)| *place = act);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Act>> {
        self.0.lock()
    }
}

/// How many of these acts are made together, the first ones, and how many bytes they have.
fn fitting(acts: &[Act]) -> (usize, usize) {
    let mut bytes = 0;
    let fit = acts.iter().take_while(|act| {
        let fits = bytes < ACTS_BYTES;
        bytes += if fits { act.bytes() } else { 0 };
        fits
    });
    (fit.count(), bytes)
}
