//! Who takes part. To add a limiter, write its file and name it in [`ALL`].

mod atomic;
mod governor;
mod leaky_bucket;
mod throttlecrab;
mod tollgate;

use anyhow::Context as _;

use crate::contender::Contender;

/// The contender the ratios are taken against.
pub(crate) const REFERENCE: &str = governor::GOVERNOR.name;

/// Every contender, in the order of the tables.
pub(crate) const ALL: &[Contender] = &[
    atomic::ATOMIC,
    governor::GOVERNOR,
    leaky_bucket::LEAKY_BUCKET,
    throttlecrab::PERIODIC,
    throttlecrab::ADAPTIVE,
    tollgate::EXACT,
    tollgate::COARSE,
    tollgate::BATCHED,
];

/// The contender with that name.
pub(crate) fn named(name: &str) -> anyhow::Result<&'static Contender> {
    ALL.iter()
        .find(|contender| contender.name == name)
        .with_context(|| format!("no contender is named {name:?}"))
}
