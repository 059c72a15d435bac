//! The gate: the one place where it is decided whether a call starts now.
//!
//! A store supplies a head with the slice of the world that it touches: its meters, who else is at
//! them, its place there. The same function decides for a scheduler in memory and for rows of a table.

use crate::limit::Definition;
use crate::meter::{Blocker, Cause, Meter, Standing};
use crate::rule::Opening;
use crate::time::{Now, Timestamp};
use crate::turn::{Company, Judgement, Patience, Place, judge, must_yield};

/// Most lines of a head, one for each meter it pays at.
pub const LINES_MAX: usize = 8;

/// One meter that a head pays at, with all that matters there.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The limit's definition; `None` if there is none any more.
    pub definition: Option<&'a Definition>,
    /// An operator holds the limit back.
    pub is_paused: bool,
    /// Its state; `None` if it is as new.
    pub meter: Option<&'a Meter>,
    /// What the head owes here.
    pub weight: u64,
    /// The head's place here.
    pub place: Place,
    /// Who else is here and has someone asking for it.
    pub company: Company,
}

/// What becomes of a head that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It starts now.
    Start,
    /// It stands at its line number `at`, which opens last for it.
    Stand {
        /// Which line.
        at: usize,
        /// What is in the way there.
        blocker: Blocker,
        /// Its patience is at an end: it becomes senior, if none of its meters has one.
        is_impatient: bool,
    },
    /// It is set aside at its line number `at`, and holds nobody's turn, until the limit changes.
    Park {
        /// Which line.
        at: usize,
        /// Why.
        blocker: Blocker,
    },
}

impl Line<'_> {
    /// Why nothing of this weight can pass here as the limit is, however long it waits.
    pub fn is_shut(&self) -> Option<Cause> {
        match self.definition {
            None => Some(Cause::Missing),
            Some(_) if self.is_paused => Some(Cause::Paused),
            Some(definition) if self.weight > definition.capacity() => Some(Cause::Impossible),
            Some(_) => None,
        }
    }

    /// What is in a head's way here.
    pub fn way(&self, is_senior: bool, now: Now) -> Option<Blocker> {
        let shut = self.is_shut();
        let (None, Some(definition)) = (shut, self.definition) else {
            let cause = shut.unwrap_or(Cause::Missing);
            return Some(Blocker { cause, rule: 0, opening: Opening::OnRelease });
        };
        // What is as new lets everything pass that it ever does.
        let own = self.meter.and_then(|meter| meter.blocker(definition, self.weight, now));
        if must_yield(self.place, is_senior, self.company) {
            let opening = own.map_or(Opening::At(now.at), |own| own.opening);
            return Some(Blocker { cause: Cause::Turn, rule: 0, opening });
        }
        own
    }

    /// How its meter stands.
    pub fn standing(&self, now: Now) -> Standing {
        let Some(definition) = self.definition else { return Standing::NOTHING };
        let new = || Meter::new(definition, now.at).standing(definition, now);
        self.meter.map_or_else(new, |meter| meter.standing(definition, now))
    }

    fn opening(&self, now: Now) -> Opening {
        let own = |definition| self.meter?.blocker(definition, self.weight, now);
        match self.definition {
            Some(definition) => own(definition).map_or(Opening::At(now.at), |own| own.opening),
            None => Opening::OnRelease,
        }
    }

    /// What a newcomer is told who must let others go first: when it passes behind them, if units
    /// are what they wait for.
    fn told(&self, blocker: Blocker, ahead: u64, now: Now) -> Blocker {
        let (Cause::Turn, Some(definition)) = (blocker.cause, self.definition) else {
            return blocker;
        };
        let behind = |meter: &Meter| meter.opens_behind(definition, (ahead, self.weight), now);
        let behind = self.meter.map_or_else(|| behind(&Meter::new(definition, now.at)), behind);
        let opening = match blocker.opening.max(behind) {
            Opening::At(opens) if opens <= now.at => Opening::OnRelease,
            opening => opening,
        };
        Blocker { opening, ..blocker }
    }
}

