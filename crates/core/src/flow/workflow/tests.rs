//! What is refused, what is owed, and how runs move.

mod building;
mod moving;
mod owing;
