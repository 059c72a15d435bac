//! One field of a schedule: the set of numbers that it names.

use super::CronError;
use std::ops::RangeInclusive;

/// Numbers up to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    numbers: u64,
    /// It is `*`, or a step of it from its start: not chosen one by one.
    pub(super) is_any: bool,
}

impl Field {
    pub(super) fn new(
        field: &'static str,
        text: &str,
        range: RangeInclusive<u8>,
    ) -> Result<Self, CronError> {
        Self::named(field, text, range, &[])
    }

    /// Reads a field whose numbers have names, too, from the least one on.
    pub(super) fn named(
        field: &'static str,
        text: &str,
        range: RangeInclusive<u8>,
        names: &[&str],
    ) -> Result<Self, CronError> {
        let (least, most) = range.into_inner();
        let wrong = || {
            let text = text.chars().take(64).collect();
            CronError::Field { field, least, most, text }
        };
        let scale = Scale { least, most, names };
        let mut numbers = 0;
        for part in text.split(',') {
            numbers |= scale.part(part).ok_or_else(wrong)?;
        }
        Ok(Self { numbers, is_any: text.starts_with('*') })
    }

    /// Sunday is 0 and 7.
    pub(super) fn with_sunday_as_zero(self) -> Self {
        let numbers = (self.numbers | self.numbers >> 7) & 0b111_1111;
        Self { numbers, ..self }
    }

    pub(super) fn contains(self, number: u8) -> bool {
        self.numbers >> number & 1 == 1
    }

    pub(super) fn each(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |number| self.contains(*number))
    }
}

struct Scale<'a> {
    least: u8,
    most: u8,
    names: &'a [&'a str],
}

impl Scale<'_> {
    /// `*`, a number, a range, or a step through one of them.
    fn part(&self, text: &str) -> Option<u64> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            // A number with a step goes on to the end.
            None if step.is_some() => (self.number(range)?, self.most),
            None => (self.number(range)?, self.number(range)?),
        };
        let step = usize::from(step.unwrap_or(1));
        if first > last || step == 0 {
            return None;
        }
        Some((first..=last).step_by(step).fold(0, |numbers, number| numbers | 1 << number))
    }

    fn number(&self, text: &str) -> Option<u8> {
        let is_name = |name: &&str| name.eq_ignore_ascii_case(text);
        let named = self.names.iter().position(is_name);
        let named = named.and_then(|place| u8::try_from(place).ok()).map(|at| at + self.least);
        let found = named.or_else(|| number(text))?;
        (self.least..=self.most).contains(&found).then_some(found)
    }
}

fn number(text: &str) -> Option<u8> {
    // The standard library also takes a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
