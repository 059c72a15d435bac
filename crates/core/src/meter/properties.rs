//! What every meter keeps, whatever happens to it: properties against the naive model.

mod acts;
mod bounds;
mod calendar;
mod changes;
mod edges;
mod promises;
mod refunds;
mod rules;
mod slots;
mod world;
