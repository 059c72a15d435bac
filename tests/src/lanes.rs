//! Lanes in simulated time: what users expect of them, and what others got wrong.

mod explained;
mod figures;
mod pitfalls;
mod world;
