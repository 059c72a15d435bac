//! Those who wait: where each stands, who has the turn, and when to look again.
//!
//! One lock covers all who wait; it is always taken before the locks of meters. Nothing here is
//! touched by asks that are granted or refused at once.

mod crowd;
mod relay;
mod seat;
mod timer;

pub(crate) use seat::Seat;

use crate::ask::Ask;
use crate::error::{Error, StoreError};
use crate::limiter::{Inner, Tracking, refusal};
use crate::limits::{Address, Entry};
use crate::locked::{Asker, Locked};
use crate::pass::Pass;
pub(crate) use crowd::HeadId;
use crowd::{CrowdId, Crowds, Due, Head, Newcomer};
use parking_lot::{Mutex, MutexGuard};
use relay::{Relays, tell};
use smallvec::SmallVec;
use std::sync::Arc;
use timer::Timer;
use tollgate_core::turn::{Judgement, judge};
use tollgate_core::{Blocker, Cause, Now, Opening, Place, Span, Timestamp};

/// Calls that start within so long of each other are woken together, unless that would cost their
/// rate. Waking two threads costs 25 to 35 µs, a grant about 5: at 5,000 a second a millisecond and a
/// half makes 10 of that, and leaves half a millisecond of the two that a start may be late.
const GRAIN: Span = Span::from_nanos(1_500_000);

/// What became of a call that came to wait.
pub(crate) enum Arrival {
    /// It need not.
    Granted(Pass),
    /// It waits in a seat.
    Waiting { head: HeadId, seat: Arc<Seat> },
}

/// All who wait, and the thread that wakes them.
#[derive(Default)]
pub(crate) struct Turns {
    crowds: Mutex<Crowds>,
    timer: Timer,
}

/// Why a waiting call cannot start: where it must stand, and what is in its way everywhere.
struct Held {
    at: usize,
    blocker: Blocker,
    ways: SmallVec<[Option<Blocker>; 2]>,
    /// How late it may start without its rate being lost: until a bucket overflows.
    slack: Span,
}

/// What was decided for those who wait, told to them once no lock is held.
type News = SmallVec<[(Arc<Seat>, Result<Pass, Error>); 4]>;

