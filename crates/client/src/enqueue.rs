//! Handing in calls: those that come while a request for their queue is under way go together in the next.

use crate::calls::CallId;
use crate::client::{Asked, Client};
use crate::clock::random;
use crate::error::{ClientError, Problem};
use crate::path::path;
use crate::wire::call::CallWire;
use hyper::Method;
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tollgate_engine::Call;

/// Most calls that are put into one request.
const CALLS_MAX: usize = 1_000;
/// Most bytes that are put together: half of what a server takes.
const BYTES_MAX: usize = 512 << 10;
/// Most calls that wait to be sent for one queue.
const WAITING_MAX: usize = 100_000;
/// Says that a request sent again is the same one.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

impl Client {
    /// Hands in a call. The answer to a duplicate is the first call's name. Once answered, it lasts. Calls
    /// that are handed in at the same time go together. Dropped before it is ready, the call may be
    /// accepted all the same.
    pub async fn enqueue(&self, queue: &str, call: Call) -> Result<CallId, ClientError> {
        let ids = self.enqueue_all(queue, [call]).await?;
        let unnamed = || ClientError::invalid("the server gave the call no name");
        ids.into_iter().next().ok_or_else(unnamed)
    }

    /// Hands in calls of a queue, all or none; their names in order. Up to 10,000 at a time.
    pub async fn enqueue_all(
        &self,
        queue: &str,
        calls: impl IntoIterator<Item = Call>,
    ) -> Result<Vec<CallId>, ClientError> {
        let written = calls.into_iter().map(|call| serde_json::to_string(&CallWire::from(call)));
        let written: Result<Vec<String>, _> = written.collect();
        let written = written.map_err(|error| ClientError::invalid(error.to_string()))?;
        self.enqueue_written(queue, &written).await
    }

    /// As [`Self::enqueue_all`], with calls that are JSON already, as the server takes them.
    pub async fn enqueue_written(
        &self,
        queue: &str,
        calls: &[String],
    ) -> Result<Vec<CallId>, ClientError> {
        let (parcel, count) = (calls.join(","), calls.len());
        if count == 0 {
            return Ok(Vec::new());
        }
        let (reply, answer) = oneshot::channel();
        let parcel = Parcel { calls: parcel, count, reply };
        if self.inner.outbox.leave(queue, parcel)? == Leaving::First {
            let (client, queue) = (self.clone(), queue.to_owned());
            tokio::spawn(carry(Carrier { client, queue, is_done: false }));
        }
        answer.await.unwrap_or_else(|_| Err(ClientError::invalid("the runtime has ended")))
    }
}

impl Client {
    /// Hands in calls that are JSON already, all or none, in a request of their own with this key: the same
    /// calls with the same key, handed in again, are accepted once, for as long as the queue knows keys.
    pub async fn enqueue_keyed(
        &self,
        queue: &str,
        calls: &[&str],
        key: &str,
    ) -> Result<Vec<CallId>, ClientError> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        self.send_calls(queue, (&calls.join(","), calls.len()), key).await
    }
}

/// Calls that wait to be sent, by queue. A queue is there while someone carries its calls.
#[derive(Default)]
pub(crate) struct Outbox {
    queues: Mutex<HashMap<String, VecDeque<Parcel>>>,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

/// Calls that are accepted together or not at all.
struct Parcel {
    /// Their JSON, with commas between.
    calls: String,
    count: usize,
    reply: oneshot::Sender<Result<Vec<CallId>, ClientError>>,
}

#[derive(PartialEq, Eq)]
enum Leaving {
    /// Nobody carries for this queue yet.
    First,
    Behind,
}

impl Outbox {
    fn queues(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Parcel>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, queue: &str, parcel: Parcel) -> Result<Leaving, ClientError> {
        let mut queues = self.queues();
        let Some(waiting) = queues.get_mut(queue) else {
            queues.insert(queue.to_owned(), VecDeque::from([parcel]));
            return Ok(Leaving::First);
        };
        if waiting.iter().map(|parcel| parcel.count).sum::<usize>() >= WAITING_MAX {
            return Err(ClientError::invalid(format!(
                "{WAITING_MAX} calls wait to be sent to queue {queue}: wait for answers, or hand in fewer at a time"
            )));
        }
        waiting.push_back(parcel);
        Ok(Leaving::Behind)
    }

