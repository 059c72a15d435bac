//! The field `RateLimit` of the IETF's drafts: a list of quotas, or one as a dictionary.
//!
//! Newer drafts write `"default";r=0;t=30, "daily";r=9;t=3600`, older ones
//! `limit=10, remaining=0, reset=30`.

/// Nobody has more quotas than that; what follows is not read.
const QUOTAS_MAX: usize = 64;

/// What is left of one limit, and when it is as new, as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quota<'a> {
    pub(super) remaining: Option<&'a str>,
    pub(super) reset: &'a str,
}

/// The quotas of a field that say when they are as new.
pub(super) fn quotas(text: &str) -> Vec<Quota<'_>> {
    let mut quotas = Vec::new();
    let mut dictionary = (None, None);
    for member in split(text, ',').take(QUOTAS_MAX) {
        let mut item = (None, None);
        for part in split(member, ';') {
            let Some((key, value)) = part.split_once('=') else { continue };
            let value = Some(value.trim());
            match key.trim() {
                "r" => item.0 = value,
                "t" => item.1 = value,
                "remaining" => dictionary.0 = value,
                "reset" => dictionary.1 = value,
                _ => {}
            }
        }
        quotas.extend(quota(item));
    }
    quotas.extend(quota(dictionary));
    quotas
}

fn quota<'a>((remaining, reset): (Option<&'a str>, Option<&'a str>)) -> Option<Quota<'a>> {
    Some(Quota { remaining, reset: reset? })
}

/// The parts between separators; those in quotes separate nothing.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |c: char| {
        let was_escaped = is_escaped;
        is_escaped = is_quoted && c == '\\' && !was_escaped;
        if c == '"' && !was_escaped {
            is_quoted = !is_quoted;
        }
        c == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Option<&str>, &str)> {
        quotas(text).into_iter().map(|quota| (quota.remaining, quota.reset)).collect()
    }

    #[test]
    fn a_list_has_a_quota_for_each_of_its_policies() {
        let text = r#""default";r=0;t=30, "daily" ; r=9; t=3600,"untold";r=5"#;
        assert_eq!(read(text), [(Some("0"), "30"), (Some("9"), "3600")]);
        assert_eq!(read("default;t=7;pk=:bWU=:"), [(None, "7")]);
    }

    #[test]
    fn a_dictionary_is_one_quota() {
        let both = [(Some("0"), "30")];
        assert_eq!(read("limit=10, remaining=0, reset=30"), both);
        assert_eq!(read("limit=10; remaining=0; reset=30"), both);
        assert_eq!(read("limit=10, remaining=0"), []);
    }

    #[test]
    fn what_a_name_has_in_it_separates_nothing() {
        let text = r#""a,b;t=1\";t=2";r=0;t=3"#;
        assert_eq!(read(text), [(Some("0"), "3")]);
        assert_eq!(read(r#""never closed;t=3"#), []);
    }
}
