//! Limits as an upstream publishes them, written naively: over a list of all that arrived.

use tollgate::{Limit, Span, Timestamp};

/// A limit that an upstream enforces on each tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Published {
    /// So many units in any interval of this length.
    Window { limit: u64, per: Span },
    /// So many units in each period, and this many at once.
    Bucket { limit: u64, per: Span, burst: u64 },
    /// So many requests between head and answer.
    AtOnce { limit: usize },
}

/// When something arrived, and its weight.
pub(crate) type Arrival = (Timestamp, u64);

impl Published {
    /// The limit to set so that this one is kept, though arrivals are up to `guard` late.
    pub(crate) fn limit(self, guard: Span) -> Limit {
        match self {
            Self::Window { limit, per } => Limit::sliding_window(limit, per).guard(guard),
            Self::Bucket { limit, per, burst } => Limit::per(limit, per).burst(burst).guard(guard),
            Self::AtOnce { limit } => Limit::concurrency(limit.try_into().unwrap()),
        }
    }

    /// What is left of it once the guard has taken its share: `per + guard`, or less of a burst.
    fn guarded(self, guard: Span) -> Self {
        match self {
            Self::Window { limit, per } => Self::Window { limit, per: per.plus(guard) },
            Self::Bucket { limit, per, burst } => {
                let share = (limit * guard.as_nanos()).div_ceil(per.as_nanos());
                Self::Bucket { limit, per, burst: burst - share }
            }
            Self::AtOnce { .. } => self,
        }
    }

    /// When calls of this weight in all may have arrived, the first of them at `began`.
    fn opens(self, began: Timestamp, units: u64) -> Timestamp {
        match self {
            Self::Window { limit, per } if units > limit => began.plus(per),
            Self::Bucket { limit, per, burst } if units > burst => {
                let nanos = u128::from(units - burst) * u128::from(per.as_nanos());
                let nanos = nanos.div_ceil(u128::from(limit)).try_into().unwrap();
                began.plus(Span::from_nanos(nanos))
            }
            _ => began,
        }
    }
}

/// The first instant at which one more may arrive.
pub(crate) fn earliest(rules: &[Published], arrived: &[Arrival], weight: u64) -> Timestamp {
    let mut units = weight;
    let mut earliest = Timestamp::default();
    for (began, weight) in arrived.iter().rev() {
        units += weight;
        for rule in rules {
            earliest = earliest.max(rule.opens(*began, units));
        }
    }
    earliest
}

/// How many thousandths of what the limits allowed were used.
///
/// Measured from the first arrival on: how long the limits, with their guard, make calls of these
/// weights take at least, against how long they took. What counts is the best of the last quarter of
/// the arrivals: a call that is late because the machine was busy costs nothing if those behind it are not.
pub(crate) fn used(rules: &[Published], guard: Span, arrived: &[Arrival]) -> u64 {
    let rules: Vec<_> = rules.iter().map(|rule| rule.guarded(guard)).collect();
    let began = arrived[0].0;
    let mut ideal: Vec<Arrival> = Vec::new();
    for (_, weight) in arrived {
        let at = earliest(&rules, &ideal, *weight).max(began);
        ideal.push((at, *weight));
    }
    let last = arrived.len() * 3 / 4..;
    let took = ideal[last.clone()].iter().zip(&arrived[last]);
    let share = |(ideal, real): (&Arrival, &Arrival)| {
        ideal.0.since(began).as_nanos() * 1_000 / real.0.since(began).as_nanos().max(1)
    };
    took.map(share).max().unwrap()
}
