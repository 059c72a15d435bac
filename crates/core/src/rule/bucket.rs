//! Token bucket: continuous refill, exact to the fraction of a nanosecond.
//!
//! The state is the instant at which the bucket will be full. With `limit` units in `per`
//! nanoseconds, and both divided by what they share, one unit takes `price / scale` nanoseconds to
//! flow in; instants carry a fraction in parts of `scale`, so nothing is ever rounded away.

use super::{FILL_MAX, Opening};
use crate::limit::{LimitError, checked_limit, checked_period, checked_units};
use crate::time::{Now, Span, Timestamp};

/// `limit` units per `per`, at most `burst` at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketRule {
    limit: u64,
    per: Span,
    /// After the guard was taken off.
    burst: u64,
    // Invariant: price / scale == per / limit in lowest terms.
    price: u64,
    scale: u64,
    /// What one unit costs: the common case, without a division.
    step: Lapse,
    /// How long an empty bucket takes to fill.
    fill: Lapse,
}

/// State of a token bucket. The default was full at the epoch and is full now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// Whole nanoseconds of the instant at which it will be full.
    pub full_at: Timestamp,
    /// The rest of that instant, in parts of the rule's scale.
    pub fraction: u64,
}

/// An exact length of time: nanoseconds and a fraction in parts of the rule's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lapse {
    nanos: u64,
    fraction: u64,
}

impl BucketRule {
    pub(super) fn new(limit: u64, per: Span, burst: u64, guard: Span) -> Result<Self, LimitError> {
        checked_limit(limit)?;
        checked_period(per, guard)?;
        checked_units("burst", burst)?;
        let burst = guarded(limit, per, burst, guard)?;
        let shared = greatest_common_divisor(limit, per.as_nanos());
        let (price, scale) = (per.as_nanos() / shared, limit / shared);
        let zero = Lapse { nanos: 0, fraction: 0 };
        let mut rule = Self { limit, per, burst, price, scale, step: zero, fill: zero };
        rule.step = rule.divided(u128::from(price));
        rule.fill = rule.cost(burst);
        if rule.fill.nanos > FILL_MAX.as_nanos() {
            return Err(LimitError::BurstFillsTooSlowly { burst, limit, per });
        }
        Ok(rule)
    }

    /// Units per period.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Units at once, after the guard was taken off.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) fn per(&self) -> Span {
        self.per
    }

    /// What one unit and what a full bucket take to flow in, if both are whole nanoseconds: then no
    /// state of this rule has a fraction.
    pub fn whole_nanos(&self) -> Option<(u64, u64)> {
        (self.scale == 1).then_some((self.step.nanos, self.fill.nanos))
    }

    /// Into how many parts a nanosecond is divided, so that no state of this rule is rounded.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// How long `units` take to flow in, exactly: whole nanoseconds, and the rest in parts of the
    /// scale.
    pub fn lapse(&self, units: u64) -> (u64, u64) {
        let Lapse { nanos, fraction } = self.cost(units);
        (nanos, fraction)
    }

    /// Pays if the weight passes now, and says when it passes otherwise. The one decision, made in
    /// place: what a limiter does a hundred million times.
    #[inline]
    pub fn admit(&self, state: &mut Bucket, weight: u64, now: Timestamp) -> Result<(), Timestamp> {
        let next = self.next(state, weight, now);
        let opens = self.opening(next);
        if opens > now {
            return Err(opens);
        }
        *state = next;
        Ok(())
    }

    /// The first instant at which `weight` passes.
    pub fn opens(&self, state: &Bucket, weight: u64, now: Now) -> Opening {
        Opening::At(self.opening(self.next(state, weight, now.at)))
    }

    /// Takes `weight`, into debt if need be.
    pub fn pay(&self, state: &mut Bucket, weight: u64, at: Now) {
        *state = self.next(state, weight, at.at);
    }

    /// Units missing from full, rounded up.
    #[inline]
    pub fn missing(&self, state: &Bucket, now: Now) -> u64 {
        self.units(self.lapse_to_full(state, now.at))
    }

    /// When the bucket is full.
    pub fn fresh_at(&self, state: &Bucket, _now: Now) -> Opening {
        Opening::At(Timestamp::from_nanos(
            state.full_at.as_nanos().saturating_add(u64::from(state.fraction > 0)),
        ))
    }

    /// How long until the bucket is full, in whole nanoseconds, rounded down.
    pub fn refilling(&self, state: &Bucket, now: Timestamp) -> Span {
        state.full_at.since(now)
    }

    /// How long `units` take to flow in, in whole nanoseconds, rounded up.
    pub(crate) fn time_for(&self, units: u64) -> Span {
        let cost = self.cost(units);
        Span::from_nanos(cost.nanos.saturating_add(u64::from(cost.fraction > 0)))
    }

    /// How long a bucket that holds `units` takes to overflow, rounded down.
    pub fn overflows_after(&self, units: u64) -> Span {
        Span::from_nanos(self.cost(self.burst.saturating_sub(units)).nanos)
    }

    /// Gives back `units`, but no more than flows in within `most`.
    pub fn refund(&self, state: &mut Bucket, units: u64, most: Span) {
        let back = self.cost(units).min(Lapse { nanos: most.as_nanos(), fraction: 0 });
        let borrow = u64::from(state.fraction < back.fraction);
        // The fraction is below the scale, so adding one scale before subtracting cannot wrap.
        state.fraction = state.fraction + borrow * self.scale - back.fraction;
        state.full_at = state.full_at.minus(Span::from_nanos(back.nanos.saturating_add(borrow)));
    }

    /// The state after paying `weight` at `now`.
    #[inline]
    fn next(&self, state: &Bucket, weight: u64, now: Timestamp) -> Bucket {
        let base = if state.full_at >= now { *state } else { Bucket { full_at: now, fraction: 0 } };
        let cost = self.cost(weight);
        let fraction = base.fraction + cost.fraction;
        let carry = u64::from(fraction >= self.scale);
        Bucket {
            full_at: base.full_at.plus(Span::from_nanos(cost.nanos.saturating_add(carry))),
            fraction: fraction - carry * self.scale,
        }
    }

    /// The first instant at which paying leads to `next` without debt, rounded up.
    #[inline]
    fn opening(&self, next: Bucket) -> Timestamp {
        let late = Span::from_nanos(u64::from(next.fraction > self.fill.fraction));
        // Later first: near the epoch the difference is below zero and must stay there.
        next.full_at.plus(late).minus(Span::from_nanos(self.fill.nanos))
    }

    fn lapse_to_full(&self, state: &Bucket, now: Timestamp) -> Lapse {
        if state.full_at < now {
            return Lapse { nanos: 0, fraction: 0 };
        }
        Lapse { nanos: state.full_at.since(now).as_nanos(), fraction: state.fraction }
    }

    /// How long `units` take to flow in.
    #[inline]
    fn cost(&self, units: u64) -> Lapse {
        if units == 1 {
            return self.step;
        }
        match units.checked_mul(self.price) {
            Some(parts) => Lapse { nanos: parts / self.scale, fraction: parts % self.scale },
            None => self.divided(u128::from(units) * u128::from(self.price)),
        }
    }

    #[cold]
    fn divided(&self, parts: u128) -> Lapse {
        let scale = u128::from(self.scale);
        let nanos = u64::try_from(parts / scale).unwrap_or(u64::MAX);
        let fraction = u64::try_from(parts % scale).unwrap_or(0);
        Lapse { nanos, fraction }
    }

    /// How many units flow in within `lapse`, rounded up.
    fn units(&self, lapse: Lapse) -> u64 {
        let parts = lapse.nanos.checked_mul(self.scale).and_then(|p| p.checked_add(lapse.fraction));
        if let Some(parts) = parts {
            return parts.div_ceil(self.price);
        }
        let parts = u128::from(lapse.nanos) * u128::from(self.scale) + u128::from(lapse.fraction);
        u64::try_from(parts.div_ceil(u128::from(self.price))).unwrap_or(u64::MAX)
    }
}

