//! A user and password in a url, as the header that is sent for them.

use super::DestinationError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// The value of `Authorization` for `user:password`, each percent-encoded; `None` if both are empty.
pub(super) fn authorization(userinfo: &str) -> Result<Option<HeaderValue>, DestinationError> {
    // A second at sign would have other readers find another host.
    if userinfo.contains('@') || !userinfo.is_ascii() {
        return Err(DestinationError::Credentials);
    }
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let user = decode(user).ok_or(DestinationError::Credentials)?;
    let password = decode(password).ok_or(DestinationError::Credentials)?;
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    // A colon in the user would end it there.
    if user.contains(&b':') || user.iter().chain(&password).any(u8::is_ascii_control) {
        return Err(DestinationError::Credentials);
    }
    let pair = [user.as_slice(), b":", password.as_slice()].concat();
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
    let mut value = value.map_err(|_| DestinationError::Credentials)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The bytes of a percent-encoded text; `None` if two hexadecimal digits are missing somewhere.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            digit(bytes.next()?)? * 16 + digit(bytes.next()?)?
        } else {
            byte
        });
    }
    Some(decoded)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
