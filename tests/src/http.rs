//! The server over real sockets: what each route answers, and what it makes of mistakes.

mod audit;
mod bodies;
mod calls;
mod client;
mod connections;
mod consume;
mod dead;
mod description;
mod doors;
mod enqueue;
mod events;
mod holders;
mod leaving;
mod limits;
mod meters;
mod metrics;
mod namespaces;
mod queues;
mod ready;
mod receipts;
mod roles;
mod schedules;
mod started;
mod tls;
mod turns;
mod working;
