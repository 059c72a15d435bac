//! Where a message goes, from the request's target as it came: the rest of the path, and the query.
//!
//! The SDKs put a destination into the path as it is. So nothing of it is decoded, and its query is the
//! request's, less what is said to ourselves there.

use super::draft::Draft;
use super::error::Fault;
use super::percent;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use tollgate::push::address::AddressPolicy;
use tollgate::push::destination::{Destination, DestinationError};

/// Longest name of a URL group, a queue or a schedule: room for any, and for a namespace before it.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// The parameter that a token may stand in.
const TOKEN: &str = "qstash_token";
/// How parameters begin that stand for headers.
const SETTING: &str = "upstash-";
/// What is published to hosted models goes to a service that is not here.
const API: &str = "api/";
/// The name of one's own machine.
const LOCAL: &str = "localhost";

/// Where a message goes.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// To this address, as it was given.
    Url(String),
    /// To all endpoints of the URL group of this name.
    Group(String),
}

/// Where a request sends its message, and what else its query says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addressed {
    /// Where to.
    pub(super) target: Target,
    /// Settings from the query, as if they were headers. The request's own headers stand before them.
    pub(super) headers: Vec<(String, String)>,
}

/// Why a message goes nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TargetError {
    /// It is no web address and no name.
    #[error("invalid destination url: endpoint has invalid scheme, add http:// or https://")]
    Scheme,
    /// It is a web address to which nothing can be sent.
    #[error("invalid destination url: {0}")]
    Url(#[from] DestinationError),
    /// It may not be connected to.
    #[error("invalid destination url: endpoint resolves to {kind} address: {ip}")]
    Forbidden {
        /// What it is, with its article.
        kind: &'static str,
        /// Which.
        ip: IpAddr,
    },
    /// There is nothing.
    #[error("there is no destination: put a url or the name of a url group at the end of the path")]
    Missing,
    /// A service of QStash's own.
    #[error(
        "destinations that begin with api/ are services of Upstash and not offered here: publish to the provider's url, as in https://api.openai.com/v1/chat/completions"
    )]
    Api,
    /// Bytes that are no text.
    #[error("the request's target is not UTF-8 where it is percent-encoded: encode it as UTF-8")]
    Encoding,
    /// A name that is none.
    #[error(
        "a name of a {kind} has 1 to {NAME_BYTES_MAX} letters, digits, hyphens, underscores and periods, and this is {name:?}"
    )]
    Name {
        /// Of what.
        kind: &'static str,
        /// Its first characters.
        name: String,
    },
}

impl fmt::Debug for Target {
    /// Addresses hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(f, "Url({})", shown(url)),
            Self::Group(name) => write!(f, "Group({name})"),
        }
    }
}

impl From<TargetError> for Fault {
    fn from(error: TargetError) -> Self {
        Self::invalid(error)
    }
}

impl Target {
    /// What a text means, as it stands in a batch.
    pub(super) fn read(text: &str) -> Result<Self, TargetError> {
        match text {
            "" => Err(TargetError::Missing),
            _ if text.starts_with(API) => Err(TargetError::Api),
            _ if is_name(text) => Ok(Self::Group(text.to_owned())),
            _ => web_address(text).and_then(checked).map(Self::Url),
        }
    }
}

impl Addressed {
    /// What the rest of a request's path and its query mean, both as they came.
    pub(super) fn read(tail: &str, query: Option<&str>) -> Result<Self, TargetError> {
        let (kept, headers) = own_parameters(query.unwrap_or_default())?;
        let query = query.filter(|query| !kept.is_empty() || query.is_empty());
        let target = match Target::read(tail)? {
            Target::Url(url) if query.is_some() => {
                let sign = if url.contains('?') { '&' } else { '?' };
                Target::Url(checked(format!("{url}{sign}{}", kept.join("&")))?)
            }
            target => target,
        };
        Ok(Self { target, headers })
    }
}

