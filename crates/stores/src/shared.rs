//! Limits that several processes share: [`Cells`](cells::Cells) is what a store does for that.

pub mod cells;
pub mod quick;
