//! The client over real sockets, against a server in this process.

mod limits;
mod loss;
mod passes;
mod served;
