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
    pub(super) async fn make_acts(&self, acts: &mut [Act]) -> Answer<Vec<Result<Acted, ActError>>> {
        let (mut answers, mut rest) = (Vec::with_capacity(acts.len()), acts);
        // Each is whole by itself: together they need not be in one batch, and may not fit one.
        while !rest.is_empty() {
            let (fit, bytes) = fitting(rest);
            let (some, others) = rest.split_at_mut(fit);
            answers.extend(self.make_together(some, bytes).await?);
            rest = others;
        }
        Ok(answers)
    }

    async fn make_together(
        &self,
        acts: &mut [Act],
        bytes: usize,
    ) -> Answer<Vec<Result<Acted, ActError>>> {
        let lent = Lent::of(acts);
        let (given, undoes) = (lent.clone(), self.home.undoes());
        let made = self.tell_of(Kind::Change, bytes, move |state, now| {
            let mut given = given.lock();
            let each = given.iter_mut().map(|act| match undoes {
                true => state.scheduler.act(act.clone(), now),
                false => state.scheduler.make(act, now),
            });
            each.collect::<Vec<_>>()
        });
        let made = made.await;
        lent.back_to(acts);
        let made = made?;
        Act::clear_made(acts, &made);
        Ok(made)
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
