//! Defects that others had, and promises that are easy to lose, each under its own name.

mod changes;
mod clocks;
mod closing;
mod delivery;
mod door;
mod features;
mod looking;
mod memory;
mod order;
mod overtaking;
mod patience;
mod races;
mod receipts;
mod reconfiguring;
mod settling;
mod several;
mod slots;
mod storm;
mod turns;