/// Tries a head that has its turn where it stands, and is open there: what is in its way elsewhere
/// wears on its patience.
pub fn pass(lines: &[Line<'_>], is_senior: bool, patience: &mut Patience, now: Now) -> Verdict {
    let mut ways = [None; LINES_MAX];
    for (way, line) in ways.iter_mut().zip(lines) {
        *way = line.way(is_senior, now);
    }
    let Judgement::Stand { at, blocker } = judge(ways) else { return Verdict::Start };
    let is_impatient = patience.try_on(ways);
    if is_shut(blocker) {
        return Verdict::Park { at, blocker };
    }
    Verdict::Stand { at, blocker, is_impatient }
}

/// Most times the openings of several meters are compared: each time leaves a promise behind, and
/// eight meters with eight rules keep no more.
const OPENINGS_MAX: usize = 8 * 8 * 1024;

/// When a call that came just now may start, having paid now: now, or no later than `latest`. It
/// overtakes nobody who waits; `ahead` says what those weigh at each line, for the wait that is told.
/// Refused, it is told the line that opens last.
pub fn reserve(
    lines: &[Line<'_>],
    ahead: impl Fn(usize) -> u64,
    latest: Option<Timestamp>,
    now: Now,
) -> Result<Timestamp, (usize, Blocker)> {
    let mut ways = [None; LINES_MAX];
    for (at, (way, line)) in ways.iter_mut().zip(lines).enumerate() {
        *way = line.way(false, now).map(|blocker| line.told(blocker, ahead(at), now));
    }
    let Judgement::Stand { at, blocker } = judge(ways) else { return Ok(now.at) };
    // Units come by themselves; nobody is overtaken, and what is shut stays so.
    let is_awaited = |way: &Blocker| matches!(way.cause, Cause::Spent | Cause::Closed);
    if let Some(latest) = latest.filter(|_| ways.iter().flatten().all(is_awaited))
        && let Opening::At(start) = opens(lines, now)
        && start <= latest
        && lines.iter().all(|line| line.meter.is_none_or(|meter| meter.takes_promises(now.at)))
    {
        return Ok(start);
    }
    Err((at, blocker))
}

/// The first instant at which several meters are open, for a call that pays now and starts then:
/// `latest` says when the last of them opens, seen from an instant. Where one opens another may have
/// to keep a promise, so it is looked at again from there.
pub fn opens_together(now: Now, latest: impl Fn(Now) -> Opening) -> Opening {
    let mut from = now;
    for _ in 0..OPENINGS_MAX {
        match latest(from) {
            Opening::At(at) if at > from.at => from = now.moved_to(at),
            Opening::At(_) => return Opening::At(from.at),
            opening => return opening,
        }
    }
    Opening::OnRelease
}

fn opens(lines: &[Line<'_>], now: Now) -> Opening {
    opens_together(now, |from| {
        let each = lines.iter().map(|line| line.opening(from));
        each.fold(Opening::At(from.at), Opening::max)
    })
}

/// Which of the lines is the tightest, and how it stands.
pub fn tightest(lines: &[Line<'_>], now: Now) -> (usize, Standing) {
    let each = lines.iter().map(|line| line.standing(now)).enumerate();
    each.min_by_key(|(_, standing)| standing.remaining).unwrap_or((0, Standing::NOTHING))
}

fn is_shut(blocker: Blocker) -> bool {
    matches!(blocker.cause, Cause::Missing | Cause::Paused | Cause::Impossible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::time::Timestamp;
    use crate::turn::Priority;

    fn line<'a>(definition: &'a Definition, meter: &'a Meter) -> Line<'a> {
        let (place, company) = (Place::new(Priority::default(), 0, 1), Company::default());
        let (definition, meter) = (Some(definition), Some(meter));
        Line { definition, is_paused: false, meter, weight: 1, place, company }
    }

    fn tried(lines: &[Line<'_>]) -> Verdict {
        pass(lines, false, &mut Patience::default(), Now::both(Timestamp::default()))
    }

    /// A meter that lets pass, and one that is spent.
    fn meters() -> (Definition, Meter, Meter) {
        let now = Now::both(Timestamp::default());
        let definition = Definition::new(Limit::per_second(1)).unwrap();
        let open = Meter::new(&definition, now.at);
        let mut spent = open.clone();
        let _ = spent.pay(&definition, 1, (now, now.at), None);
        (definition, open, spent)
    }

    #[test]
    fn starts_if_every_line_is_open() {
        let (definition, open, _) = meters();
        assert_eq!(tried(&[]), Verdict::Start);
        assert_eq!(tried(&[line(&definition, &open); 2]), Verdict::Start);
    }

    #[test]
    fn stands_where_it_opens_last() {
        let (definition, open, spent) = meters();
        let lines = [line(&definition, &open), line(&definition, &spent)];
        assert!(matches!(tried(&lines), Verdict::Stand { at: 1, .. }));
    }

    #[test]
    fn lets_another_go_first() {
        let (definition, open, _) = meters();
        let first = Some(Place::new(Priority::default(), 0, 0));
        let company = Company { first, senior: None };
        let verdict = tried(&[Line { company, ..line(&definition, &open) }]);
        let Verdict::Stand { blocker, .. } = verdict else { panic!("{verdict:?}") };
        assert_eq!(blocker.cause, Cause::Turn);
    }

    #[test]
    fn parks_where_no_waiting_helps() {
        let (definition, open, _) = meters();
        let shut = [
            (Line { definition: None, ..line(&definition, &open) }, Cause::Missing),
            (Line { is_paused: true, ..line(&definition, &open) }, Cause::Paused),
            (Line { weight: 2, ..line(&definition, &open) }, Cause::Impossible),
        ];
        for (line, cause) in shut {
            let Verdict::Park { blocker, .. } = tried(&[line]) else { panic!("{cause:?}") };
            assert_eq!(blocker.cause, cause);
        }
    }
}
