//! A draft with a body and an address becomes a call: where it waits, what it owes, what goes with it.

use super::card::{Accepted, Card};
use super::destination::Target;
use super::digest::{sha256_hex, sha256_hex_of};
use super::draft::{Draft, Start};
use super::error::Fault;
use super::names::{self, Names, UNBOUND};
use tollgate::lanes::{NewCall, QueueName};
use tollgate::push::destination::Destination;
use tollgate::{Call, Limit, Now, Priority, global};

/// Longest name of a lane.
const LANE_BYTES_MAX: usize = 512;
/// The highest priority: of callbacks that the next message of a queue waits for.
const FIRST: u64 = 9;

/// A message that is ready to be handed in.
#[derive(Debug)]
pub(super) struct Letter {
    /// The call.
    pub(super) call: NewCall,
    /// The limits that come along with it, by the engine's names.
    pub(super) limits: Vec<(String, Limit)>,
    /// Where it goes.
    pub(super) url: String,
}

/// Where a message waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Through {
    /// With others of its keys.
    Flow,
    /// In a queue, by the caller's name of it.
    Queue(String),
    /// In such a queue before all others.
    QueueFirst(String),
}

/// What is known of a message when it is handed in.
#[derive(Debug, Clone)]
pub(super) struct Posting<'a> {
    /// Whose it is.
    pub(super) names: &'a Names,
    /// The present.
    pub(super) now: Now,
    /// Where it waits.
    pub(super) place: Through,
    /// What its card says of that.
    pub(super) accepted: Accepted,
    /// The message that it tells of: what that does not show, it does not show, either.
    pub(super) source: Option<&'a Card>,
}

impl Letter {
    /// The letter of a draft to one address; a group's name is not one.
    pub(super) fn new(draft: &Draft, body: &[u8], posting: Posting<'_>) -> Result<Self, Fault> {
        let url = match &draft.target {
            Target::Url(url) => url.clone(),
            Target::Group(name) => {
                return Err(Fault::missing(format!("there is no URL group {name}")));
            }
        };
        let Posting { names, now, place, accepted, source } = posting;
        let (queue, lane) = match &place {
            Through::Flow => (names.messages(), flow_lane(draft, &url)?),
            Through::Queue(name) | Through::QueueFirst(name) => (names.queue(name), name.clone()),
        };
        let priority = match place {
            Through::QueueFirst(_) => Priority::new(FIRST).map_err(Fault::invalid)?,
            _ => draft.priority,
        };
        let is_in_group = accepted.group.is_some();
        let mut card = Card::new(draft, accepted);
        if let Some(source) = source {
            card.hide_as(source);
        }
        let card = card.to_bytes(&draft.delivery)?;
        let mut call = Call::new(lane).body(body).delivery(draft.delivery.clone()).card(card);
        call = call.priority(priority);
        for key in &draft.keys {
            call = call.pays(global(&*names.inner(&key.key)).weight(key.weight));
        }
        call = match draft.start {
            Start::Now => call,
            Start::After(delay) => call.delay(delay),
            Start::At(instant) => call.not_before(instant),
        };
        if let Some(key) = draft.dedup_key(&url, body) {
            // Each endpoint of a group gets the message once.
            let each = || sha256_hex_of([key.as_bytes(), url.as_bytes()]);
            call = call.dedupe(if is_in_group { each() } else { key.clone() });
        }
        let queue = QueueName::new(&queue).map_err(Fault::invalid)?;
        let mut call = call.into_new(queue, now).map_err(Fault::invalid)?;
        for (toll, key) in call.tolls.iter_mut().zip(&draft.keys) {
            toll.hears_feedback = key.has_feedback;
        }
        let limits = draft.keys.iter();
        let limits = limits.filter_map(|key| Some((names.inner(&key.key), key.limit()?)));
        Ok(Self { call, limits: limits.collect(), url })
    }
}

/// Messages of the same keys wait for each other. Those without wait for those to the same destination
/// alone, which may take only so many at a time.
fn flow_lane(draft: &Draft, url: &str) -> Result<String, Fault> {
    if !draft.keys.is_empty() {
        let lane = names::lane(draft.keys.iter().map(|key| key.key.as_str()));
        // Several keys may be longer together than a name can be.
        let is_long = lane.len() > LANE_BYTES_MAX;
        return Ok(if is_long { sha256_hex(lane.as_bytes()) } else { lane });
    }
    let destination = Destination::parse(url).map_err(Fault::invalid)?;
    Ok(format!("{UNBOUND}{}", destination.origin()))
}
