//! The pusher: a worker for each queue that is delivered, for as long as it is.

use super::answer::Answered;
use super::callback::{self, QUEUE_SUFFIX};
use super::caps;
use super::client::{BODY_BYTES_SHOWN, Client, PushError, PushSettings, Unheard};
use super::manner::Attempt;
use super::request::{Sending, request};
use super::tracer::{AttemptEnd, word};
use super::verdict::{Case, verdict};
use crate::envelope::Delivery;
use crate::error::Error;
use crate::lanes::{Engine, Job, Outcome};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::{self, JoinSet};
use tollgate_core::contract::{Lanes, PAGE_MAX, QueueState};
use tollgate_core::lanes::QueueSpec;
use tollgate_core::{QueueName, Span};

/// How often queues are looked at when nobody said that they changed: another process may change them.
const LOOK_AGAIN: Span = Span::from_secs(10);
/// How long a queue is left alone whose worker failed.
const AGAIN: Span = Span::from_secs(1);
/// Most pushes of one queue that a worker has in hand; how many there may be is said by limits, but for
/// calls that waited before their queue was delivered.
const HANDS: usize = 4_000;

/// Delivers the calls of all queues that say where to.
pub struct Pusher<S> {
    engine: Engine<S>,
    client: Client,
    settings: Arc<PushSettings>,
}

impl<S> Clone for Pusher<S> {
    fn clone(&self) -> Self {
        let Self { engine, client, settings } = self;
        Self { engine: engine.clone(), client: client.clone(), settings: settings.clone() }
    }
}

impl<S> std::fmt::Debug for Pusher<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pusher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The queues that are delivered.
type Serving = HashMap<QueueName, Served>;

/// A queue that is delivered.
struct Served {
    /// As the queue is at the moment.
    state: Arc<Mutex<Arc<Spec>>>,
    worker: task::Id,
    /// Dropped to end its worker.
    _alive: watch::Sender<()>,
}

/// How a queue is delivered.
struct Spec {
    queue: QueueSpec,
    delivery: Delivery,
}

