//! Which addresses push may connect to: public ones, and those of networks that were allowed.
//!
//! Who enqueues a call says where it goes, and the server reaches places that its callers do not:
//! its own host, the network behind it, the metadata of a cloud. So an address is checked after its
//! name was resolved and before it is connected to.

mod network;

pub use network::{Network, NetworkError};

use network::{v4, v6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that are not public, the narrower before the wider, and what an address there is.
const FORBIDDEN: [(Network, &str); 31] = [
    (v4(0, 0, 0, 0, 32), "an unspecified"),
    (v4(0, 0, 0, 0, 8), "a reserved"),
    (v4(10, 0, 0, 0, 8), "a private"),
    (v4(100, 64, 0, 0, 10), "a carrier's private"),
    (v4(127, 0, 0, 0, 8), "a loopback"),
    (v4(169, 254, 0, 0, 16), "a link-local"),
    (v4(172, 16, 0, 0, 12), "a private"),
    (v4(192, 0, 0, 0, 24), "a reserved"),
    (v4(192, 0, 2, 0, 24), "a documentation"),
    (v4(192, 88, 99, 0, 24), "a reserved"),
    (v4(192, 168, 0, 0, 16), "a private"),
    (v4(198, 18, 0, 0, 15), "a benchmarking"),
    (v4(198, 51, 100, 0, 24), "a documentation"),
    (v4(203, 0, 113, 0, 24), "a documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast"),
    (v4(255, 255, 255, 255, 32), "a broadcast"),
    (v4(240, 0, 0, 0, 4), "a reserved"),
    (v6([0; 8], 128), "an unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a translated"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "a Teredo"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "a reserved"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast"),
    // Of all the rest, only 2000::/3 is given out.
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 3), "a reserved"),
    (v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2), "a reserved"),
    (v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 1), "a reserved"),
];

/// Prefixes before an IPv4 address in the last 32 bits: compatible, mapped and translated (NAT64).
const CARRIERS: [Network; 3] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
];

/// The prefix before an IPv4 address in the next 32 bits.
const SIX_TO_FOUR: Network = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);

/// Which addresses may be connected to: public ones, and what is allowed beyond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks whose addresses may be connected to though they are not public.
    pub allowed: Vec<Network>,
}

/// An address that is not to be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{ip} is {kind} address: Tollgate connects to public addresses only; allow it with push.allow_addresses in the configuration"
)]
pub struct ForbiddenAddress {
    /// The address.
    pub ip: IpAddr,
    /// What it is, with its article: `a private`.
    pub kind: &'static str,
}

impl AddressPolicy {
    /// Whether an address may be connected to.
    ///
    /// One that carries an IPv4 address in it is judged as that one, for there it leads.
    pub fn check(&self, ip: IpAddr) -> Result<(), ForbiddenAddress> {
        let target = carried(ip).map_or(ip, IpAddr::V4);
        if self.allowed.iter().any(|network| network.contains(ip) || network.contains(target)) {
            return Ok(());
        }
        kind(target).map_or(Ok(()), |kind| Err(ForbiddenAddress { ip, kind }))
    }
}

/// What an address is that is not public.
fn kind(ip: IpAddr) -> Option<&'static str> {
    FORBIDDEN.iter().find(|(network, _)| network.contains(ip)).map(|(_, kind)| *kind)
}

/// The IPv4 address that an IPv6 address leads to.
fn carried(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = ip else { return None };
    // These two look as if they carried 0.0.0.0 and 0.0.0.1, and mean more.
    if [Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST].contains(&v6) {
        return None;
    }
    let [_, _, a, b, c, d, .., e, f, g, h] = v6.octets();
    if SIX_TO_FOUR.contains(ip) {
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    CARRIERS.iter().any(|network| network.contains(ip)).then(|| Ipv4Addr::new(e, f, g, h))
}

#[cfg(test)]
mod tests;
