//! How a meter stands, worked out when someone asks: a division costs as much as a decision.

use tollgate_core::{Span, Standing};

/// What one plain meter says: how it stands, and whether the toll was paid or how long to wait.
pub(crate) type Decided = (Stand, Result<(), Span>);

/// How a meter stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stand {
    /// Worked out already.
    Known(Standing),
    /// A bucket that takes `refilling` nanoseconds to fill, at `step` nanoseconds a unit.
    Refilling { limit: u64, burst: u64, step: u64, refilling: u64 },
}

impl Stand {
    pub(crate) fn standing(self) -> Standing {
        match self {
            Self::Known(standing) => standing,
            Self::Refilling { limit, burst, step, refilling } => {
                let missing = refilling.div_ceil(step.max(1));
                let remaining = burst.cast_signed().saturating_sub_unsigned(missing);
                // The step is whole nanoseconds, so this is the period again.
                let per = Some(Span::from_nanos(step.saturating_mul(limit)));
                Standing { limit, per, remaining, reset_after: Span::from_nanos(refilling) }
            }
        }
    }
}
