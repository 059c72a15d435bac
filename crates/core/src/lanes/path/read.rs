//! Reading a body at some paths, in one pass: what nobody asks for is skipped, and no tree is built.

use super::{BodyPath, Step};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;

/// What a body has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Nothing is there.
    Nothing,
    Null,
    Text(Cow<'a, str>),
    Whole(i128),
    /// A number with a fraction, an exponent or too many digits, as it is written.
    Number(&'a str),
    Truth(bool),
    /// A list, as it is written.
    List(&'a str),
    Object,
}

/// What a message shows of a number.
const SHOWN_BYTES_MAX: usize = 40;

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Text(text) if text.is_empty() => f.write_str("an empty text"),
            Self::Text(text) => write!(f, "a text of {} bytes", text.len()),
            Self::Whole(number) => write!(f, "the number {number}"),
            Self::Number(number) if number.len() <= SHOWN_BYTES_MAX => {
                write!(f, "{number}, which is no whole number")
            }
            Self::Number(_) => f.write_str("a number of too many digits"),
            Self::Truth(is_true) => write!(f, "{is_true}"),
            Self::Null => f.write_str("null"),
            Self::List(_) => f.write_str("a list"),
            Self::Object => f.write_str("an object"),
        }
    }
}

/// A body is not JSON, and something was to be read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// What a body has at each of these paths. An empty body has nothing anywhere. Of two fields of one
/// name the last counts.
pub(crate) fn read<'a>(body: &'a [u8], paths: &[&BodyPath]) -> Result<Vec<Found<'a>>, NotJson> {
    let mut found = vec![Found::Nothing; paths.len()];
    if body.is_empty() {
        return Ok(found);
    }
    let wanted = paths.iter().map(|path| &*path.steps).enumerate().collect();
    let mut input = serde_json::Deserializer::from_slice(body);
    let reading = Reading { wanted, found: &mut found };
    let whole = reading.deserialize(&mut input).and_then(|()| input.end());
    whole.map(|()| found).map_err(|_| NotJson)
}

/// The paths that lead on from somewhere, each with its number and the steps that are left.
type Wanted<'p> = SmallVec<[(usize, &'p [Step]); 4]>;

struct Reading<'a, 'p, 'f> {
    wanted: Wanted<'p>,
    found: &'f mut [Found<'a>],
}

impl<'a> Reading<'a, '_, '_> {
    /// Takes what paths end at, and goes on with the others.
    fn take(self, value: &'a str) -> serde_json::Result<()> {
        let Self { wanted, found } = self;
        let mut left = Wanted::new();
        for (number, steps) in wanted {
            if steps.is_empty() {
                found[number] = found_in(value)?;
            } else if is_length(steps) && !value.starts_with('{') {
                found[number] = length_of(value)?;
            } else {
                left.push((number, steps));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let mut input = serde_json::Deserializer::from_str(value);
        input.deserialize_any(Reading { wanted: left, found })
    }
}

impl<'a> DeserializeSeed<'a> for Reading<'a, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, input: D) -> Result<(), D::Error> {
        let ends = |(_, steps): &(usize, &[Step])| steps.is_empty() || is_length(steps);
        if self.wanted.is_empty() {
            serde::Deserialize::deserialize(input).map(|IgnoredAny| ())
        } else if self.wanted.iter().any(ends) {
            let value: &RawValue = serde::Deserialize::deserialize(input)?;
            self.take(value.get()).map_err(Error::custom)
        } else {
            input.deserialize_any(self)
        }
    }
}

