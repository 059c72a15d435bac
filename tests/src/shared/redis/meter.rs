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
        let words = self.meter.to_words();
        let mut bytes = Vec::new();
        write_length(&mut bytes, 7 + words.len() * 2, [0x90, 0xdc, 0xdd]);
        write_number(&mut bytes, 1);
        write_text(&mut bytes, &self.rules);
        write_pair(&mut bytes, self.seen);
        write_pair(&mut bytes, until);
        write_text(&mut bytes, reason);
        for word in words {
            write_pair(&mut bytes, word);
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

fn write_pair(bytes: &mut Vec<u8>, number: u64) {
    write_number(bytes, number / BILLION);
    write_number(bytes, number % BILLION);
}

/// In as few bytes as MessagePack has for it.
fn write_number(bytes: &mut Vec<u8>, number: u64) {
    let all = number.to_be_bytes();
    let (mark, width) = match number {
        0..0x80 => return bytes.push(all[7]),
        0x80..0x100 => (0xcc, 1),
        0x100..0x1_0000 => (0xcd, 2),
        0x1_0000..0x1_0000_0000 => (0xce, 4),
        _ => (0xcf, 8),
    };
    bytes.push(mark);
    bytes.extend(&all[8 - width..]);
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    match u8::try_from(text.len()).unwrap() {
        length @ 0..32 => bytes.push(0xa0 | length),
        length => bytes.extend([0xd9, length]),
    }
    bytes.extend(text.as_bytes());
}

/// The length of a list, in one of three forms.
fn write_length(bytes: &mut Vec<u8>, length: usize, [short, middle, long]: [u8; 3]) {
    let all = u32::try_from(length).unwrap().to_be_bytes();
    match length {
        0..16 => bytes.push(short | all[3]),
        16..0x1_0000 => {
            bytes.push(middle);
            bytes.extend(&all[2..]);
        }
        _ => {
            bytes.push(long);
            bytes.extend(all);
        }
    }
}
