//! The host and port of a url.

use super::DestinationError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a name, as DNS has it.
const NAME_BYTES_MAX: usize = 253;

/// Bytes between two dots of it.
const LABEL_BYTES_MAX: usize = 63;

/// A name that can be resolved, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// As it stands in a url, in lower case.
    pub(super) text: Box<str>,
    /// What it is if it is no name.
    pub(super) ip: Option<IpAddr>,
}

/// Reads `host` or `host:port`.
pub(super) fn read(text: &str) -> Result<(Host, Option<u16>), DestinationError> {
    if !text.is_ascii() {
        return Err(DestinationError::HostNotAscii);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, port) = rest.split_once(']').ok_or(DestinationError::Host)?;
        let ip: Ipv6Addr = inside.parse().map_err(|_| DestinationError::Host)?;
        let host = Host { text: format!("[{ip}]").into(), ip: Some(IpAddr::V6(ip)) };
        let port = match port.strip_prefix(':') {
            Some(port) => Some(number(port)?),
            None if port.is_empty() => None,
            None => return Err(DestinationError::Host),
        };
        return Ok((host, port));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(number(port)?)),
        None => (text, None),
    };
    Ok((named(name)?, port))
}

fn named(text: &str) -> Result<Host, DestinationError> {
    if text.is_empty() {
        return Err(DestinationError::NoHost);
    }
    let text = text.to_ascii_lowercase();
    if text.len() > NAME_BYTES_MAX || !text.split('.').all(is_label) {
        return Err(DestinationError::Host);
    }
    let ip = text.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    // `0x7f.1` and `2130706433` are 127.0.0.1 to resolvers: no address goes by unseen as a name.
    if ip.is_none() && text.rsplit('.').next().is_some_and(is_number) {
        return Err(DestinationError::Host);
    }
    Ok(Host { text: text.into(), ip })
}

fn is_label(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.len() <= LABEL_BYTES_MAX && text.bytes().all(is_sign)
}

fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x");
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn number(text: &str) -> Result<u16, DestinationError> {
    // The standard library also takes a sign.
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|text| text.parse().ok()).filter(|port| *port != 0);
    port.ok_or(DestinationError::Port)
}
