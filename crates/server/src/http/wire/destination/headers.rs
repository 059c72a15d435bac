//! Headers of a destination as they travel: an object, in order, each name once.

use super::{HIDDEN, Telling};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use tollgate::push::headers::HEADERS_MAX;

/// Names that contain one of these are taken for those of keys: better one too many than one too few.
const SECRETS: [&str; 8] =
    ["auth", "cookie", "credential", "key", "password", "secret", "signature", "token"];

/// Names and values, in order.
// Invariant: no name is there twice, in whatever case.
#[derive(Debug, Default)]
pub(super) struct HeadersWire(Vec<(String, String)>);

impl HeadersWire {
    pub(super) fn new(pairs: &[(String, String)], telling: Telling) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            let value = if is_told(name, telling) { value } else { HIDDEN };
            match headers.value_of(name) {
                // Several of a name are one with a list.
                Some(_) if value == HIDDEN => {}
                Some(list) => {
                    list.push_str(", ");
                    list.push_str(value);
                }
                None => headers.0.push((name.clone(), value.to_owned())),
            }
        }
        headers
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, as they are kept.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        self.0.clone()
    }

    /// The first whose value is not one, but stands for one.
    pub(super) fn hidden(&self) -> Option<&str> {
        self.0.iter().find(|(_, value)| value.trim() == HIDDEN).map(|(name, _)| name.as_str())
    }

    fn value_of(&mut self, name: &str) -> Option<&mut String> {
        let found = self.0.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }
}

fn is_told(name: &str, telling: Telling) -> bool {
    match telling {
        Telling::All => true,
        Telling::NoSecrets => {
            let name = name.to_ascii_lowercase();
            !SECRETS.iter().any(|secret| name.contains(secret))
        }
        Telling::NoHeaders => false,
    }
}

impl Serialize for HeadersWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct HeadersVisitor;

impl<'de> Deserialize<'de> for HeadersWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadersVisitor)
    }
}

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = HeadersWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values, as in {\"x-tenant\": \"acme\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeadersWire, A::Error> {
        let mut headers = HeadersWire::default();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if headers.value_of(&name).is_some() {
                let why = "a header is there twice: give it once, its values with commas between";
                return Err(A::Error::custom(why));
            }
            // Who looks each of them up among all does not do so without end.
            if headers.0.len() == HEADERS_MAX {
                let why = format!("there are up to {HEADERS_MAX} headers: leave some out");
                return Err(A::Error::custom(why));
            }
            headers.0.push((name, value));
        }
        Ok(headers)
    }
}
