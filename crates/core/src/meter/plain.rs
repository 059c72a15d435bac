//! Plain meters: one rate rule, nothing promised, closed or held. Two words say all about them, so
//! that a limiter can keep millions; anything else makes them whole meters.

use super::{Meter, Standing};
use crate::limit::Definition;
use crate::rule::bucket::{Bucket, BucketRule};
use crate::rule::window::{Window, WindowRule};
use crate::rule::{Rule, RuleState};
use crate::time::{Now, Span, Timestamp};

/// The one rule of a limit whose meters can be plain.
#[derive(Debug, Clone, Copy)]
pub enum PlainRule<'a> {
    /// A token bucket.
    Bucket(&'a BucketRule),
    /// A fixed window that opens at the first call.
    Window(&'a WindowRule),
}

/// State of a plain meter. The default is as good as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plain {
    /// When the bucket is full, or the window ends: from then on the meter is as good as new,
    /// unless `count` is above zero for a bucket, then a nanosecond later.
    pub instant: Timestamp,
    /// The bucket's fraction, or what was spent in the window.
    pub count: u64,
}

impl Definition {
    /// The rule of plain meters, if this limit's meters can be plain.
    #[inline]
    pub fn plain(&self) -> Option<PlainRule<'_>> {
        match self.rules() {
            [Rule::Bucket(rule)] => Some(PlainRule::Bucket(rule)),
            [Rule::Window(rule)] if !rule.is_on_calendar() => Some(PlainRule::Window(rule)),
            _ => None,
        }
    }
}

impl PlainRule<'_> {
    /// Pays if the weight passes now, and says when it passes otherwise.
    #[inline]
    pub fn admit(self, plain: &mut Plain, weight: u64, now: Timestamp) -> Result<(), Timestamp> {
        match self {
            Self::Bucket(rule) => {
                let mut bucket = Bucket { full_at: plain.instant, fraction: plain.count };
                rule.admit(&mut bucket, weight, now)?;
                *plain = Plain { instant: bucket.full_at, count: bucket.fraction };
            }
            Self::Window(rule) => {
                let mut window = Window { ends: plain.instant, spent: plain.count };
                rule.admit(&mut window, weight, now)?;
                *plain = Plain { instant: window.ends, count: window.spent };
            }
        }
        Ok(())
    }

    /// How a plain meter stands.
    #[inline]
    pub fn standing(self, plain: Plain, now: Timestamp) -> Standing {
        let both = Now::both(now);
        let (limit, per, capacity, missing) = match self {
            Self::Bucket(rule) => {
                let bucket = Bucket { full_at: plain.instant, fraction: plain.count };
                (rule.limit(), rule.per(), rule.burst(), rule.missing(&bucket, both))
            }
            Self::Window(rule) => {
                let window = Window { ends: plain.instant, spent: plain.count };
                (rule.limit(), rule.per(), rule.limit(), rule.missing(&window, both))
            }
        };
        let remaining = capacity.cast_signed().saturating_sub_unsigned(missing);
        let reset_after = match missing {
            0 => Span::ZERO,
            _ => plain.instant.since(now).plus(Span::from_nanos(self.rounding(plain))),
        };
        Standing { limit, per: Some(per), remaining, reset_after }
    }

    fn rounding(self, plain: Plain) -> u64 {
        u64::from(matches!(self, Self::Bucket(_)) && plain.count > 0)
    }
}

impl Plain {
    /// Whether it could be forgotten without anyone noticing; the same under every rule.
    pub fn is_fresh(self, now: Timestamp) -> bool {
        self.instant < now
    }
}

impl Meter {
    /// The two words of a meter from which no receipt is out, if they say all about it.
    pub fn to_plain(&self, definition: &Definition) -> Option<Plain> {
        let [ledger] = &*self.ledgers else { return None };
        let is_plain = self.closed.is_none() && ledger.promised() == 0;
        match (&ledger.state, definition.plain().filter(|_| is_plain)?) {
            (RuleState::Bucket(bucket), PlainRule::Bucket(_)) => {
                Some(Plain { instant: bucket.full_at, count: bucket.fraction })
            }
            // A window's debt outlives its end, which two words do not say.
            (RuleState::Window(window), PlainRule::Window(rule))
                if window.spent <= rule.limit() =>
            {
                Some(Plain { instant: window.ends, count: window.spent })
            }
            _ => None,
        }
    }

    /// The whole meter of a plain one.
    pub fn from_plain(definition: &Definition, plain: Plain, now: Timestamp) -> Self {
        let mut meter = Self::new(definition, now);
        if let Some(ledger) = meter.ledgers.first_mut() {
            match &mut ledger.state {
                RuleState::Bucket(bucket) => {
                    *bucket = Bucket { full_at: plain.instant, fraction: plain.count };
                }
                RuleState::Window(window) => {
                    *window = Window { ends: plain.instant, spent: plain.count };
                }
                _ => {}
            }
        }
        meter
    }
}
