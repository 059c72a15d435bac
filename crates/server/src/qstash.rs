//! The QStash API: other words for the same engine.
//!
//! A request becomes a draft, which says nothing but what Tollgate's own words can say as well; what the
//! face knows of a message beyond that goes along with it, as its card; and what is told of it is
//! computed from both. Nothing of that does IO.

mod again;
mod callback;
mod card;
mod deliver;
mod destination;
mod digest;
mod dlq;
mod draft;
mod error;
mod face;
mod filter;
mod flow;
mod groups;
mod kept;
mod keys;
mod letter;
mod logs;
mod messages;
mod names;
mod percent;
mod pin;
mod publish;
mod queues;
mod remembered;
mod routing;
mod schedules;
mod shape;

pub(crate) use deliver::QstashManner;
pub(crate) use face::{Face, Shared};
pub(crate) use remembered::hidden;
pub(crate) use schedules::tick;
