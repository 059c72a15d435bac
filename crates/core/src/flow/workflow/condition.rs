//! Conditions: whether a task's input says that it is to be done.

use super::decimal::Decimal;
use super::input_path::InputPath;
use super::task::{Comparison, When};
use crate::lanes::path::Found;
use serde_json::Value;
use std::cmp::Ordering;

/// Longest text that an input is compared with: it is kept with the workflow.
pub const CONDITION_BYTES_MAX: usize = 512;

/// A condition that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) path: InputPath,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Is(Scalar),
    IsNot(Scalar),
    Order(Bound, Decimal),
    Exists(bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scalar {
    Text(Box<str>),
    Number(Decimal),
    Truth(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Lt,
    Le,
    Gt,
    Ge,
}

impl Condition {
    /// The condition as it was written, at a path that was read already; `None` if nothing is compared with
    /// such a value in this way.
    pub(super) fn new(path: InputPath, when: &When) -> Option<Self> {
        let value = &when.value;
        let order = |bound| Some(Test::Order(bound, number_in(value)?));
        let test = match when.is {
            Comparison::Eq => Some(Test::Is(Scalar::of(value)?)),
            Comparison::Ne => Some(Test::IsNot(Scalar::of(value)?)),
            Comparison::Lt => order(Bound::Lt),
            Comparison::Le => order(Bound::Le),
            Comparison::Gt => order(Bound::Gt),
            Comparison::Ge => order(Bound::Ge),
            Comparison::Exists => value.as_bool().map(Test::Exists),
        }?;
        Some(Self { path, test })
    }

    /// Whether it holds, by what an input has at its path.
    pub(super) fn holds(&self, found: &Found<'_>) -> bool {
        match &self.test {
            Test::Exists(is_there) => *is_there != matches!(found, Found::Nothing | Found::Null),
            Test::Is(value) => value.is(found) == Some(true),
            Test::IsNot(value) => value.is(found) == Some(false),
            Test::Order(bound, number) => {
                number_found(found).is_some_and(|found| bound.admits(found.cmp(number)))
            }
        }
    }
}

impl Scalar {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if text.len() <= CONDITION_BYTES_MAX => {
                Some(Self::Text(text.as_str().into()))
            }
            Value::Bool(is_true) => Some(Self::Truth(*is_true)),
            _ => number_in(value).map(Self::Number),
        }
    }

    /// Whether it is what was found; `None` if that is of another type.
    fn is(&self, found: &Found<'_>) -> Option<bool> {
        match (self, found) {
            (Self::Text(text), Found::Text(found)) => Some(**text == **found),
            (Self::Truth(is_true), Found::Truth(found)) => Some(is_true == found),
            (Self::Number(number), found) => Some(*number == number_found(found)?),
            _ => None,
        }
    }
}

impl Bound {
    fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

/// The number that a value is, by its text: what was read from JSON is written as it was read.
fn number_in(value: &Value) -> Option<Decimal> {
    value.as_number().and_then(|number| Decimal::new(&number.to_string()))
}

fn number_found(found: &Found<'_>) -> Option<Decimal> {
    match found {
        Found::Whole(number) => Decimal::new(&number.to_string()),
        Found::Number(number) => Decimal::new(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::path::read;
    use serde_json::json;

    fn holds(input: &str, path: &str, is: Comparison, value: Value) -> bool {
        let path = InputPath::new(path).unwrap();
        let when = When { path: path.to_string(), is, value };
        let condition = Condition::new(path, &when).unwrap();
        let found = read(input.as_bytes(), &[condition.path.in_body()]).unwrap();
        condition.holds(&found[0])
    }

    #[test]
    fn a_condition_holds_for_what_it_says() {
        use Comparison::{Eq, Exists, Ge, Gt, Le, Lt, Ne};
        let input =
            r#"{"s": "ok", "n": 5, "f": 2.50, "t": true, "nil": null, "l": [1, 2], "o": {}}"#;
        for (path, is, value, expected) in [
            ("s", Eq, json!("ok"), true),
            ("s", Eq, json!("no"), false),
            ("s", Ne, json!("no"), true),
            ("n", Eq, json!(5), true),
            ("n", Eq, json!("5"), false),
            ("n", Ne, json!("5"), false),
            ("x", Ne, json!("5"), false),
            ("nil", Ne, json!("5"), false),
            ("f", Eq, json!(2.5), true),
            ("f", Gt, json!(2), true),
            ("f", Le, json!(2), false),
            ("n", Lt, json!(5), false),
            ("n", Le, json!(5), true),
            ("n", Ge, json!(5), true),
            ("n", Gt, json!(-5), true),
            ("s", Lt, json!(5), false),
            ("t", Eq, json!(true), true),
            ("t", Ne, json!(true), false),
            ("l.length", Ge, json!(2), true),
            ("l[1]", Eq, json!(2), true),
            ("l", Exists, json!(true), true),
            ("nil", Exists, json!(true), false),
            ("nil", Exists, json!(false), true),
            ("x", Exists, json!(false), true),
            ("o.x.y", Exists, json!(false), true),
            (".", Exists, json!(true), true),
        ] {
            assert_eq!(holds(input, path, is, value.clone()), expected, "{path} {is:?} {value}");
        }
    }

    #[test]
    fn large_numbers_are_told_apart() {
        let input = r#"{"id": 9007199254740993, "huge": 1e400, "long": 340282366920938463463374607431768211457}"#;
        assert!(!holds(input, "id", Comparison::Eq, json!(9_007_199_254_740_992_u64)));
        assert!(holds(input, "id", Comparison::Gt, json!(9_007_199_254_740_992_u64)));
        assert!(holds(input, "huge", Comparison::Gt, json!(u64::MAX)));
        assert!(holds(input, "long", Comparison::Ge, json!(u64::MAX)));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        use Comparison::{Eq, Exists, Gt, Lt, Ne};
        for (is, value) in [
            (Eq, json!(null)),
            (Ne, json!([1])),
            (Eq, json!({})),
            (Lt, json!("5")),
            (Gt, json!(true)),
            (Exists, json!(1)),
            (Eq, json!("x".repeat(CONDITION_BYTES_MAX + 1))),
        ] {
            let when = When { path: "a".to_owned(), is, value };
            assert_eq!(Condition::new(InputPath::new("a").unwrap(), &when), None, "{when:?}");
        }
    }
}