impl<'a> Visitor<'a> for Reading<'a, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { wanted, found } = self;
        while let Some(on) = map.next_key_seed(Field { wanted: &wanted, found })? {
            map.next_value_seed(Reading { wanted: on, found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { wanted, found } = self;
        for number in 0.. {
            let on = on(&wanted, found, |step| *step == Step::Item(number));
            if list.next_element_seed(Reading { wanted: on, found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    // Nothing leads on from what follows.

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The name of a field: which paths go on there.
struct Field<'a, 'p, 'w> {
    wanted: &'w Wanted<'p>,
    found: &'w mut [Found<'a>],
}

impl<'a, 'p> DeserializeSeed<'a> for Field<'a, 'p, '_> {
    type Value = Wanted<'p>;

    fn deserialize<D: Deserializer<'a>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_str(self)
    }
}

impl<'a, 'p> Visitor<'a> for Field<'a, 'p, '_> {
    type Value = Wanted<'p>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let is_it = |step: &Step| matches!(step, Step::Field(field) if **field == *name);
        Ok(on(self.wanted, self.found, is_it))
    }
}

/// The paths whose next step is this one; what they found before counts no more.
fn on<'p>(
    wanted: &Wanted<'p>,
    found: &mut [Found<'_>],
    is_it: impl Fn(&Step) -> bool,
) -> Wanted<'p> {
    let mut on = Wanted::new();
    for (number, steps) in wanted {
        if let Some((_, left)) = steps.split_first().filter(|(step, _)| is_it(step)) {
            found[*number] = Found::Nothing;
            on.push((*number, left));
        }
    }
    on
}

fn is_length(steps: &[Step]) -> bool {
    matches!(steps, [Step::Field(last)] if **last == *"length")
}

fn found_in(value: &str) -> serde_json::Result<Found<'_>> {
    Ok(match value.as_bytes().first() {
        Some(b'"') => Found::Text(text_in(value)?),
        Some(b't') => Found::Truth(true),
        Some(b'f') => Found::Truth(false),
        Some(b'n') => Found::Null,
        Some(b'[') => Found::List(value),
        Some(b'{') => Found::Object,
        _ => value.parse().map_or(Found::Number(value), Found::Whole),
    })
}

fn length_of(value: &str) -> serde_json::Result<Found<'_>> {
    let length = match value.as_bytes().first() {
        // A list of nothings takes no memory.
        Some(b'[') => serde_json::from_str::<Vec<IgnoredAny>>(value)?.len(),
        Some(b'"') => text_in(value)?.chars().count(),
        _ => return Ok(Found::Nothing),
    };
    Ok(Found::Whole(i128::try_from(length).unwrap_or(i128::MAX)))
}

