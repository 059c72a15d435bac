//! An answer as a page shows it, compared with the one that came.

use super::text::is_alike;
use serde_json::Value;
use std::collections::BTreeMap;

/// Numbers that depend on when one looks, besides all that end in `_ms`.
const PASSING: [&str; 3] = ["remaining", "available", "asking"];

/// Texts that nobody knows before.
const OPAQUE: [&str; 4] = ["lease", "receipt", "run", "next"];

/// What pages show for texts that came out otherwise, and how these came out.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    texts: BTreeMap<String, String>,
}

impl Learned {
    /// A text of the page with all that came out otherwise.
    pub(crate) fn told(&self, text: &str) -> String {
        let texts = self.texts.iter();
        texts.fold(text.to_owned(), |text, (shown, came)| text.replace(shown, came))
    }

    /// Takes it that what the page shows as one text came as the other.
    pub(crate) fn learn(&mut self, shown: &str, came: &str) {
        // A short text, or one that was cut short, may stand elsewhere by chance.
        if shown.len() >= 16 && !shown.ends_with('…') {
            self.texts.insert(shown.to_owned(), came.to_owned());
        }
    }

    /// What differs between an answer of the page and the one that came; nothing if they are the same.
    pub(crate) fn compare(&mut self, shown: &Value, came: &Value) -> Result<(), String> {
        self.compare_at("", shown, came)
    }

    fn compare_at(&mut self, place: &str, shown: &Value, came: &Value) -> Result<(), String> {
        match (shown, came) {
            (Value::Object(shown), Value::Object(came)) => {
                if !shown.keys().eq(came.keys()) {
                    let keys = |it: &serde_json::Map<_, _>| it.keys().cloned().collect::<Vec<_>>();
                    return Err(format!("{place} has {:?}, not {:?}", keys(came), keys(shown)));
                }
                let mut parts = shown.iter().zip(came.values());
                parts.try_for_each(|((key, shown), came)| {
                    self.compare_at(&format!("{place}.{key}"), shown, came)
                })
            }
            (Value::Array(shown), Value::Array(came)) if shown.len() == came.len() => {
                let mut parts = shown.iter().zip(came).enumerate();
                parts.try_for_each(|(index, (shown, came))| {
                    self.compare_at(&format!("{place}.{index}"), shown, came)
                })
            }
            (Value::Number(_), Value::Number(_)) if is_passing(key(place)) => Ok(()),
            (Value::String(shown), Value::String(came)) if self.is_same(place, shown, came) => {
                Ok(())
            }
            _ if shown == came => Ok(()),
            _ => Err(format!("{place} is {came}, not {shown}")),
        }
    }

    fn is_same(&mut self, place: &str, shown: &str, came: &str) -> bool {
        if OPAQUE.contains(&key(place)) {
            self.learn(shown, came);
            return true;
        }
        shown.ends_with('…')
            || self.told(shown) == came
            || is_instant(shown) && is_instant(came)
            || key(place) == "detail" && is_alike(&self.told(shown), came)
            || place.contains(".waits.")
            || place.contains(".answer.headers.")
    }
}

fn key(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or_default()
}

fn is_passing(key: &str) -> bool {
    key.ends_with("_ms") || PASSING.contains(&key)
}

fn is_instant(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}

#[test]
fn what_differs_each_time_may_and_all_else_may_not() {
    let mut learned = Learned::default();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let shown =
        r#"{"run":"1a1e355bdf652cc68c7f147","at":"2026-11-15T04:11:59Z","took_ms":7,"code":"x"}"#;
    let came = r#"{"run":"19ffffffffffff","at":"2027-01-01T00:00:00.5Z","took_ms":9,"code":"x"}"#;
    assert_eq!(learned.compare(&value(shown), &value(came)), Ok(()));
    assert_eq!(learned.told("/v1/runs/1a1e355bdf652cc68c7f147"), "/v1/runs/19ffffffffffff");
    for (shown, came) in [
        (r#"{"code":"x"}"#, r#"{"code":"y"}"#),
        (r#"{"limit":5}"#, r#"{"limit":6}"#),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
        ("[1]", "[1,1]"),
        (r#"{"at":"2026-11-15T04:11:59Z"}"#, r#"{"at":"soon"}"#),
    ] {
        assert!(learned.compare(&value(shown), &value(came)).is_err(), "{shown} {came}");
    }
}
