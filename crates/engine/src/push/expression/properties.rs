//! An expression agrees with a tree that is computed by hand, and any text is one or none.

use super::*;
use proptest::prelude::*;

/// Nothing this deep or large is refused.
const LEVELS: u32 = 5;

#[derive(Debug, Clone)]
enum Tree {
    Number(u32, u8),
    Retried,
    Minus(Box<Tree>),
    Sum(Box<Tree>, char, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

impl Tree {
    /// Every operation in parentheses, so that nothing depends on what binds first.
    fn text(&self) -> String {
        match self {
            Self::Number(whole, hundredths) => format!("{whole}.{hundredths:02}"),
            Self::Retried => "retried".to_owned(),
            Self::Minus(tree) => format!("(-{})", tree.text()),
            Self::Sum(left, sign, right) => format!("({} {sign} {})", left.text(), right.text()),
            Self::Call(name, trees) => {
                let arguments: Vec<String> = trees.iter().map(Self::text).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }

    #[expect(clippy::float_arithmetic, reason = "the model of an arithmetic with floats")]
    fn value(&self, retried: u32) -> f64 {
        match self {
            Self::Number(..) => self.text().parse().unwrap(),
            Self::Retried => f64::from(retried),
            Self::Minus(tree) => -tree.value(retried),
            Self::Sum(left, sign, right) => {
                let (left, right) = (left.value(retried), right.value(retried));
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    '/' => left / right,
                    _ => left % right,
                }
            }
            Self::Call(name, trees) => {
                let values: Vec<f64> = trees.iter().map(|tree| tree.value(retried)).collect();
                call(name, &values)
            }
        }
    }
}

fn call(name: &str, values: &[f64]) -> f64 {
    match (name, values) {
        ("pow", [base, power]) => base.powf(*power),
        ("min", [one, other]) => one.min(*other),
        ("max", [one, other]) => one.max(*other),
        ("sqrt", [value]) => value.sqrt(),
        ("abs", [value]) => value.abs(),
        ("exp", [value]) => value.exp(),
        ("floor", [value]) => value.floor(),
        ("ceil", [value]) => value.ceil(),
        ("round", [value]) => value.round(),
        _ => panic!("no function {name} of {values:?}"),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0..10_000_u32, 0..100_u8).prop_map(|(whole, rest)| Tree::Number(whole, rest)),
        Just(Tree::Retried),
    ];
    let one = prop::sample::select(vec!["sqrt", "abs", "exp", "floor", "ceil", "round"]);
    let two = prop::sample::select(vec!["pow", "min", "max"]);
    let signs = prop::sample::select(vec!['+', '-', '*', '/', '%']);
    leaf.prop_recursive(LEVELS, 24, 2, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|tree| Tree::Minus(Box::new(tree))),
            (inner.clone(), signs.clone(), inner.clone())
                .prop_map(|(left, sign, right)| Tree::Sum(Box::new(left), sign, Box::new(right))),
            (one.clone(), inner.clone()).prop_map(|(name, tree)| Tree::Call(name, vec![tree])),
            (two.clone(), inner.clone(), inner)
                .prop_map(|(name, first, second)| Tree::Call(name, vec![first, second])),
        ]
    })
}

/// The delay that a value in milliseconds stands for, said in another way than the code does.
#[expect(clippy::float_arithmetic, reason = "the model of an arithmetic with floats")]
fn delay_of(millis: f64) -> Span {
    let seconds = (millis / 1_000.0).clamp(0.0, 86_400.0);
    if seconds.is_nan() { Span::ZERO } else { Duration::from_secs_f64(seconds).into() }
}

proptest! {
    #[test]
    fn agrees_with_a_tree_computed_by_hand(tree in trees(), retried in 0..50_u32) {
        let text = tree.text();
        prop_assume!(text.len() <= TEXT_BYTES_MAX);
        let expression = Expression::parse(&text).unwrap();
        prop_assert_eq!(expression.delay(retried), delay_of(tree.value(retried)), "{}", text);
        prop_assert_eq!(expression.as_text(), text);
    }

    #[test]
    fn any_text_is_an_expression_or_none(text in ".*", retried: u32) {
        if let Ok(expression) = Expression::parse(&text) {
            prop_assert!(expression.delay(retried) <= DELAY_MAX);
        }
    }

    #[test]
    fn any_text_of_its_own_signs_is_an_expression_or_none(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "(", ")", ",", "+", "-", "*", "/", "%", " ", ".", "7", "0.5", "retried", "pow(",
                "min(", "abs(", "sqrt", "é",
            ]),
            0..300,
        ),
        retried: u32,
    ) {
        match Expression::parse(&parts.concat()) {
            Ok(expression) => prop_assert!(expression.delay(retried) <= DELAY_MAX),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
