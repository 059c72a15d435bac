//! Acts on their way to the home, which come back if they are not made.

use super::Store;
use super::command::Kind;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tollgate_core::contract::Answer;
use tollgate_core::lanes::{Act, ActError, Acted};

/// Bodies and records of acts that are made together.
const ACTS_BYTES: usize = 8 << 20;

impl Store {
    pub(super) async fn act_all(&self, mut acts: Vec<Act>) -> Answer<Vec<Result<Acted, ActError>>> {
        let mut answers = Vec::with_capacity(acts.len());
        // Each is whole by itself: together they need not be in one batch, and may not fit one.
        while !acts.is_empty() {
            let (fit, bytes) = fitting(&acts);
            let rest = acts.split_off(fit);
            let some = std::mem::replace(&mut acts, rest);
            answers.extend(self.act_together(some, bytes).await?);
        }
        Ok(answers)
    }

    pub(super) async fn make_all(&self, acts: &mut [Act]) -> Answer<Vec<Result<Acted, ActError>>> {
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

    async fn act_together(
        &self,
        mut acts: Vec<Act>,
        bytes: usize,
    ) -> Answer<Vec<Result<Acted, ActError>>> {
        let made = self.tell_of(Kind::Change, bytes, move |state, now| {
            let made = acts.iter_mut().map(|act| state.scheduler.make(act, now)).collect();
            // Their memory is given back by whoever asked: the home has others to serve.
            (made, acts)
        });
        made.await.map(|(made, _)| made)
    }

    async fn make_together(
        &self,
        acts: &mut [Act],
        bytes: usize,
    ) -> Answer<Vec<Result<Acted, ActError>>> {
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
