//! Paths of the API, for [`Client::request`](crate::Client::request): names in them are percent-encoded.

use std::fmt::Write;

/// A path under `/v1`, from its parts; each part is a name or a word of ours.
pub fn path(parts: &[&str]) -> String {
    let mut path = String::from("/v1");
    for part in parts {
        path.push('/');
        encode(&mut path, part);
    }
    path
}

/// The path with those of the parameters that are given.
pub fn with_query(mut path: String, parameters: &[(&str, Option<&str>)]) -> String {
    let mut mark = '?';
    for (name, value) in parameters {
        if let Some(value) = value {
            path.push(mark);
            path.push_str(name);
            path.push('=');
            encode(&mut path, value);
            mark = '&';
        }
    }
    path
}

fn encode(text: &mut String, part: &str) {
    for byte in part.bytes() {
        // A dot is encoded where it could be taken for a way up.
        let is_dots = matches!(part, "." | "..");
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            b'.' if !is_dots => text.push('.'),
            _ => {
                // Writing into a string does not fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        assert_eq!(path(&["limits", "a/b?c", "pin"]), "/v1/limits/a%2Fb%3Fc/pin");
        assert_eq!(path(&["limits", ".."]), "/v1/limits/%2E%2E");
        assert_eq!(path(&["queues", "größe 1.5"]), "/v1/queues/gr%C3%B6%C3%9Fe%201.5");
    }

    #[test]
    fn parameters_that_are_not_given_are_left_out() {
        let given = [("after", Some("a&b")), ("lane", None), ("limit", Some("7"))];
        assert_eq!(with_query("/v1/dead".to_owned(), &given), "/v1/dead?after=a%26b&limit=7");
        assert_eq!(with_query("/v1/dead".to_owned(), &[("lane", None)]), "/v1/dead");
    }
}
