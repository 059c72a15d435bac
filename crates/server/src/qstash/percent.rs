//! Percent-encoding, as it stands in paths and queries.

/// A text in which `%41` stands for a byte; `None` if the bytes are no text. A `%` without two
/// hexadecimal digits stands for itself.
pub(super) fn decode(text: &str) -> Option<String> {
    decode_with(text, |byte| byte)
}

/// As in the parameters of a query, where `+` is a space.
pub(super) fn decode_parameter(text: &str) -> Option<String> {
    decode_with(text, |byte| if byte == b'+' { b' ' } else { byte })
}

/// The parameters of a query as they stand there: what is between `&` and `&`, with its name.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    query.split('&').map(|whole| {
        let (name, value) = whole.split_once('=').unwrap_or((whole, ""));
        (whole, name, value)
    })
}

fn decode_with(text: &str, plain: impl Fn(u8) -> u8) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return String::from_utf8(bytes).ok(),
            [b'%', high, low, after @ ..] if is_hex(*high) && is_hex(*low) => {
                bytes.push(digit(*high) * 16 + digit(*low));
                after
            }
            [byte, after @ ..] => {
                bytes.push(plain(*byte));
                after
            }
        };
    }
}

const fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// Of what [`is_hex`]; of anything else, some number below 16.
const fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte.to_ascii_lowercase().wrapping_sub(b'a') & 7) + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_stand_for_bytes_and_the_rest_for_itself() {
        assert_eq!(decode("a%2Fb%c3%A9+%").as_deref(), Some("a/bé+%"));
        assert_eq!(decode("%2").as_deref(), Some("%2"));
        assert_eq!(decode("%zz%4").as_deref(), Some("%zz%4"));
        assert_eq!(decode_parameter("a+b%2B").as_deref(), Some("a b+"));
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn a_query_is_taken_apart_at_its_signs() {
        let parts: Vec<_> = parameters("a=1&b&=2&c=x=y").collect();
        let wanted = [("a=1", "a", "1"), ("b", "b", ""), ("=2", "", "2"), ("c=x=y", "c", "x=y")];
        assert_eq!(parts, wanted);
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_its_encoding(text in ".{0,40}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(decode(&encoded), Some(text));
        }
    }
}
