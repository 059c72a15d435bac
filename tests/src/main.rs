//! The tests that span crates, as modules of one binary.

// `cfg(test)` always holds here. It is written out because clippy grants tests their `unwrap` only
// below it.
#[cfg(test)]
mod tidy;