/// A text without its marks.
fn text_in(value: &str) -> serde_json::Result<Cow<'_, str>> {
    match value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Ok(plain.into()),
        _ => serde_json::from_str::<String>(value).map(Cow::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn at<'a>(path: &str, body: &'a [u8]) -> Result<Found<'a>, NotJson> {
        read(body, &[&BodyPath::new(path).unwrap()]).map(|mut found| found.remove(0))
    }

    #[test]
    fn what_is_there_is_found() {
        let body = br#" {"a": {"b": [1, {"c": "x\n"}, []], "length": -7}, "t": true, "n": null,
            "f": 1.5, "e": 1e3, "l": [[1], [2, 3]], "u": "l\u00e4nge"} "#;
        let whole = |number| Ok(Found::Whole(number));
        assert_eq!(at("body.a.b[0]", body), whole(1));
        assert_eq!(at("body.a.b[1].c", body), Ok(Found::Text("x\n".into())));
        assert_eq!(at("body.a.b.length", body), whole(3));
        assert_eq!(at("body.a.b[2].length", body), whole(0));
        assert_eq!(at("body.a.length", body), whole(-7));
        assert_eq!(at("body.l[1].length", body), whole(2));
        assert_eq!(at("body.u.length", body), whole(5));
        assert_eq!(at("body.t", body), Ok(Found::Truth(true)));
        for nothing in ["body.x", "body.a.b[3]", "body.t.x", "body.a[0]", "body.f.length"] {
            assert_eq!(at(nothing, body), Ok(Found::Nothing), "{nothing}");
        }
        for (other, told) in [
            ("body.n", "null"),
            ("body.a", "an object"),
            ("body.f", "1.5, which is no whole number"),
        ] {
            assert_eq!(at(other, body).unwrap().to_string(), told);
        }
        assert_eq!(at("body.e", body), Ok(Found::Number("1e3")));
        assert_eq!(at("body.l", body), Ok(Found::List("[[1], [2, 3]]")));
    }

    #[test]
    fn of_two_fields_of_one_name_the_last_counts() {
        assert_eq!(at("body.a", br#"{"a": 1, "a": 2}"#), Ok(Found::Whole(2)));
        assert_eq!(at("body.a.b", br#"{"a": {"b": 1}, "a": 2}"#), Ok(Found::Nothing));
    }

    #[test]
    fn what_is_not_json_is_refused_and_nothing_has_nothing() {
        assert_eq!(at("body.a", b""), Ok(Found::Nothing));
        for body in [&b"{"[..], b"charge 42", b"{} {}", b"{\"a\": \"\\ud800\"}", b"\xff"] {
            assert_eq!(at("body.a", body), Err(NotJson), "{body:?}");
        }
    }

    #[test]
    fn a_body_may_be_deeper_than_any_path() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let body = format!("{{\"a\": {deep}, \"b\": 2}}");
        assert_eq!(at("body.b", body.as_bytes()), Ok(Found::Whole(2)));
        assert_eq!(at("body.a.length", body.as_bytes()), Ok(Found::Whole(1)));
    }

    /// What a tree has where a path leads.
    fn in_tree(steps: &[Step], tree: &Value) -> Found<'static> {
        let Some((first, left)) = steps.split_first() else {
            return match tree {
                Value::String(text) => Found::Text(text.clone().into()),
                Value::Bool(is_true) => Found::Truth(*is_true),
                Value::Number(number) => Found::Whole(number.as_i64().unwrap().into()),
                Value::Null => Found::Null,
                Value::Array(_) => Found::List(tree.to_string().leak()),
                Value::Object(_) => Found::Object,
            };
        };
        let whole = |length: usize| Found::Whole(i128::try_from(length).unwrap());
        let next = match (first, tree) {
            (Step::Field(_), Value::Array(list)) if is_length(steps) => return whole(list.len()),
            (Step::Field(_), Value::String(text)) if is_length(steps) => {
                return whole(text.chars().count());
            }
            (Step::Field(name), Value::Object(fields)) => fields.get(&**name),
            (Step::Item(item), Value::Array(list)) => list.get(*item),
            _ => None,
        };
        next.map_or(Found::Nothing, |next| in_tree(left, next))
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a\"\\\\\u{e4}\n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let name = prop_oneof![Just("a"), Just("b"), Just("length")].prop_map(str::to_owned);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn path() -> impl Strategy<Value = BodyPath> {
        let step = prop_oneof![
            Just(".a"),
            Just(".b"),
            Just(".length"),
            Just("[0]"),
            Just("[1]"),
            Just("[2]")
        ];
        let steps = prop::collection::vec(step, 0..5);
        steps.prop_map(|steps| BodyPath::new(&format!("body{}", steps.concat())).unwrap())
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_a_tree_has(
            tree in tree(),
            paths in prop::collection::vec(path(), 1..5),
        ) {
            let body = serde_json::to_vec(&tree).unwrap();
            let found = read(&body, &paths.iter().collect::<Vec<_>>()).unwrap();
            let expected: Vec<_> = paths.iter().map(|path| in_tree(&path.steps, &tree)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            mut body in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                "[\\[\\]{}:,\"ab\\\\0-9.eE+\\- truefalsn]{0,40}".prop_map(String::into_bytes),
                tree().prop_map(|tree| serde_json::to_vec(&tree).unwrap()),
            ],
            change in any::<(prop::sample::Index, u8)>(),
            paths in prop::collection::vec(path(), 0..4),
        ) {
            let paths: Vec<_> = paths.iter().collect();
            let _ = read(&body, &paths);
            if !body.is_empty() {
                *change.0.get_mut(&mut body) = change.1;
                let _ = read(&body, &paths);
            }
        }
    }
}
