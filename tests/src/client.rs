//! The client over real sockets, against a server in this process.

mod cut;
mod enqueueing;
mod flows;
mod limits;
mod loss;
mod operating;
mod passes;
mod secure;
pub(crate) mod served;
mod workers;
