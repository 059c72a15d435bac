//! The server over real sockets: what each route answers, and what it makes of mistakes.

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
mod limits;
mod meters;
mod queues;
mod receipts;
mod schedules;
mod started;
mod turns;
mod working;