impl<S: Lanes + Clone + 'static> Pusher<S> {
    /// One for an engine, with connections of its own.
    pub fn new(engine: Engine<S>, settings: PushSettings) -> Result<Self, PushError> {
        let client = Client::new(&settings)?;
        Ok(Self { engine, client, settings: Arc::new(settings) })
    }

    /// Delivers until this is ready, and then finishes what is on its way. Ends early if the store fails;
    /// what goes wrong with one queue is tried again, and holds up no other.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let mut stop = pin!(stop);
        let (mut served, mut workers) = (Serving::new(), JoinSet::new());
        loop {
            match self.look(&mut served, &mut workers).await {
                Err(error) if self.engine.has_ended() => return Err(error),
                Err(error) => tracing::error!(%error, "queues to be delivered cannot be read"),
                Ok(()) => {}
            }
            tokio::select! {
                () = &mut stop => break,
                () = self.engine.queues_changed() => {}
                () = self.engine.rest(LOOK_AGAIN) => {}
                Some(ended) = workers.join_next_with_id() => {
                    let (id, failed) = match ended {
                        Ok((id, Ok(()))) => (id, None),
                        Ok((_, Err(error))) if self.engine.has_ended() => return Err(error),
                        Ok((id, Err(error))) => (id, Some(error.to_string())),
                        Err(panicked) => (panicked.id(), Some(panicked.to_string())),
                    };
                    // Its own and no other: a queue may have been defined anew meanwhile.
                    served.retain(|_, it| it.worker != id);
                    if let Some(error) = failed {
                        tracing::error!(error, "a queue is not delivered: tried again");
                        self.engine.rest(AGAIN).await;
                    }
                }
            }
        }
        drop(served);
        while workers.join_next().await.is_some() {}
        Ok(())
    }

    /// Starts workers for queues that are delivered, and ends those of others.
    async fn look(
        &self,
        served: &mut Serving,
        workers: &mut JoinSet<Result<(), Error>>,
    ) -> Result<(), Error> {
        let found = self.delivered().await?;
        served.retain(|queue, _| found.contains_key(queue));
        for (queue, spec) in found {
            let spec = Arc::new(spec);
            match served.get(&queue) {
                Some(known) => *known.state.lock() = spec,
                None => {
                    let (alive, ends) = watch::channel(());
                    let state = Arc::new(Mutex::new(spec));
                    let serve = self.clone().serve(queue.clone(), state.clone(), ends);
                    let worker = workers.spawn(serve).id();
                    served.insert(queue, Served { state, worker, _alive: alive });
                }
            }
        }
        Ok(())
    }

    /// All queues that are delivered.
    async fn delivered(&self) -> Result<HashMap<QueueName, Spec>, Error> {
        let (mut found, mut after) = (HashMap::new(), None);
        loop {
            let page = self.engine.store().queues(after, PAGE_MAX).await?;
            let is_last = page.len() < PAGE_MAX;
            after = page.last().map(|queue| queue.name.clone());
            for QueueState { name, spec: queue, .. } in page {
                let Some(bytes) = &queue.delivery else { continue };
                match Delivery::from_bytes(bytes) {
                    Ok(delivery) => drop(found.insert(name, Spec { queue, delivery })),
                    Err(error) => {
                        tracing::error!(queue = %name, %error, "a queue cannot be delivered");
                    }
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn serve(
        self,
        queue: QueueName,
        state: Arc<Mutex<Arc<Spec>>>,
        mut ends: watch::Receiver<()>,
    ) -> Result<(), Error> {
        let worker = self.engine.worker(&queue).concurrency(HANDS).lease(self.settings.lease);
        let worker = worker.until(async move { while ends.changed().await.is_ok() {} });
        let worked = worker.run(move |job| {
            let (pusher, queue, spec) = (self.clone(), queue.clone(), state.lock().clone());
            async move { pusher.deliver(&queue, &spec, job).await }
        });
        worked.await.map(|_| ())
    }

    /// Makes one attempt at a call, and says what came of it.
    async fn deliver(&self, queue: &QueueName, spec: &Spec, mut job: Job) -> Outcome {
        let delivery = std::mem::take(&mut job.envelope.delivery).over(&spec.delivery);
        let tracer = self.settings.tracer.as_ref();
        let traced = tracer.and_then(|tracer| tracer.begin(queue, &job, self.engine.wall()));
        if let Some(traced) = &traced {
            job.envelope.trace = Some(traced.parent.clone());
        }
        let manner = self.settings.manner.as_deref().filter(|_| !job.envelope.card.is_empty());
        if let Some(manner) = manner {
            manner.ready(queue).await;
        }
        let body = Bytes::from(std::mem::take(&mut job.body));
        // Nobody else asks for it again.
        let sent = manner.map(|_| body.clone()).unwrap_or_default();
        let (signing, wall) = (self.settings.signing.as_ref(), self.engine.wall());
        let sending = Sending { queue, job: &job, delivery: &delivery, signing, manner, wall };
        let answered = self.send(sending, body).await;
        let wall = self.engine.wall();
        let (outcome, becomes) = match manner {
            Some(manner) => {
                let (job, delivery, body, spec) = (&job, &delivery, &*sent, &spec.queue);
                let attempt = Attempt { queue, job, delivery, body, spec, wall };
                (manner.judge(&attempt, &answered), None)
            }
            None => {
                let case = Case { delivery: &delivery, spec: &spec.queue, tried: job.tried, wall };
                let (outcome, becomes) = verdict(case, &answered);
                (outcome, Some(becomes))
            }
        };
        if let Some(traced) = traced {
            (traced.end)(AttemptEnd { outcome: word(outcome.settlement()), at: wall });
        }
        let callback = |becomes| callback::callback((queue, &job), &delivery, &answered, becomes);
        let Some(call) = becomes.and_then(callback) else { return outcome };
        match self.callback_queue(queue).await {
            Ok(queue) => outcome.enqueue(queue, call).standing_alone(),
            Err(error) => {
                // What was done is not done again for it.
                tracing::error!(call = job.id.0, %error, "a callback cannot be enqueued");
                outcome
            }
        }
    }

    /// Sends a call, and waits for the answer as long as it may take.
    async fn send(&self, sending: Sending<'_>, body: Bytes) -> Answered {
        let began = self.engine.clock_now();
        let delivery = sending.delivery;
        let timeout = delivery.timeout.unwrap_or(self.settings.timeout);
        let is_wanted = sending.manner.is_some()
            || !delivery.costs.is_empty()
            || delivery.callback.is_some()
            || delivery.failure_callback.is_some();
        let most = if is_wanted { self.settings.body_bytes_max } else { BODY_BYTES_SHOWN };
        let answer = match request(sending, body) {
            Ok(request) => {
                let sent = self.client.send(request, most, self.engine.rest(timeout)).await;
                sent.map_err(|unheard| match unheard {
                    Unheard::Late => format!("there was no answer within {timeout}"),
                    Unheard::Failed(why) => why,
                })
            }
            Err(error) => Err(error),
        };
        Answered { answer, took: self.engine.clock_now().since(began) }
    }

    /// The queue where callbacks of a queue wait: made when it is needed first.
    async fn callback_queue(&self, queue: &QueueName) -> Result<String, Error> {
        let name = format!("{queue}{QUEUE_SUFFIX}");
        if self.engine.is_pushed(&name).await?.is_none() {
            let spec = callback::queue_spec(Delivery::default().to_bytes()?);
            self.engine.define_queue_as(caps::WHO, &name, spec).await?;
        }
        Ok(name)
    }
}
