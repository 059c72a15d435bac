//! The meters of one call, locked: decides over all of them and pays all or none.

use crate::error::AskError;
use crate::limits::{Address, Entry};
use crate::table::{Kept, Shard, Spot, Whole};
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::gate::opens_together;
use tollgate_core::meter::Holding;
use tollgate_core::turn::{CALENDAR_LOOK, Company, must_yield};
use tollgate_core::{
    Blocker, Cause, Definition, Now, Opening, Payment, Place, RuleUse, Span, Standing, Timestamp,
};

/// One toll, resolved: which meter, how much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) address: Address<'a>,
    pub(crate) weight: u64,
}

/// Who asks: its place in the order, and whether it holds its turn everywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) place: Place,
    pub(crate) is_senior: bool,
}

/// A call's meters, with their shards locked in one order, so that no two calls wait for each other.
pub(crate) struct Locked<'a> {
    pub(crate) lines: &'a [Line<'a>],
    guards: SmallVec<[MutexGuard<'a, Shard>; 2]>,
    /// Which guard covers which line.
    covers: SmallVec<[usize; 2]>,
    /// Where each line's meter is; looked up again whenever meters come or go.
    spots: SmallVec<[Option<Spot>; 2]>,
    pub(crate) now: Now,
}

impl<'a> Locked<'a> {
    /// Locks the shards of all lines, then reads the clock.
    pub(crate) fn new(lines: &'a [Line<'a>], now: impl FnOnce() -> Now) -> Self {
        let order = |line: &Line<'_>| line.entry.lock_order(line.address);
        let mut sorted: SmallVec<[usize; 2]> = (0..lines.len()).collect();
        sorted.sort_unstable_by_key(|index| order(&lines[*index]));
        let mut guards: SmallVec<[MutexGuard<'a, Shard>; 2]> = SmallVec::new();
        let mut covers = SmallVec::from_elem(0, lines.len());
        let mut last = None;
        for index in sorted {
            let line = &lines[index];
            if last != Some(order(line)) {
                guards.push(line.entry.lock(line.address));
                last = Some(order(line));
            }
            covers[index] = guards.len() - 1;
        }
        let mut now = now();
        // Others may have read the clock before these locks were taken, and be next.
        for _ in 0..2 {
            now.at = guards.iter_mut().fold(now.at, |at, shard| shard.moment(at));
        }
        let mut locked = Self { lines, guards, covers, spots: SmallVec::new(), now };
        locked.look_up();
        locked
    }

    fn look_up(&mut self) {
        let each = self.lines.iter().zip(&self.covers);
        let spots = each.map(|(line, guard)| {
            let Address { key, hash } = line.address;
            self.guards[*guard].find(hash, key)
        });
        self.spots = spots.collect();
    }

    /// Refuses at the door what can never pass.
    pub(crate) fn check(&self) -> Result<(), AskError> {
        self.lines.iter().enumerate().try_for_each(|(index, line)| {
            let name = || line.entry.name.as_ref().to_owned();
            let Some(definition) = self.definition(index) else {
                return Err(AskError::UnknownLimit { name: name() });
            };
            let capacity = definition.capacity();
            if line.weight > capacity {
                let weight = line.weight;
                return Err(AskError::WeightOverCapacity { name: name(), weight, capacity });
            }
            Ok(())
        })
    }

    /// How many of the meters do not exist yet.
    pub(crate) fn missing_meters(&self) -> usize {
        self.spots.iter().filter(|spot| spot.is_none()).count()
    }

    /// Makes the meters that do not exist yet.
    pub(crate) fn make_meters(&mut self) {
        for (index, line) in self.lines.iter().enumerate() {
            if self.spots[index].is_none() {
                let Address { hash, key } = line.address;
                self.guards[self.covers[index]].insert(hash, key, self.now);
            }
        }
        self.look_up();
    }

    /// Clears a segment of each locked shard of meters as good as new. Says how many there were.
    pub(crate) fn purge(&mut self) -> usize {
        let now = self.now;
        let purged = self.guards.iter_mut().map(|guard| guard.purge_next(now)).sum();
        self.look_up();
        purged
    }

    /// What is in a newcomer's way at each meter.
    pub(crate) fn ways(&self, asker: Asker) -> SmallVec<[Option<Blocker>; 2]> {
        self.ways_among(asker, |index| self.company(index))
    }

    /// What is in the call's way at each meter, with others there as `company` says.
    pub(crate) fn ways_among(
        &self,
        asker: Asker,
        company: impl Fn(usize) -> Company,
    ) -> SmallVec<[Option<Blocker>; 2]> {
        (0..self.lines.len()).map(|index| self.way(index, asker, company(index))).collect()
    }

    fn way(&self, index: usize, asker: Asker, company: Company) -> Option<Blocker> {
        let Some(definition) = self.definition(index) else {
            let (cause, opening) = (Cause::Missing, Opening::OnRelease);
            return Some(Blocker { cause, rule: 0, opening });
        };
        let own = self.blocker(index, definition, self.now);
        if must_yield(asker.place, asker.is_senior, company) {
            let behind = self.opens_behind(index, definition);
            let opening = own.map_or(behind, |own| own.opening.max(behind));
            return Some(Blocker { cause: Cause::Turn, rule: 0, opening });
        }
        own
    }

    /// The first instant at which every meter admits, for a call that pays now and starts then.
    pub(crate) fn opens(&self) -> Opening {
        opens_together(self.now, |from| {
            let each = (0..self.lines.len()).map(|index| self.opening(index, from));
            each.fold(Opening::At(from.at), Opening::max)
        })
    }

    fn opening(&self, index: usize, from: Now) -> Opening {
        let Some(definition) = self.definition(index) else { return Opening::OnRelease };
        let blocker = self.blocker(index, definition, from);
        blocker.map_or(Opening::At(from.at), |blocker| blocker.opening)
    }

    /// The blocker of a call that waits, with the time to look again: sooner than it opens if it
    /// hangs on a wall clock that may be set, and only when it is told if another has the turn.
    pub(crate) fn looked_at_again(&self, blocker: Blocker) -> Blocker {
        let follows_wall = |index| self.definition(index).is_some_and(|d| d.follows_wall());
        let is_on_calendar = (0..self.lines.len()).any(follows_wall);
        let opening = match blocker.cause {
            Cause::Turn => Opening::OnRelease,
            _ if is_on_calendar => {
                blocker.opening.min(Opening::At(self.now.at.plus(CALENDAR_LOOK)))
            }
            _ => blocker.opening,
        };
        Blocker { opening, ..blocker }
    }

    /// How late the call may start without a rate being lost: until a bucket overflows.
    pub(crate) fn slack(&self) -> Span {
        let each = self.lines.iter().enumerate().filter_map(|(index, line)| {
            let rules = self.definition(index)?.rules().iter();
            rules.map(|rule| rule.slack(line.weight)).min()
        });
        each.min().unwrap_or(Span::ZERO)
    }

    /// Whether every meter can promise a later start.
    pub(crate) fn takes_promises(&self) -> bool {
        (0..self.lines.len()).all(|index| {
            self.spot(index)
                .and_then(|spot| self.guard(index).peek_whole(spot))
                .is_none_or(|whole| whole.meter.takes_promises(self.now.at))
        })
    }

    /// Whether every line is a plain meter that its limit lets stay plain.
    pub(crate) fn is_plain(&self) -> bool {
        (0..self.lines.len()).all(|index| {
            let kept = self.spot(index).map(|spot| self.guard(index).kept(spot));
            matches!(kept, None | Some(Kept::Plain(_)))
                && self.definition(index).is_some_and(|definition| definition.plain().is_some())
        })
    }

    /// Takes all tolls from meters that can stay plain; the caller has found every way open.
    pub(crate) fn pay_plain(&mut self) {
        for (index, line) in self.lines.iter().enumerate() {
            let Some(spot) = self.spot(index) else { continue };
            let guard = &mut self.guards[self.covers[index]];
            let Kept::Plain(mut plain) = guard.kept(spot) else { continue };
            let rule = guard.definition(line.address.key).and_then(|d| d.plain());
            let paid = rule.map(|rule| rule.admit(&mut plain, line.weight, self.now.at));
            debug_assert!(matches!(paid, Some(Ok(()))), "a way found open is open");
            guard.keep_plain(spot, line.address.key, plain, self.now);
        }
    }

    /// Takes all tolls for a start at `start`; the caller has found every way open then.
    pub(crate) fn pay(&mut self, start: Timestamp, holding: Holding) -> SmallVec<[Payment; 2]> {
        let now = self.now;
        let mut payments = SmallVec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let weight = line.weight;
            let payment = self.whole(index, |whole, definition| {
                whole.meter.pay(definition, weight, (now, start), Some(holding))
            });
            payments.extend(payment);
        }
        payments
    }

    /// Which of the meters has the least left, and how it stands.
    pub(crate) fn tightest(&self) -> Option<(usize, Standing)> {
        let each =
            (0..self.lines.len()).filter_map(|index| Some((index, self.standing_at(index)?)));
        each.min_by_key(|(_, standing)| standing.remaining)
    }

    pub(crate) fn standing_at(&self, index: usize) -> Option<Standing> {
        let definition = self.definition(index)?;
        let kept = self.spot(index).map(|spot| self.guard(index).kept(spot));
        match (definition.plain(), kept) {
            (Some(rule), None) => Some(rule.standing(Default::default(), self.now.at)),
            (Some(rule), Some(Kept::Plain(plain))) => Some(rule.standing(plain, self.now.at)),
            _ => Some(self.with_meter(index, |meter| meter.standing(definition, self.now))),
        }
    }

    /// What counts at each rule of a line's meter.
    pub(crate) fn rules_at(&self, index: usize) -> Option<Vec<RuleUse>> {
        let definition = self.definition(index)?;
        Some(self.with_meter(index, |meter| meter.rules(definition, self.now)))
    }

    /// Changes the whole meter of a line, making it if need be.
    pub(crate) fn whole<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Whole, &Definition) -> T,
    ) -> Option<T> {
        let key = self.lines[index].address.key;
        let definition = self.definition(index)?.clone();
        if self.spots[index].is_none() {
            self.make_meters();
        }
        let guard = &mut self.guards[self.covers[index]];
        Some(change(guard.whole(self.spots[index]?, key, self.now)?, &definition))
    }

    /// Who waits at a line's meter.
    pub(crate) fn company(&self, index: usize) -> Company {
        self.peek_whole(index).map_or_else(Company::default, |whole| whole.company)
    }

    /// Reads the whole meter of a line, if it is one.
    pub(crate) fn peek_whole(&self, index: usize) -> Option<&Whole> {
        self.guard(index).peek_whole(self.spot(index)?)
    }

    pub(crate) fn definition(&self, index: usize) -> Option<&Arc<Definition>> {
        self.guard(index).definition(self.lines[index].address.key)
    }

    fn blocker(&self, index: usize, definition: &Definition, now: Now) -> Option<Blocker> {
        let weight = self.lines[index].weight;
        let kept = self.spot(index).map(|spot| self.guard(index).kept(spot));
        if let (Some(rule), Some(Kept::Plain(mut plain))) = (definition.plain(), kept)
            && weight <= definition.capacity()
        {
            let opens = rule.admit(&mut plain, weight, now.at).err()?;
            return Some(Blocker { cause: Cause::Spent, rule: 0, opening: Opening::At(opens) });
        }
        self.with_meter(index, |meter| meter.blocker(definition, weight, now))
    }

    fn opens_behind(&self, index: usize, definition: &Definition) -> Opening {
        let ahead = self.peek_whole(index).map_or(0, |whole| whole.ahead);
        let weight = self.lines[index].weight;
        self.with_meter(index, |meter| meter.opens_behind(definition, (ahead, weight), self.now))
    }

    /// Reads a line's meter, whatever it is kept as; a new one if there is none.
    fn with_meter<T>(&self, index: usize, read: impl FnOnce(&tollgate_core::Meter) -> T) -> T {
        if let Some(whole) = self.peek_whole(index) {
            return read(&whole.meter);
        }
        let kept = self.spot(index).map(|spot| self.guard(index).kept(spot));
        let plain = match kept {
            Some(Kept::Plain(plain)) => plain,
            _ => Default::default(),
        };
        match self.definition(index) {
            Some(definition) => {
                read(&tollgate_core::Meter::from_plain(definition, plain, self.now.at))
            }
            None => unreachable!("callers read meters of limits that are defined"),
        }
    }

    fn guard(&self, index: usize) -> &Shard {
        &self.guards[self.covers[index]]
    }

    fn spot(&self, index: usize) -> Option<Spot> {
        self.spots[index]
    }
}
