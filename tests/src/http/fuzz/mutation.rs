//! How a request is broken: in its bytes, in the values of its JSON, in its target and its headers.

use super::seeds::Seed;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

/// Methods that servers are asked with. Not HEAD, whose answers have no body.
const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"];

/// Headers that the edge reads.
const HEADERS: [&str; 7] = [
    "authorization",
    "idempotency-key",
    "last-event-id",
    "tollgate-actor",
    "content-type",
    "origin",
    "accept-encoding",
];

/// Values that stand at the edges of what is read.
const EDGES: [&str; 24] = [
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e999",
    "1e-999",
    "-1e30",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\u{10ffff}\"",
    "\"9999999999999999999w\"",
    "\"body\"",
    "\"* * * * *\"",
    "\"0000-00-00T00:00:00Z\"",
    "\"9999-12-31T23:59:60+23:59\"",
];

/// One step away from what is right.
#[derive(Debug, Clone)]
pub(super) enum Mutation {
    /// A bit of the body is another.
    Flip(Index, u8),
    /// The body ends too soon.
    Truncate(Index),
    /// Bytes come in between.
    Insert(Index, Vec<u8>),
    /// The body goes on like that of another request.
    Splice(Index, Index, Index),
    /// One value of the JSON is another.
    Replace(Index, Replacement),
    /// One object of the JSON has a member twice, or one that nobody knows.
    Repeat(Index, String),
    /// The target goes on like this, from somewhere.
    Target(Index, String),
    /// A header is there, with any bytes.
    Header(&'static str, Vec<u8>),
    Method(&'static str),
}

/// What comes in the place of a value: half the time something of its kind, to get behind the first look.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    is_of_the_kind: bool,
    duration: String,
    cron: String,
    path: String,
    instant: String,
    any: String,
}

/// Requests that are a few steps away from right ones.
pub(super) fn broken(seeds: Vec<Seed>) -> impl Strategy<Value = Seed> {
    let first = (0..seeds.len(), vec(mutation(), 1..4));
    first.prop_map(move |(nth, mutations)| {
        let broken = seeds[nth].clone();
        mutations.into_iter().fold(broken, |broken, mutation| mutation.apply(broken, &seeds))
    })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    let header = prop_oneof![Just(9u8), 32..127u8, 128..=255u8];
    prop_oneof![
        2 => (index(), 0..8u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        1 => index().prop_map(Mutation::Truncate),
        2 => (index(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        1 => (index(), index(), index()).prop_map(|(at, seed, from)| Mutation::Splice(at, seed, from)),
        8 => (index(), replacement()).prop_map(|(at, text)| Mutation::Replace(at, text)),
        2 => (index(), hostile()).prop_map(|(at, text)| Mutation::Repeat(at, text)),
        2 => (index(), target()).prop_map(|(at, text)| Mutation::Target(at, text)),
        2 => (select(&HEADERS[..]), vec(header, 0..300)).prop_map(|(name, value)| Mutation::Header(name, value)),
        1 => select(&METHODS[..]).prop_map(Mutation::Method),
    ]
}

fn replacement() -> impl Strategy<Value = Replacement> {
    let texts = (duration(), cron(), path(), instant(), hostile());
    (any::<bool>(), texts).prop_map(|(is_of_the_kind, (duration, cron, path, instant, any))| {
        Replacement { is_of_the_kind, duration, cron, path, instant, any }
    })
}

/// The text of a JSON value, or what looks like one.
fn hostile() -> impl Strategy<Value = String> {
    let quoted = |text: String| Value::String(text).to_string();
    prop_oneof![
        4 => select(&EDGES[..]).prop_map(str::to_owned),
        3 => duration().prop_map(quoted),
        3 => cron().prop_map(quoted),
        3 => path().prop_map(quoted),
        2 => instant().prop_map(quoted),
        2 => "[A-Za-z0-9+/_=-]{0,80}".prop_map(quoted),
        2 => ".{0,40}".prop_map(quoted),
        2 => "-?[0-9]{1,40}(\\.[0-9]{0,9})?([eE][+-]?[0-9]{1,4})?",
        1 => (1..300usize, any::<bool>()).prop_map(|(depth, is_closed)| nested(depth, is_closed)),
        1 => (500..2_000usize).prop_map(move |length| quoted("é".repeat(length))),
    ]
}

/// Nearly a duration.
pub(super) fn duration() -> impl Strategy<Value = String> {
    "-?([0-9]{0,21}\\.?[0-9]{0,2}(ns|us|µs|ms|s|m|h|d|w|y| )?){0,4}"
}

/// Nearly a cron expression.
pub(super) fn cron() -> impl Strategy<Value = String> {
    let field = "(\\*|[0-9]{1,3}|MON|jan|L|\\?)?([-/,#](\\*|[0-9]{1,20}|SUN|dec)?){0,3}";
    vec(field, 0..8).prop_map(|fields| fields.join(" "))
}

/// Nearly a path in a body.
pub(super) fn path() -> impl Strategy<Value = String> {
    "(body)?([.\\[](length|[a-z0-9]{0,9}|\"[^\"]{0,4}\"?|[0-9]{1,22})\\]?){0,9}"
}

/// Nearly an instant.
fn instant() -> impl Strategy<Value = String> {
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{0,14}(Z|[+-][0-9:]{0,6})?"
}

fn target() -> impl Strategy<Value = String> {
    "(%[0-9a-fA-F]{0,2}|%ff|%00|%2F|[?&=/]|limit=[0-9-]{0,20}|after=|[!-~]){0,12}"
}

fn nested(depth: usize, is_closed: bool) -> String {
    let closing = if is_closed { "]}".repeat(depth) } else { String::new() };
    "{\"a\":[".repeat(depth) + &closing
}

impl Mutation {
    fn apply(self, mut seed: Seed, seeds: &[Seed]) -> Seed {
        let body = &mut seed.body;
        match self {
            Self::Flip(at, bit) if !body.is_empty() => {
                let at = at.index(body.len());
                body[at] ^= 1 << bit;
            }
            Self::Flip(..) => {}
            Self::Truncate(at) => body.truncate(at.index(body.len() + 1)),
            Self::Insert(at, bytes) => {
                let at = at.index(body.len() + 1);
                body.splice(at..at, bytes);
            }
            Self::Splice(at, other, from) => {
                let other = &other.get(seeds).body;
                body.truncate(at.index(body.len() + 1));
                body.extend(&other[from.index(other.len() + 1)..]);
            }
            Self::Replace(at, text) => replace(body, at, &text),
            Self::Repeat(at, text) => repeat(body, at, &text),
            Self::Target(at, text) => {
                let at = 1 + at.index(seed.target.len());
                seed.target.truncate(at);
                seed.target.push_str(&text);
            }
            Self::Header(name, value) => {
                seed.headers.retain(|(other, _)| other != name);
                seed.headers.push((name.to_owned(), value));
            }
            Self::Method(method) => seed.method = method,
        }
        seed
    }
}

impl Replacement {
    /// The text of another value of the same kind; `None` if it has no grammar of its own.
    fn of_the_kind(&self, value: &Value) -> Option<String> {
        let value = value.as_str().unwrap_or_default();
        let text = if value.starts_with("body") {
            &self.path
        } else if value.contains(" * ") {
            &self.cron
        } else if value.contains("T00:") {
            &self.instant
        } else if value.starts_with(|first: char| first.is_ascii_digit()) {
            &self.duration
        } else {
            return None;
        };
        Some(Value::from(text.as_str()).to_string())
    }
}

/// Puts another value in the place of one of the body, if it is JSON.
fn replace(body: &mut Vec<u8>, at: Index, replacement: &Replacement) {
    let Ok(mut json) = serde_json::from_slice::<Value>(body) else { return };
    let places = 0..count(&json);
    let of_the_kind = places.clone().filter_map(|place| {
        let value = nth(&mut json, &mut place.clone())?;
        Some((place, replacement.of_the_kind(value)?))
    });
    let of_the_kind: Vec<(usize, String)> = of_the_kind.collect();
    let (mut place, text) = match replacement.is_of_the_kind && !of_the_kind.is_empty() {
        true => at.get(&of_the_kind).clone(),
        false => (at.index(places.len()), replacement.any.clone()),
    };
    *nth(&mut json, &mut place).unwrap() = Value::from("$HERE");
    *body = json.to_string().replacen("\"$HERE\"", &text, 1).into_bytes();
}

/// Gives an object of the body a member for the second time.
fn repeat(body: &mut Vec<u8>, at: Index, value: &str) {
    let text = String::from_utf8_lossy(body).into_owned();
    let objects: Vec<usize> = text.match_indices("{\"").map(|(place, _)| place).collect();
    if objects.is_empty() {
        return;
    }
    let place = *at.get(&objects);
    let key = text[place + 2..].split('"').next().unwrap_or_default();
    let (before, behind) = text.split_at(place + 1);
    *body = format!("{before}\"{key}\":{value},{behind}").into_bytes();
}

fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at a place, the outermost being the first.
fn nth<'a>(json: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(json);
    }
    *place -= 1;
    match json {
        Value::Array(values) => values.iter_mut().find_map(|value| nth(value, place)),
        Value::Object(fields) => fields.values_mut().find_map(|value| nth(value, place)),
        _ => None,
    }
}
