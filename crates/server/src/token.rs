//! The token that callers show when the server listens beyond this machine.

use std::fmt;

/// Longest token: more is a mistake, a file read into the variable perhaps.
const TOKEN_BYTES_MAX: usize = 1024;

/// What a caller shows as `Authorization: Bearer …`.
// Invariant: 1 to TOKEN_BYTES_MAX visible ASCII characters, so that a header can carry it.
#[derive(Clone)]
pub struct Token(Box<str>);

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token has 1 to {TOKEN_BYTES_MAX} visible ASCII characters and no spaces: make one with `openssl rand -hex 32`"
)]
pub struct TokenError;

impl Token {
    /// Checks that a header can carry it.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError);
        }
        Ok(Self(text.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_a_header() {
        assert!(Token::new("s3cret-~!").is_ok());
        for text in ["", " ", "a b", "a\n", "schlüssel", &"x".repeat(1025)] {
            assert_eq!(Token::new(text).err(), Some(TokenError), "{text:?}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        assert_eq!(format!("{:?}", Token::new("secret").unwrap()), "Token(…)");
    }
}
