//! What went wrong elsewhere, each under its own name.

mod door;
mod leases;
mod order;
mod rates;
mod waiting;

use tollgate_core::Span;

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}
