//! A network: all addresses that begin alike, written as `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// As much of a text that is no network as an error shows.
const CHARS_SHOWN: usize = 64;

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    // Invariant: `prefix` is at most the bits of `address`, whose bits beyond it are zero.
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// There is no address in it.
    #[error("{text:?} is no address: write one as 10.1.2.3 or ::1, or a network as 10.0.0.0/8")]
    Address {
        /// What stands in its place.
        text: String,
    },
    /// The number after the slash is none, or too large.
    #[error("/{text} is no length of a prefix: write a number from 0 to {most}")]
    Prefix {
        /// What stands in its place.
        text: String,
        /// The bits of such an address.
        most: u8,
    },
    /// The address has bits beyond the prefix.
    #[error(
        "{address}/{prefix} names one address and a whole network: write {network} or {address}"
    )]
    Beyond {
        /// The address as written.
        address: IpAddr,
        /// The prefix as written.
        prefix: u8,
        /// The network that it is in.
        network: Network,
    },
}

/// A network of IPv4, for tables; bits beyond the prefix must be zero.
pub(super) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
    Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

/// A network of IPv6, for tables; bits beyond the prefix must be zero.
pub(super) const fn v6(segments: [u16; 8], prefix: u8) -> Network {
    let [a, b, c, d, e, f, g, h] = segments;
    Network { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
}

impl Network {
    /// Whether an address is in this network. Those of the other version are not.
    pub fn contains(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.address.is_ipv4() && cut(ip, self.prefix) == self.address
    }
}

const fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The address with zeros after the prefix.
fn cut(ip: IpAddr, prefix: u8) -> IpAddr {
    let beyond = u32::from(bits(ip).saturating_sub(prefix));
    // A shift by all bits is none in Rust: with no prefix, nothing is kept.
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    /// Reads `10.0.0.0/8`, or an address, which is a network of one.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let shown = |text: &str| text.chars().take(CHARS_SHOWN).collect();
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| NetworkError::Address { text: shown(address) })?;
        let most = bits(address);
        let prefix = match prefix {
            None => most,
            Some(text) => number(text)
                .filter(|prefix| *prefix <= most)
                .ok_or_else(|| NetworkError::Prefix { text: shown(text), most })?,
        };
        let network = Self { address: cut(address, prefix), prefix };
        if network.address != address {
            return Err(NetworkError::Beyond { address, prefix, network });
        }
        Ok(network)
    }
}

fn number(text: &str) -> Option<u8> {
    // The standard library also takes a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Network {
    /// As it was written; one address has its whole length as a prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
