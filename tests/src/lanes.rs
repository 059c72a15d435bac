//! Lanes in simulated time: what users expect of them, and what others got wrong.

mod figures;
mod pitfalls;
mod world;
