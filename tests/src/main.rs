//! The tests that span crates, as modules of one binary.

// `cfg(test)` always holds here. It is written out because clippy grants tests their `unwrap` only
// below it.
#[cfg(test)]
mod client;
#[cfg(test)]
mod effect;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod http;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod many;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod push;
#[cfg(test)]
mod qstash;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod world;
