//! Both sides of every border, and networks that allow their members and nobody else.

use super::*;
use proptest::prelude::*;

/// What keeps an address from being connected to, if anything does.
fn judged(policy: &AddressPolicy, text: &str) -> Option<&'static str> {
    policy.check(text.parse().unwrap()).err().map(|forbidden| forbidden.kind)
}

fn allowing(networks: &[&str]) -> AddressPolicy {
    AddressPolicy { allowed: networks.iter().map(|text| text.parse().unwrap()).collect() }
}

/// First and last addresses of what is forbidden, with what they are.
const EDGES: [(&str, &str, &str); 30] = [
    ("0.0.0.0", "0.0.0.0", "an unspecified"),
    ("0.0.0.1", "0.255.255.255", "a reserved"),
    ("10.0.0.0", "10.255.255.255", "a private"),
    ("100.64.0.0", "100.127.255.255", "a carrier's private"),
    ("127.0.0.0", "127.255.255.255", "a loopback"),
    ("169.254.0.0", "169.254.255.255", "a link-local"),
    ("172.16.0.0", "172.31.255.255", "a private"),
    ("192.0.0.0", "192.0.0.255", "a reserved"),
    ("192.0.2.0", "192.0.2.255", "a documentation"),
    ("192.88.99.0", "192.88.99.255", "a reserved"),
    ("192.168.0.0", "192.168.255.255", "a private"),
    ("198.18.0.0", "198.19.255.255", "a benchmarking"),
    ("198.51.100.0", "198.51.100.255", "a documentation"),
    ("203.0.113.0", "203.0.113.255", "a documentation"),
    ("224.0.0.0", "239.255.255.255", "a multicast"),
    ("240.0.0.0", "255.255.255.254", "a reserved"),
    ("255.255.255.255", "255.255.255.255", "a broadcast"),
    ("::", "::", "an unspecified"),
    ("::1", "::1", "a loopback"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "a translated"),
    ("64:ff9b:2::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a reserved"),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "a Teredo"),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "a reserved"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "a documentation"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "a documentation"),
    ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a reserved"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a private"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a link-local"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a site-local"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "a multicast"),
];

/// The last address before, and the first after, what is forbidden.
const PUBLIC: [&str; 39] = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:200::",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2003::",
    "2606:4700:4700::1111",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "64:ff9b::808:808",
    "2002:808:808::1",
];

#[test]
fn every_network_of_the_tables_is_one() {
    let networks = FORBIDDEN.iter().map(|(network, _)| network).chain(&CARRIERS);
    for network in networks.chain([&SIX_TO_FOUR]) {
        assert_eq!(network.to_string().parse(), Ok(*network));
    }
}

#[test]
fn both_sides_of_every_border_are_judged() {
    let policy = AddressPolicy::default();
    for (first, last, kind) in EDGES {
        assert_eq!(judged(&policy, first), Some(kind), "{first}");
        assert_eq!(judged(&policy, last), Some(kind), "{last}");
    }
    for ip in PUBLIC {
        assert_eq!(judged(&policy, ip), None, "{ip}");
    }
}

#[test]
fn the_metadata_of_clouds_is_out_of_reach() {
    let policy = AddressPolicy::default();
    for ip in ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "100.100.100.200"] {
        assert!(judged(&policy, ip).is_some(), "{ip}");
    }
}

#[test]
fn an_address_is_judged_as_the_one_it_carries() {
    let policy = AddressPolicy::default();
    let carriers = |v4: Ipv4Addr| {
        let [high, low] = [v4.to_bits() >> 16, v4.to_bits() & 0xffff];
        [
            format!("::ffff:{v4}"),
            format!("::{v4}"),
            format!("64:ff9b::{v4}"),
            format!("2002:{high:x}:{low:x}::1"),
        ]
    };
    for (v4, kind) in
        [("10.1.2.3", Some("a private")), ("8.8.8.8", None), ("0.0.0.2", Some("a reserved"))]
    {
        for carrier in carriers(v4.parse().unwrap()) {
            assert_eq!(judged(&policy, &carrier), kind, "{carrier}");
        }
    }
    let policy = allowing(&["10.0.0.0/8"]);
    assert_eq!(judged(&policy, "::ffff:10.1.2.3"), None);
    assert_eq!(judged(&policy, "::ffff:127.0.0.1"), Some("a loopback"));
}

