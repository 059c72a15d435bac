//! Queues: a strict lane each, and when it was made and changed.

use super::destination::check_name;
use super::error::Fault;
use super::face::{ApiRequest, done, reply};
use super::messages::Which;
use super::shape::queue::{QueueAsked, QueueWire};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tollgate::lanes::{
    Backoff, Order, PAGE_MAX, QueueError, QueueName, QueueSpec, QueueState, Scope,
};
use tollgate::push::delivery::RETRIES_MAX;
use tollgate::{Delivery, Error, Operation, Span};

/// How many messages of a queue are in flight, unless it says so.
pub(super) const PARALLELISM_DEFAULT: u32 = 1;
/// Most messages of a queue that are in flight.
const PARALLELISM_MAX: u32 = 10_000;
/// Most queues of a namespace.
const QUEUES_MAX: usize = 1_000;
/// Most messages that wait in one queue.
const DEPTH_MAX: u64 = 10_000_000;
/// How often a delivery that nobody saw the end of is made again.
const CRASHES_MAX: u32 = 100;
/// Most messages of one lane in flight: limits say how many there are.
const FLOW_PARALLELISM: u32 = 1_000_000;
/// Where it is kept when queues were made.
const PREFIX: &str = "tollgate/qstash/queue/";

/// When a queue was made and changed, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct QueueRecord {
    created: u64,
    updated: u64,
}

/// The queue of messages that go through none of the caller's.
pub(super) fn messages_spec() -> Result<QueueSpec, Fault> {
    spec(FLOW_PARALLELISM)
}

fn spec(parallelism: u32) -> Result<QueueSpec, Fault> {
    let delivery = Delivery::default().to_bytes().map_err(Fault::unavailable)?;
    Ok(QueueSpec {
        order: match parallelism {
            1 => Order::Strict,
            several => Order::Parallel(several),
        },
        // A message says itself how often.
        failures_max: RETRIES_MAX + 1,
        crashes_max: CRASHES_MAX,
        backoff: Backoff::doubling(Span::from_secs(1), Span::from_days(1)),
        depth_max: DEPTH_MAX,
        delivery: Some(delivery),
        tells_accepted: true,
        ..QueueSpec::default()
    })
}