    /// What goes next; `None` if there is nothing, and nobody carries any more.
    fn collect(&self, queue: &str) -> Option<Vec<Parcel>> {
        let mut queues = self.queues();
        let waiting = queues.get_mut(queue)?;
        let (mut calls, mut bytes, mut taken) = (0, 0, Vec::new());
        while let Some(parcel) = waiting.front() {
            calls += parcel.count;
            bytes += parcel.calls.len();
            if !taken.is_empty() && (calls > CALLS_MAX || bytes > BYTES_MAX) {
                break;
            }
            taken.extend(waiting.pop_front());
        }
        if taken.is_empty() {
            queues.remove(queue);
            return None;
        }
        Some(taken)
    }
}

/// Who carries the calls of a queue. If that ends before all are carried, with its runtime, those that wait
/// are told so, and the next who hands in a call has another carry it.
struct Carrier {
    client: Client,
    queue: String,
    is_done: bool,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if !self.is_done {
            self.client.inner.outbox.queues().remove(&self.queue);
        }
    }
}

/// Sends what there is for a queue until there is nothing left.
async fn carry(mut carrier: Carrier) {
    let Carrier { client, queue, .. } = &carrier;
    while let Some(parcels) = client.inner.outbox.collect(queue) {
        match client.send_parcels(queue, &parcels).await {
            Ok(ids) => hand_out(parcels, ids),
            // One of them is at fault: the others are not to suffer from it.
            Err(ClientError::Problem(problem)) if parcels.len() > 1 && is_for_one(&problem) => {
                for parcel in parcels {
                    let answer = client.send_parcels(queue, std::slice::from_ref(&parcel)).await;
                    let _ = parcel.reply.send(answer);
                }
            }
            Err(error) => {
                for parcel in parcels {
                    let _ = parcel.reply.send(Err(error.clone()));
                }
            }
        }
    }
    carrier.is_done = true;
}

/// Whether a refusal is for a call, or for how much they are together, and not for who hands them in.
fn is_for_one(problem: &Problem) -> bool {
    problem.place().is_some() || matches!(problem.status, 400 | 413 | 422)
}

fn hand_out(parcels: Vec<Parcel>, ids: Vec<CallId>) {
    let mut ids = ids.into_iter();
    for parcel in parcels {
        // Who does not wait any more has been told nothing.
        let _ = parcel.reply.send(Ok(ids.by_ref().take(parcel.count).collect()));
    }
}

#[derive(Deserialize)]
struct IdsWire {
    ids: Vec<CallId>,
}

impl Client {
    async fn send_parcels(
        &self,
        queue: &str,
        parcels: &[Parcel],
    ) -> Result<Vec<CallId>, ClientError> {
        let calls: Vec<&str> = parcels.iter().map(|parcel| &*parcel.calls).collect();
        let count: usize = parcels.iter().map(|parcel| parcel.count).sum();
        let key: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        self.send_calls(queue, (&calls.join(","), count), &key).await
    }

    /// Sends so many calls, written with commas between, under a key.
    async fn send_calls(
        &self,
        queue: &str,
        (calls, count): (&str, usize),
        key: &str,
    ) -> Result<Vec<CallId>, ClientError> {
        let body = format!("[{calls}]");
        let asked = Asked::new(Method::POST, path(&["queues", queue, "calls"]));
        let asked = asked.bytes(body.into()).header(IDEMPOTENCY_KEY, key)?.again();
        let IdsWire { ids } = self.ask(asked).await?;
        if ids.len() != count {
            let reason = format!("{} names for {count} calls", ids.len());
            return Err(ClientError::Protocol { url: self.url().to_owned(), reason });
        }
        Ok(ids)
    }
}
