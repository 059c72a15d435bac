//! Numbers of JSON, compared by their exact value and without a float.

use std::cmp::Ordering;

/// Most digits of an exponent that is understood: more is a number of nothing that is counted.
const EXPONENT_DIGITS_MAX: usize = 15;

/// A number of JSON.
// Invariant: the value is 0.digits times ten to the power of `point`, and the digits neither begin nor
// end with a zero; without digits it is zero, `point` is 0 and it is not negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: Box<[u8]>,
    point: i64,
}

impl Decimal {
    /// The number that a text says as JSON does; `None` if it says none, or one with an exponent of more than
    /// 15 digits.
    pub(super) fn new(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
            return Some(Self { is_negative: false, digits: [].into(), point: 0 });
        };
        let last = digits.iter().rposition(|digit| *digit != b'0')?;
        let leading = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(first).ok()?)?;
        let point = leading.checked_add(exponent)?;
        Some(Self { is_negative, digits: digits[first..=last].into(), point })
    }

    /// Without the sign: the point decides, and then the digits as they stand.
    fn cmp_size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

fn exponent_of(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > EXPONENT_DIGITS_MAX {
        return None;
    }
    let size: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(if is_negative { -size } else { size })
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::new(text).unwrap()
    }

    #[test]
    fn numbers_are_in_order_however_they_are_written() {
        let ascending = [
            "-1e400",
            "-12",
            "-1.21",
            "-1.2",
            "-0.1",
            "0",
            "1e-400",
            "0.05",
            "0.1",
            "0.11",
            "1",
            "1.0000000000000000000000000001",
            "9007199254740992",
            "9007199254740993",
            "1e400",
        ];
        for (place, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(decimal(left).cmp(&decimal(right)), place.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn one_value_is_one_number() {
        for (left, right) in [
            ("1.50", "1.5"),
            ("-0", "0"),
            ("0e7", "0.0"),
            ("1e3", "1000"),
            ("120E-2", "1.2"),
            ("0.01e+02", "1"),
        ] {
            assert_eq!(decimal(left), decimal(right));
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in
            ["", "-", ".5", "1.x", "1e", "e1", "1e1.5", "+1", "1e1000000000000000", "Infinity"]
        {
            assert_eq!(Decimal::new(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_compare_as_scaled_whole_numbers_do(
            left in -100_000_i64..100_000, left_scale in 0_usize..4,
            right in -100_000_i64..100_000, right_scale in 0_usize..4,
        ) {
            let scaled = |value: i64, scale: usize| value * 10_i64.pow(u32::try_from(4 - scale).unwrap());
            let written = |value: i64, scale: usize| decimal(&format!("{value}e-{scale}"));
            let expected = scaled(left, left_scale).cmp(&scaled(right, right_scale));
            prop_assert_eq!(written(left, left_scale).cmp(&written(right, right_scale)), expected);
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "-?[0-9.eE+\\-]{0,24}|.{0,12}") {
            let _ = Decimal::new(&text);
        }
    }
}