/// The burst less what flows in during the guard, rounded to the safe side.
fn guarded(limit: u64, per: Span, burst: u64, guard: Span) -> Result<u64, LimitError> {
    let product = u128::from(limit) * u128::from(guard.as_nanos());
    let shrink = product.div_ceil(u128::from(per.as_nanos()));
    u64::try_from(shrink)
        .ok()
        .and_then(|shrink| burst.checked_sub(shrink))
        .filter(|left| *left > 0)
        .ok_or(LimitError::GuardTakesTheBurst { burst, guard })
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(limit: u64, per: Span, burst: u64) -> BucketRule {
        BucketRule::new(limit, per, burst, Span::ZERO).unwrap()
    }

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    /// Admits one unit at each first possible instant and returns the instants.
    fn saturate(rule: &BucketRule, calls: u64) -> Vec<u64> {
        let (mut state, mut now, mut starts) = (Bucket::default(), at(7), vec![]);
        while starts.len() < usize::try_from(calls).unwrap() {
            match rule.admit(&mut state, 1, now) {
                Ok(()) => starts.push(now.as_nanos()),
                Err(opens) => now = opens,
            }
        }
        starts
    }

    #[test]
    fn three_per_second_never_drifts() {
        let starts = saturate(&rule(3, Span::from_secs(1), 2), 3_000_002);
        assert_eq!(starts[3_000_001] - starts[0], 1_000_000 * 1_000_000_000);
    }

    #[test]
    fn a_full_bucket_admits_at_the_epoch_too() {
        assert!(rule(3, Span::from_secs(1), 3).admit(&mut Bucket::default(), 1, at(0)).is_ok());
    }

    #[test]
    fn one_per_week_is_exactly_a_week_apart() {
        let week = Span::from_days(7);
        let starts = saturate(&rule(1, week, 1), 53);
        assert_eq!(starts[52] - starts[0], 52 * week.as_nanos());
    }

    #[test]
    fn a_rate_with_less_than_a_nanosecond_per_unit_loses_nothing() {
        let starts = saturate(&rule(7_000_000_000, Span::from_secs(1), 14), 7_014);
        assert_eq!(starts[7_013] - starts[0], 1_000);
    }

    #[test]
    fn a_guard_takes_what_flows_in_meanwhile_off_the_burst() {
        let guarded = |burst, guard| {
            BucketRule::new(100, Span::from_secs(1), burst, Span::from_millis(guard))
        };
        assert_eq!(guarded(50, 105).unwrap().burst(), 39);
        assert!(matches!(guarded(10, 100), Err(LimitError::GuardTakesTheBurst { .. })));
    }

    #[test]
    fn the_largest_numbers_neither_panic_nor_wrap() {
        let max = super::super::UNITS_MAX;
        let rule = rule(max, Span::from_days(366), max);
        let mut state = Bucket::default();
        let now = at(u64::MAX - 5);
        assert!(rule.admit(&mut state, max, now).is_ok());
        let _ = rule.admit(&mut state, max, Timestamp::MAX);
        rule.pay(&mut state, u64::MAX, Now::both(now));
        assert!(rule.missing(&state, Now::both(at(0))) > 0);
        rule.refund(&mut state, u64::MAX, Span::from_nanos(u64::MAX));
    }
}
