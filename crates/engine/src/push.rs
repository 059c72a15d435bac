//! What push decides before and after it sends a call over HTTP. Nothing here does IO or reads a clock.

pub mod address;
pub mod destination;
pub mod expression;
pub mod feedback;
pub mod headers;
pub mod signature;
