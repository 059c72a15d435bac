//! Meters under the original, and their values as cells keep them: what the script is compared with.

use std::sync::Arc;
use tollgate_core::meter::Holding;
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{Definition, Meter, Now, Payment, Span};
use tollgate_stores::shared::quick::{QuickAsk, QuickLine};

/// A number of 64 bits is written as two, its billions and the rest.
const BILLION: u64 = 1_000_000_000;

/// A meter as the original keeps it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) meter: Meter,
    pub(super) definition: Arc<Definition>,
    pub(super) rules: Arc<str>,
    pub(super) seen: u64,
}

impl Kept {
    /// A new one, as a line wants it.
    pub(super) fn of(line: &QuickLine, now: Now) -> Self {
        Self {
            meter: Meter::new(&line.definition, now.at),
            definition: Arc::clone(&line.definition),
            rules: Arc::clone(&line.rules),
            seen: line.seen,
        }
    }

    /// Its value.
    pub(super) fn value(&self, now: Now) -> Vec<u8> {
        let closed = self.meter.closed(now.at);
        let (until, reason) = closed.map_or((0, ""), |(until, why)| (until.as_nanos(), why));
        let mut bytes = vec![1];
        write_text(&mut bytes, &self.rules);
        write_word(&mut bytes, self.seen);
        write_word(&mut bytes, until);
        write_text(&mut bytes, reason);
        for word in self.meter.to_words() {
            write_word(&mut bytes, word);
        }
        bytes
    }
}

/// Takes asks in order as the original does, at meters that are made where there are none. Says which
/// were granted, and what was paid where.
pub(super) fn take(
    kept: &mut [Option<Kept>],
    asks: &[QuickAsk],
    now: Now,
) -> (Vec<bool>, Vec<(usize, Payment)>) {
    let mut paid = Vec::new();
    let granted = asks.iter().map(|ask| {
        let mut meters: Vec<(&QuickLine, Kept)> = Vec::new();
        for line in &ask.lines {
            let meter = kept[line.at].clone().unwrap_or_else(|| Kept::of(line, now));
            meters.push((line, meter));
        }
        let is_open = |(line, kept): &(&QuickLine, Kept)| {
            kept.meter.blocker(&kept.definition, line.weight, now).is_none()
        };
        if !meters.iter().all(is_open) {
            return false;
        }
        let latest = meters.iter().map(|(_, kept)| kept.meter.to_words()[0]).max().unwrap();
        let id = HoldId(now.at.as_nanos().max(latest) + 1);
        let holding = Holding { id, expires: now.at.plus(ask.life.min(Span::from_days(1))) };
        for (line, mut meter) in meters {
            let Kept { meter: paid_at, definition, .. } = &mut meter;
            let payment = paid_at.pay(definition, line.weight, (now, now.at), Some(holding));
            paid.push((line.at, payment));
            kept[line.at] = Some(meter);
        }
        true
    });
    (granted.collect(), paid)
}

/// Five bytes for the billions, and four for the rest.
fn write_word(bytes: &mut Vec<u8>, word: u64) {
    bytes.extend(&(word / BILLION).to_be_bytes()[3..]);
    bytes.extend(u32::try_from(word % BILLION).unwrap().to_be_bytes());
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    bytes.extend(text.as_bytes());
}
