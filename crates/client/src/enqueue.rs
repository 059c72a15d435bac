//! Handing in calls: those that come while a request for their queue is under way go together in the next.

use crate::calls::CallId;
use crate::client::{Asked, Client, Inner};
use crate::clock::random;
use crate::error::ClientError;
use crate::path::path;
use crate::wire::call::CallWire;
use hyper::Method;
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        if self.inner.desk.leave(queue, parcel)? == Leaving::First {
            tokio::spawn(carry(self.inner.clone(), queue.to_owned()));
        }
        answer.await.unwrap_or_else(|_| Err(ClientError::invalid("the runtime has ended")))
    }
}

/// Calls that wait to be sent, by queue. A queue is there while someone carries its calls.
#[derive(Default)]
pub(crate) struct Desk {
    queues: Mutex<HashMap<String, VecDeque<Parcel>>>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
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

impl Desk {
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

/// Sends what there is for a queue until there is nothing left.
async fn carry(inner: Arc<Inner>, queue: String) {
    let client = Client { inner };
    let desk = &client.inner.desk;
    while let Some(parcels) = desk.collect(&queue) {
        match client.send_calls(&queue, &parcels).await {
            Ok(ids) => hand_out(parcels, ids),
            // One of them may be at fault: the others are not to suffer from it.
            Err(ClientError::Problem(problem)) if parcels.len() > 1 && problem.status < 500 => {
                for parcel in parcels {
                    let answer = client.send_calls(&queue, std::slice::from_ref(&parcel)).await;
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
    async fn send_calls(
        &self,
        queue: &str,
        parcels: &[Parcel],
    ) -> Result<Vec<CallId>, ClientError> {
        let calls: Vec<&str> = parcels.iter().map(|parcel| &*parcel.calls).collect();
        let count: usize = parcels.iter().map(|parcel| parcel.count).sum();
        let body = format!("[{}]", calls.join(","));
        let key: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let asked = Asked::new(Method::POST, path(&["queues", queue, "calls"]));
        let asked = asked.bytes(body.into()).header(IDEMPOTENCY_KEY, &key)?.again();
        let IdsWire { ids } = self.ask(asked).await?;
        if ids.len() != count {
            let reason = format!("{} names for {count} calls", ids.len());
            return Err(ClientError::Protocol { url: self.url().to_owned(), reason });
        }
        Ok(ids)
    }
}