impl ApiRequest<'_> {
    pub(super) async fn list_queues(&self) -> Result<Response, Fault> {
        let (mut wires, mut after) = (Vec::new(), None);
        loop {
            let page = self.queue_page(after.as_deref()).await?;
            let Some(last) = page.last() else { return Ok(reply(StatusCode::OK, &wires)) };
            after = Some(last.name.to_string());
            for state in &page {
                wires.push(self.queue_wire(state).await?);
            }
        }
    }

    /// Queues of the caller's behind one, by the engine's names; none behind the last.
    pub(super) async fn queue_page(&self, after: Option<&str>) -> Result<Vec<QueueState>, Fault> {
        let prefix = self.names.queues();
        let page = self.app.gate.queues(Some(after.unwrap_or(&prefix)), PAGE_MAX).await;
        let page = page.map_err(|error| self.fault(error))?.into_iter();
        Ok(page.take_while(|state| state.name.starts_with(&prefix)).collect())
    }

    /// Refuses one more queue where there are as many as there may be: each has somebody who sees to it.
    pub(super) async fn check_room_for_queue(&self) -> Result<(), Fault> {
        let prefix = self.names.queues();
        let page = self.app.gate.queues(Some(&prefix), QUEUES_MAX).await;
        let page = page.map_err(|error| self.fault(error))?;
        let count = page.iter().filter(|queue| queue.name.starts_with(&prefix)).count();
        if count >= QUEUES_MAX {
            let why = format!("there are {QUEUES_MAX} queues, the most there may be: delete some");
            return Err(Fault::over_quota(why));
        }
        Ok(())
    }

    pub(super) async fn read_queue(&self, name: &str) -> Result<Response, Fault> {
        let state = self.queue_state(name).await?;
        Ok(reply(StatusCode::OK, &self.queue_wire(&state).await?))
    }

    pub(super) async fn upsert_queue(&self) -> Result<Response, Fault> {
        let QueueAsked { queue_name, parallelism, is_paused } = self.json()?;
        check_name("queue", &queue_name)?;
        let parallelism = parallelism.unwrap_or(u64::from(PARALLELISM_DEFAULT));
        let known = u32::try_from(parallelism).ok();
        let known = known.filter(|it| (1..=PARALLELISM_MAX).contains(it)).ok_or_else(|| {
            Fault::invalid(format!("parallelism is 1 to {PARALLELISM_MAX}, and not {parallelism}"))
        })?;
        let inner = self.names.queue(&queue_name);
        if self.app.gate.is_pushed(&inner).await.map_err(|error| self.fault(error))?.is_none() {
            self.check_room_for_queue().await?;
        }
        self.define_queue(&queue_name, known, is_paused).await?;
        Ok(done())
    }

    /// Makes a queue, or changes it.
    pub(super) async fn define_queue(
        &self,
        name: &str,
        parallelism: u32,
        is_paused: Option<bool>,
    ) -> Result<(), Fault> {
        let (gate, inner) = (&self.app.gate, self.names.queue(name));
        let defined = gate.queue_as(self.who(), &inner, spec(parallelism)?).await;
        defined.map_err(|error| self.fault(error))?;
        match is_paused {
            Some(true) => self.operate(Operation::Pause(self.scope(name)?)).await?,
            Some(false) => self.operate(Operation::Resume(self.scope(name)?)).await?,
            None => {}
        }
        let at = super::card::millis(self.now().await?.wall);
        let touch = |before: Option<QueueRecord>| {
            let created = before.map_or(at, |before| before.created);
            Ok(Some(QueueRecord { created, updated: at }))
        };
        self.change_kept(&record_key(&inner), touch).await.map(|_| ())
    }

    pub(super) async fn remove_queue(&self, name: &str) -> Result<Response, Fault> {
        let (gate, inner) = (&self.app.gate, self.names.queue(name));
        let state = gate.queue_state(&inner).await.map_err(|error| self.fault(error))?;
        if let Some(state) = state {
            if state.in_flight > 0 {
                return Err(in_use(name, state.in_flight));
            }
            self.cancel_in(&state, Which::All, u64::MAX).await?;
        }
        match gate.remove_queue_as(self.who(), &inner).await {
            // Some came, or were started, since.
            Err(Error::Queue(QueueError::NotEmpty { waiting, in_flight, .. })) => {
                return Err(in_use(name, waiting.saturating_add(in_flight)));
            }
            removed => removed.map_err(|error| self.fault(error))?,
        };
        self.change_kept(&record_key(&inner), |_: Option<QueueRecord>| Ok(None)).await?;
        Ok(done())
    }

    pub(super) async fn pause_queue(&self, name: &str, pauses: bool) -> Result<Response, Fault> {
        self.queue_state(name).await?;
        let scope = self.scope(name)?;
        self.operate(match pauses {
            true => Operation::Pause(scope),
            false => Operation::Resume(scope),
        })
        .await?;
        Ok(done())
    }

    fn scope(&self, name: &str) -> Result<Scope, Fault> {
        let queue = QueueName::new(&self.names.queue(name));
        queue.map(Scope::Queue).map_err(|error| self.fault(error.into()))
    }

    async fn queue_state(&self, name: &str) -> Result<QueueState, Fault> {
        let found = self.app.gate.queue_state(&self.names.queue(name)).await;
        let found = found.map_err(|error| self.fault(error))?;
        found.ok_or_else(|| Fault::missing(format!("there is no queue {name}")))
    }

    async fn queue_wire(&self, state: &QueueState) -> Result<QueueWire, Fault> {
        let record: Option<QueueRecord> = self.kept(&record_key(&state.name)).await?;
        let (created_at, updated_at) =
            record.map_or((0, 0), |record| (record.created, record.updated));
        Ok(QueueWire {
            name: self.names.outer_queue(&state.name).unwrap_or_default().to_owned(),
            created_at,
            updated_at,
            parallelism: u64::from(state.spec.in_flight_max()),
            is_paused: state.is_paused,
            lag: state.waiting,
        })
    }
}

fn in_use(name: &str, messages: u64) -> Fault {
    let why = format!(
        "messages of the queue {name} are being delivered ({messages}): remove it when they have ended"
    );
    Fault::over_quota(why)
}

fn record_key(inner: &str) -> String {
    format!("{PREFIX}{inner}")
}