/// Refuses an address that may not be connected to, where it can be seen without a look elsewhere. Names
/// are judged by what they lead to, when they are connected to.
pub(super) fn check_address(url: &str, policy: &AddressPolicy) -> Result<(), TargetError> {
    let destination = Destination::parse(url)?;
    let is_local =
        destination.host() == LOCAL || destination.host().ends_with(&format!(".{LOCAL}"));
    let local = is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let Some(ip) = destination.literal_ip().or(local) else { return Ok(()) };
    let forbidden = policy.check(ip).err();
    forbidden.map_or(Ok(()), |it| Err(TargetError::Forbidden { kind: it.kind, ip }))
}

/// The same for where it is told of a message.
pub(super) fn check_callbacks(draft: &Draft, policy: &AddressPolicy) -> Result<(), TargetError> {
    let callbacks = [&draft.delivery.callback, &draft.delivery.failure_callback];
    let urls =
        callbacks.into_iter().flatten().filter_map(|callback| callback.destination.as_deref());
    urls.into_iter().try_for_each(|url| check_address(url, policy))
}

/// The token in a query, if there is one.
pub(super) fn token(query: &str) -> Option<String> {
    let (.., value) = percent::parameters(query).find(|(_, name, _)| *name == TOKEN)?;
    percent::decode_parameter(value)
}

/// The name before the first slash, decoded, and what follows it: a queue, and where its message goes.
pub(super) fn split_queue(tail: &str) -> Result<(String, &str), TargetError> {
    let (queue, rest) = tail.split_once('/').ok_or(TargetError::Missing)?;
    let queue = percent::decode(queue).ok_or(TargetError::Encoding)?;
    check_name("queue", &queue)?;
    Ok((queue, rest))
}

/// Whether a text may name such a thing.
pub(super) fn check_name(kind: &'static str, name: &str) -> Result<(), TargetError> {
    if is_name(name) {
        return Ok(());
    }
    Err(TargetError::Name { kind, name: name.chars().take(64).collect() })
}

/// An address as it is told: as it was given, but for credentials in it.
pub(super) fn shown(url: &str) -> String {
    match Destination::parse(url) {
        Ok(destination) if destination.authorization().is_some() => destination.to_string(),
        _ => url.to_owned(),
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

/// What of a query is the destination's, and what is said to us.
type Parameters<'a> = (Vec<&'a str>, Vec<(String, String)>);

fn own_parameters(query: &str) -> Result<Parameters<'_>, TargetError> {
    let (mut kept, mut headers) = (Vec::new(), Vec::new());
    for (whole, name, value) in percent::parameters(query) {
        if name.starts_with(SETTING) {
            let value = percent::decode_parameter(value).ok_or(TargetError::Encoding)?;
            headers.push((name.to_owned(), value));
        } else if name != TOKEN {
            kept.push(whole);
        }
    }
    Ok((kept, headers))
}

/// The address that is meant, whether a client encoded it or something on the way merged its slashes.
fn web_address(text: &str) -> Result<String, TargetError> {
    let (is_colon_encoded, rest) =
        after(past_scheme(text), ":", "%3a").ok_or(TargetError::Scheme)?;
    let (is_slash_encoded, _) = after(rest, "/", "%2f").ok_or(TargetError::Scheme)?;
    if is_colon_encoded || is_slash_encoded {
        return plain_address(&percent::decode(text).ok_or(TargetError::Encoding)?);
    }
    plain_address(text)
}

fn plain_address(text: &str) -> Result<String, TargetError> {
    let (scheme, rest) = text.split_once(":/").ok_or(TargetError::Scheme)?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(TargetError::Scheme);
    }
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    // A fragment is never sent.
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    Ok(format!("{scheme}://{rest}"))
}

fn past_scheme(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
}

/// What stands after a sign, and whether that was percent-encoded.
fn after<'a>(text: &'a str, plain: &str, encoded: &str) -> Option<(bool, &'a str)> {
    if let Some(rest) = text.strip_prefix(plain) {
        return Some((false, rest));
    }
    let (start, rest) = text.split_at_checked(encoded.len())?;
    start.eq_ignore_ascii_case(encoded).then_some((true, rest))
}

fn checked(url: String) -> Result<String, TargetError> {
    Destination::parse(&url)?;
    Ok(url)
}

#[cfg(test)]
mod tests;