#[test]
fn the_refusal_says_what_and_how_to_allow_it() {
    let forbidden = AddressPolicy::default().check("10.1.2.3".parse().unwrap()).unwrap_err();
    let message = "10.1.2.3 is a private address: Tollgate connects to public addresses only; \
        allow it with push.allow_addresses in the configuration";
    assert_eq!(forbidden.to_string(), message);
}

#[test]
fn a_network_is_read_and_given_back() {
    for (text, shown) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("::1/128", "::1/128"),
        ("::1", "::1/128"),
        ("127.0.0.1", "127.0.0.1/32"),
        ("fd00:0:0::/8", "fd00::/8"),
    ] {
        assert_eq!(text.parse::<Network>().unwrap().to_string(), shown);
    }
}

#[test]
fn what_is_no_network_is_refused_with_what_is_wrong() {
    for (text, message) in [
        ("", "\"\" is no address: write one as 10.1.2.3 or ::1, or a network as 10.0.0.0/8"),
        (
            "localhost/8",
            "\"localhost\" is no address: write one as 10.1.2.3 or ::1, or a network as 10.0.0.0/8",
        ),
        ("10.0.0.0/33", "/33 is no length of a prefix: write a number from 0 to 32"),
        ("10.0.0.0/+8", "/+8 is no length of a prefix: write a number from 0 to 32"),
        ("10.0.0.0/", "/ is no length of a prefix: write a number from 0 to 32"),
        ("::/129", "/129 is no length of a prefix: write a number from 0 to 128"),
        (
            "10.1.0.0/8",
            "10.1.0.0/8 names one address and a whole network: write 10.0.0.0/8 or 10.1.0.0",
        ),
    ] {
        assert_eq!(text.parse::<Network>().unwrap_err().to_string(), message);
    }
}

/// Addresses of which most are near a border.
fn ips() -> impl Strategy<Value = IpAddr> {
    let near =
        prop::sample::select(EDGES.iter().flat_map(|edge| [edge.0, edge.1]).collect::<Vec<_>>());
    let near = (near, any::<u8>()).prop_map(|(text, low)| match text.parse().unwrap() {
        IpAddr::V4(v4) => IpAddr::from((v4.to_bits() ^ u32::from(low)).to_be_bytes()),
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() ^ u128::from(low)).to_be_bytes()),
    });
    prop_oneof![near, any::<IpAddr>()]
}

/// The bits of an address as a text, which is compared by its beginning.
fn bits(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => format!("4{:032b}", v4.to_bits()),
        IpAddr::V6(v6) => format!("6{:0128b}", v6.to_bits()),
    }
}

proptest! {
    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does(
        within in ips(), other in ips(), prefix: u8,
    ) {
        let length = bits(within).len() - 1;
        let prefix = usize::from(prefix) % (length + 1);
        let begins = &bits(within)[..=prefix];
        let text = format!("{within}/{prefix}");
        let network = match text.parse::<Network>() {
            Err(NetworkError::Beyond { network, .. }) => network,
            read => read.unwrap(),
        };
        prop_assert!(network.contains(within));
        prop_assert_eq!(network.contains(other), bits(other).starts_with(begins));
        prop_assert_eq!(network.to_string().parse(), Ok(network));
    }

    #[test]
    fn an_allowed_network_allows_its_members_and_changes_nothing_for_others(
        ip in ips(), network in ips(), prefix: u8,
    ) {
        let prefix = usize::from(prefix) % bits(network).len();
        let network = match format!("{network}/{prefix}").parse::<Network>() {
            Err(NetworkError::Beyond { network, .. }) => network,
            read => read.unwrap(),
        };
        let policy = AddressPolicy { allowed: vec![network] };
        let target = carried(ip).map_or(ip, IpAddr::V4);
        let is_member = network.contains(ip) || network.contains(target);
        let unless = AddressPolicy::default().check(ip);
        prop_assert_eq!(policy.check(ip), if is_member { Ok(()) } else { unless });
    }

    #[test]
    fn any_text_is_a_network_or_none(text in "[0-9a-f.:/]{0,24}|.*") {
        let _ = text.parse::<Network>();
    }
}
