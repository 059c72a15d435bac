//! How long to wait before a call is tried again, as an expression that QStash would take:
//! `max(1000, pow(2, retried) * 100)`.

mod parser;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tollgate_core::Span;

/// No retry is put off for longer, whatever an expression gives.
pub const DELAY_MAX: Span = Span::from_days(1);

/// An expression is kept with its call and sent as a header: room for any formula, not for a program.
pub const TEXT_BYTES_MAX: usize = 1024;

/// How deep parentheses, functions and minus signs may nest: reading them is recursive.
pub const DEPTH_MAX: usize = 32;

/// Numbers, variables, operators and functions of one expression: it is evaluated at every retry.
pub const NODES_MAX: usize = 256;

/// A delay in milliseconds that depends on how often a call was retried.
///
/// It has numbers, `+ - * / %`, parentheses, the variable `retried` and the functions `pow`, `sqrt`,
/// `abs`, `exp`, `floor`, `ceil`, `round`, `min` and `max`.
#[derive(Clone)]
pub struct Expression {
    // Invariant: `root` is what `text` says.
    text: Box<str>,
    root: Node,
}

/// Why a text is not an expression. Places are characters, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It has too many bytes.
    #[error("an expression has up to {TEXT_BYTES_MAX} bytes, and this one {bytes}: shorten it")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It nests too deep.
    #[error("an expression nests up to {DEPTH_MAX} deep, and character {at} is deeper: flatten it")]
    TooDeep {
        /// The first character that is too deep.
        at: usize,
    },
    /// It has too many parts.
    #[error(
        "an expression has up to {NODES_MAX} numbers, variables, operators and functions, and there are more from character {at} on: shorten it"
    )]
    TooLarge {
        /// Where the first part is that is too many.
        at: usize,
    },
    /// Something else should stand there.
    #[error("at character {at} there is {found:?}, and there should be {wanted}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What is there.
        found: char,
        /// What could be there.
        wanted: &'static str,
    },
    /// It stops too early.
    #[error("it ends where there should be {wanted}")]
    Ends {
        /// What could follow.
        wanted: &'static str,
    },
    /// A name that means nothing.
    #[error(
        "at character {at} there is {name:?}, which is no variable or function: use retried, pow, sqrt, abs, exp, floor, ceil, round, min or max"
    )]
    UnknownName {
        /// Where it begins.
        at: usize,
        /// Its first characters.
        name: String,
    },
}

/// What there is to compute.
///
/// Floats are right here, and nowhere near a meter: a delay is no account, and `pow` and `exp` have
/// no integers.
#[derive(Clone)]
enum Node {
    Number(f64),
    Retried,
    Unary(fn(f64) -> f64, Box<Node>),
    Binary(fn(f64, f64) -> f64, Box<Node>, Box<Node>),
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ExpressionError::TooLong { bytes: text.len() });
        }
        Ok(Self { text: text.into(), root: parser::parse(text)? })
    }

    /// The wait before the next retry of a call that was retried so many times, 0 at first.
    ///
    /// What is negative or no number is no wait, and what is longer than [`DELAY_MAX`] is that.
    pub fn delay(&self, retried: u32) -> Span {
        let millis = self.root.evaluate(f64::from(retried));
        if millis.is_nan() || millis <= 0.0 {
            return Span::ZERO;
        }
        span(millis).map_or(DELAY_MAX, |span| span.min(DELAY_MAX))
    }

    /// The text that was read.
    pub fn as_text(&self) -> &str {
        &self.text
    }
}

impl Node {
    /// Recursive, and safe so: no path is longer than [`NODES_MAX`].
    fn evaluate(&self, retried: f64) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Retried => retried,
            Self::Unary(function, node) => function(node.evaluate(retried)),
            Self::Binary(function, left, right) => {
                function(left.evaluate(retried), right.evaluate(retried))
            }
        }
    }
}