impl Inner {
    /// Grants an ask at once if nobody is before it, or lets it stand in turn.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        tracking: Tracking,
        max_wait: Option<Span>,
    ) -> Result<Arrival, Error> {
        self.with_room(|| self.try_arrive(ask, tracking, max_wait))
    }

    fn try_arrive(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        tracking: Tracking,
        max_wait: Option<Span>,
    ) -> Result<Arrival, Error> {
        let resolved = self.resolve_all(ask)?;
        let lines = resolved.lines();
        let mut crowds = self.turns.crowds.lock();
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        locked.check()?;
        self.make_meters(&mut locked)?;
        let arrival = self.next_arrival();
        let place = Place::new(ask.priority, 0, arrival);
        let (at, blocker) = match judge(locked.ways(Asker { place, is_senior: false })) {
            Judgement::Start => {
                return Ok(Arrival::Granted(self.pay(&mut locked, None, tracking)));
            }
            Judgement::Stand { at, blocker } => (at, blocker),
        };
        let deadline = max_wait.map(|span| locked.now.at.plus(span));
        self.check_worth_waiting(&crowds, &locked, (at, blocker), deadline)?;
        let blocker = locked.looked_at_again(blocker);
        let new = Newcomer { arrival, place, tracking, deadline };
        let (head, seat, crowd) = crowds.enter(new, &lines, (at, blocker));
        // Before the meter is unlocked, so that no one overtakes in between.
        let (company, ahead) = crowds.company(crowd);
        locked.whole(at, |whole, _| (whole.company, whole.ahead) = (company, ahead));
        drop(locked);
        self.rearm(crowds);
        Ok(Arrival::Waiting { head, seat })
    }

    /// Lets those at a meter try again: something there has changed.
    pub(crate) fn wake_meter(self: &Arc<Self>, entry: &Entry, address: Address<'_>) {
        let mut crowds = self.turns.crowds.lock();
        let mut news = News::new();
        if let Some(crowd) = crowds.find(entry, address) {
            self.serve(&mut crowds, crowd, self.settings.clock.both(), &mut news);
        }
        self.rearm(crowds);
        tell(news);
    }

    /// Lets all who wait for a limit try again, also those it had made impossible.
    pub(crate) fn wake_entry(self: &Arc<Self>, entry: &Entry) {
        let mut crowds = self.turns.crowds.lock();
        let mut news = News::new();
        let (served, now) = (crowds.hold_all_of(entry), self.settings.clock.both());
        for &crowd in &served {
            crowds.unpark(crowd);
            self.serve(&mut crowds, crowd, now, &mut news);
        }
        served.into_iter().for_each(|crowd| crowds.close(crowd));
        self.rearm(crowds);
        tell(news);
    }

    /// Takes someone out who no longer waits.
    pub(crate) fn leave(self: &Arc<Self>, id: HeadId) {
        let mut crowds = self.turns.crowds.lock();
        if let Some(head) = crowds.depart(id) {
            self.after_leaving(&mut crowds, &head);
        }
        self.rearm(crowds);
    }

    /// Serves every meter whose time has come, and refuses those who waited too long. Says when to
    /// look again, and who is woken then if nobody did before. `told` is when someone was woken last.
    fn run_due(self: &Arc<Self>, told: &mut Timestamp) -> (Option<Timestamp>, Relays) {
        let mut crowds = self.turns.crowds.lock();
        let mut news = News::new();
        let now = self.settings.clock.both();
        while let Some(due) = crowds.next_due(now.at) {
            match due {
                Due::Meter(crowd) => self.serve(&mut crowds, crowd, now, &mut news),
                Due::Deadline(head) => self.give_up(&mut crowds, head, now, &mut news),
            }
        }
        // What comes due sooner from here on rings.
        let next = crowds.arm();
        drop(crowds);
        let is_news = !news.is_empty();
        let relays = self.tell_in_turn(news);
        let now = self.settings.clock.now();
        if is_news {
            *told = now;
        }
        let grain_ends = told.plus(GRAIN);
        let next = next.map(|(at, slack)| {
            // What came due meanwhile is not put off.
            if at <= now { at } else { at.max(grain_ends.min(at.plus(slack))) }
        });
        let latest = (!relays.is_done()).then_some(grain_ends);
        (next.into_iter().chain(latest).min(), relays)
    }

    /// Tells everyone, in a way that takes the least of the processor's time. Who waits on a clock that may
    /// stand still is told by the timer itself: nobody else is certain to.
    fn tell_in_turn(&self, news: News) -> Relays {
        if self.is_exact() {
            return Relays::tell(news);
        }
        tell(news);
        Relays::default()
    }

    /// Starts those at a meter who can, in order, up to the first who must wait here.
    fn serve(self: &Arc<Self>, crowds: &mut Crowds, crowd: CrowdId, now: Now, news: &mut News) {
        crowds.hold(crowd);
        while let Some(id) = crowds.first_at(crowd) {
            let Some(head) = crowds.head(id) else { break };
            match self.try_start(crowds, head, now) {
                Ok(pass) => {
                    let Some(head) = crowds.depart(id) else { break };
                    self.after_starting(crowds, &head);
                    news.push((head.seat, Ok(pass)));
                }
                Err(held) if held.at == head.stands_at && !is_impossible(held.blocker) => {
                    crowds.wake_at(crowd, held.blocker.opening, held.slack);
                    break;
                }
                Err(held) => {
                    let is_new_senior = self.lose_patience(crowds, id, &held.ways);
                    let Some(next) = crowds.stand(id, (held.at, held.blocker)) else { break };
                    self.publish(crowds, next);
                    if is_new_senior {
                        // Whom it had to let go first may be behind it now.
                        crowds.wake_at(next, Opening::At(Timestamp::default()), Span::ZERO);
                    }
                }
            }
        }
        self.publish(crowds, crowd);
        crowds.close(crowd);
    }

    /// Pays for a waiting call if all its ways are open, and says where it must stand otherwise.
    fn try_start(
        self: &Arc<Self>,
        crowds: &Crowds,
        head: &Head,
        now: Now,
    ) -> Result<Pass, Box<Held>> {
        let lines = crowds.lines(head);
        let mut locked = Locked::new(&lines, || now);
        let company = |index: usize| crowds.company(head.tolls[index].crowd).0;
        let ways = locked.ways_among(head.asker(), company);
        match judge(ways.iter().copied()) {
            Judgement::Start => Ok(self.pay(&mut locked, None, head.tracking)),
            Judgement::Stand { at, blocker } => {
                let slack = locked.slack();
                Err(Box::new(Held { at, blocker: locked.looked_at_again(blocker), ways, slack }))
            }
        }
    }

    /// Notes that a call was admitted where it stood and refused elsewhere: after the second time
    /// it becomes senior, if none of its meters has one. Says whether it did.
    fn lose_patience(&self, crowds: &mut Crowds, id: HeadId, ways: &[Option<Blocker>]) -> bool {
        let Some(head) = crowds.head_mut(id) else { return false };
        let was_admitted = ways[head.stands_at].is_none();
        let is_impatient =
            was_admitted && !head.is_senior && head.patience.try_on(ways.iter().copied());
        let is_new_senior = is_impatient && crowds.make_senior(id);
        let tolls = crowds.head(id).filter(|_| is_new_senior).map(|head| &head.tolls);
        for toll in tolls.into_iter().flatten() {
            self.publish(crowds, toll.crowd);
        }
        is_new_senior
    }

    /// Writes at a meter who waits there, for those who do not look here.
    fn publish(&self, crowds: &Crowds, crowd: CrowdId) {
        let (company, ahead) = crowds.company(crowd);
        let lines = [crowds.meter(crowd)];
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        if locked.missing_meters() == 0 || ahead > 0 {
            locked.whole(0, |whole, _| (whole.company, whole.ahead) = (company, ahead));
        }
    }

    /// A call has started: if it was senior, others have the turn at its meters again.
    fn after_starting(&self, crowds: &mut Crowds, gone: &Head) {
        if gone.is_senior {
            self.after_leaving(crowds, gone);
        } else {
            gone.tolls.iter().for_each(|toll| crowds.close(toll.crowd));
        }
    }

    /// A call is gone from the books: the meter where it stood serves the next, and if it was
    /// senior all its meters do.
    fn after_leaving(&self, crowds: &mut Crowds, gone: &Head) {
        for (index, toll) in gone.tolls.iter().enumerate() {
            if index == gone.stands_at || gone.is_senior {
                self.publish(crowds, toll.crowd);
                crowds.wake_at(toll.crowd, Opening::At(Timestamp::default()), Span::ZERO);
            }
            crowds.close(toll.crowd);
        }
    }

    /// Refuses a call that waited too long, unless it can start just now.
    fn give_up(self: &Arc<Self>, crowds: &mut Crowds, id: HeadId, now: Now, news: &mut News) {
        let Some(head) = crowds.head(id) else { return };
        let answer = self.try_start(crowds, head, now).map_err(|held| {
            let lines = crowds.lines(head);
            let locked = Locked::new(&lines, || now);
            // As it was found, not as it is looked at again.
            let found = held.ways[held.at].unwrap_or(held.blocker);
            refusal(&locked, held.at, found).into()
        });
        if let Some(head) = crowds.depart(id) {
            self.after_leaving(crowds, &head);
            news.push((head.seat, answer));
        }
    }

    /// Refuses at once a wait that is known to take too long, or that there is no room for.
    fn check_worth_waiting(
        &self,
        crowds: &Crowds,
        locked: &Locked<'_>,
        (at, blocker): (usize, Blocker),
        deadline: Option<Timestamp>,
    ) -> Result<(), Error> {
        let waiting = self.settings.waiting_max;
        if crowds.len() >= waiting {
            return Err(StoreError::WaitingFull { waiting }.into());
        }
        // What depends on others may open sooner than it looks, if there is any time to look.
        let is_certain = matches!(blocker.cause, Cause::Spent | Cause::Closed)
            || deadline.is_some_and(|deadline| deadline <= locked.now.at);
        let is_late =
            deadline.is_some_and(|at| at <= locked.now.at || blocker.opening > Opening::At(at));
        if is_certain && is_late {
            return Err(refusal(locked, at, blocker).into());
        }
        Ok(())
    }

    /// Sees to it that the timer wakes in time.
    fn rearm(self: &Arc<Self>, crowds: MutexGuard<'_, Crowds>) {
        if crowds.is_due_before_armed() {
            drop(crowds);
            self.turns.timer.ring(self);
        }
    }
}

fn is_impossible(blocker: Blocker) -> bool {
    matches!(blocker.cause, Cause::Impossible | Cause::Missing)
}
