//! The server over real sockets: what each route answers, and what it makes of mistakes.

mod audit;
mod bodies;
mod client;
mod connections;
mod consume;
mod description;
mod doors;
mod holders;
mod limits;
mod meters;
mod namespaces;
mod receipts;
mod roles;
mod started;
mod tls;
mod turns;