/// `None` for more than any duration.
#[expect(clippy::float_arithmetic, reason = "an expression gives a float")]
fn span(millis: f64) -> Option<Span> {
    Duration::try_from_secs_f64(millis / 1_000.0).ok().map(Span::from)
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn delay_ms(text: &str, retried: u32) -> u64 {
        Expression::parse(text).unwrap().delay(retried).as_nanos() / 1_000_000
    }

    fn error(text: &str) -> String {
        Expression::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn operators_bind_as_in_school() {
        for (text, millis) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("20 - 5 - 3", 12),
            ("100 / 5 / 2", 10),
            ("17 % 5 * 2", 4),
            ("-3 + 10", 7),
            ("10 - -3", 13),
            ("-(2 - 7)", 5),
            ("2 * -3 + 7", 1),
        ] {
            assert_eq!(delay_ms(text, 0), millis, "{text}");
        }
    }

    #[test]
    fn every_function_gives_its_value() {
        for (text, millis) in [
            ("pow(2, 10)", 1024),
            ("sqrt(144)", 12),
            ("abs(-5)", 5),
            ("floor(exp(1) * 1000)", 2718),
            ("floor(2.9)", 2),
            ("ceil(2.1)", 3),
            ("round(2.5)", 3),
            ("min(3, 4)", 3),
            ("max(3, 4)", 4),
        ] {
            assert_eq!(delay_ms(text, 0), millis, "{text}");
        }
    }

    #[test]
    fn a_delay_grows_with_the_retries() {
        let text = "max(1000, pow(2, retried) * 100)";
        let delays = [0, 3, 4, 5].map(|retried| delay_ms(text, retried));
        assert_eq!(delays, [1000, 1000, 1600, 3200]);
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_kept() {
        let delay = Expression::parse("0.25 + 1").unwrap().delay(0);
        assert_eq!(delay, Span::from_nanos(1_250_000));
    }

    #[test]
    fn a_delay_is_never_below_zero_nor_over_a_day() {
        for text in ["0", "-1", "0 / 0", "sqrt(-1)", "5 % 0", "0 - pow(10, 400)"] {
            assert_eq!(Expression::parse(text).unwrap().delay(0), Span::ZERO, "{text}");
        }
        for text in ["86400001", "1 / 0", "pow(10, 400)", "exp(1000)", &"9".repeat(1000)] {
            assert_eq!(Expression::parse(text).unwrap().delay(0), DELAY_MAX, "{text}");
        }
        let almost = Expression::parse("86399999").unwrap().delay(0);
        assert_eq!(almost, Span::from_millis(86_399_999));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            ("", "it ends where there should be a number, retried, a function or ("),
            ("1 +", "it ends where there should be a number, retried, a function or ("),
            ("1 2", "at character 3 there is '2', and there should be an operator or the end"),
            ("(1", "it ends where there should be )"),
            ("1)", "at character 2 there is ')', and there should be an operator or the end"),
            ("pow(1)", "at character 6 there is ')', and there should be a comma"),
            ("abs(1, 2)", "at character 6 there is ',', and there should be )"),
            ("sqrt 4", "at character 6 there is '4', and there should be ("),
            ("1.", "it ends where there should be a digit"),
            (
                "é",
                "at character 1 there is 'é', and there should be a number, retried, a function or (",
            ),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
        assert!(error("1 + tries").starts_with("at character 5 there is \"tries\", which is no"));
        assert!(error(&"a".repeat(1000)).len() < 300);
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        let spaces = " ".repeat(TEXT_BYTES_MAX - 1);
        assert!(Expression::parse(&format!("1{spaces}")).is_ok());
        assert_eq!(
            Expression::parse(&format!("1{spaces} ")),
            Err(ExpressionError::TooLong { bytes: 1025 })
        );
        let nested = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Expression::parse(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(
            Expression::parse(&nested(DEPTH_MAX + 1)),
            Err(ExpressionError::TooDeep { at: 33 })
        );
        let minus = format!("{}1", "-".repeat(DEPTH_MAX + 1));
        assert_eq!(Expression::parse(&minus), Err(ExpressionError::TooDeep { at: 33 }));
        let chain = |ones: usize| vec!["1"; ones].join("+");
        assert!(Expression::parse(&chain(128)).is_ok());
        assert!(matches!(Expression::parse(&chain(129)), Err(ExpressionError::TooLarge { .. })));
    }

    #[test]
    fn the_text_comes_back() {
        let text = " max( 1000,retried*2 ) ";
        let expression: Expression = text.parse().unwrap();
        assert_eq!(expression.to_string(), text);
        assert_eq!(format!("{expression:?}"), "Expression(\" max( 1000,retried*2 ) \")");
    }
}
