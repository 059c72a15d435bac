//! Schedules: messages that are handed in at the ticks of a cron expression.

pub(crate) mod tick;

use super::card;
use super::card::{Accepted, Card};
use super::destination::{Target, check_address, check_callbacks, shown};
use super::draft::{Draft, Start};
use super::error::Fault;
use super::face::{ApiRequest, done, reply};
use super::letter::{Letter, Posting, Through};
use super::names::{GROUPS, message_id};
use super::remembered::Message;
use super::shape::reply::ScheduleMade;
use super::shape::schedule::{ScheduleWire, Scheduled, TickState};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;
use tick::TickRecord;
use tollgate::lanes::{CallState, End, Event, NewCall, PAGE_MAX};
use tollgate::{Limit, Now, Schedule, Timestamp, When};

/// How ids begin that are made here.
const ID: &str = "scd_";
/// Most bytes of bodies in a list: those of schedules that come after are left out.
const BODIES_BYTES_MAX: usize = 16 << 20;
/// Random bytes of such an id.
const ID_BYTES: usize = 18;

impl ApiRequest<'_> {
    /// Makes a schedule, or changes the one of that id: a pause stays, and so does when it was made.
    pub(super) async fn make_schedule(&self, tail: &str) -> Result<Response, Fault> {
        let draft = self.draft(tail).await?;
        let missing = || Fault::invalid("Upstash-Cron is missing: say when, as in */5 * * * *");
        let cron = draft.cron.clone().ok_or_else(missing)?.cron;
        if matches!(draft.start, Start::At(_)) {
            return Err(Fault::invalid(
                "Upstash-Not-Before is an instant, and a schedule ticks again and again: use Upstash-Delay",
            ));
        }
        let id = draft.schedule.clone().map_or_else(new_id, Ok)?;
        let name = self.names.schedule(&id);
        let before = self.schedule_named(&name).await?;
        let (call, limits) = self.template(&draft, &id, before.as_ref()).await?;
        let gate = &self.app.gate;
        let made = gate.schedule_new(&name, When::Cron(cron), call, limits).await;
        made.map_err(|error| self.fault(error))?;
        if before.is_some_and(|before| before.is_paused) {
            gate.pause_schedule(&name).await.map_err(|error| self.fault(error))?;
        }
        Ok(reply(StatusCode::CREATED, &ScheduleMade { schedule_id: id }))
    }

    pub(super) async fn list_schedules(&self) -> Result<Response, Fault> {
        let prefix = self.names.schedule("");
        let (mut wires, mut after, mut bytes) = (Vec::new(), prefix.clone(), 0);
        loop {
            let page = self.app.gate.schedules(Some(&after), PAGE_MAX).await;
            let page = page.map_err(|error| self.fault(error))?;
            let Some(last) = page.last() else { break };
            after = last.name.clone();
            // How messages went is told where one schedule is asked for: that is a look into history.
            let mut wire = |schedule: &Schedule| {
                bytes += schedule.call.payload.body().len();
                let is_short = bytes <= BODIES_BYTES_MAX;
                self.schedule_wire(schedule, BTreeMap::new(), is_short)
            };
            wires.extend(page.iter().filter_map(&mut wire));
            if !after.starts_with(&prefix) {
                break;
            }
        }
        Ok(reply(StatusCode::OK, &wires))
    }

    pub(super) async fn read_schedule(&self, id: &str) -> Result<Response, Fault> {
        let found = self.schedule_named(&self.names.schedule(id)).await?;
        let states = match &found {
            Some(schedule) => self.last_states(schedule).await?,
            None => BTreeMap::new(),
        };
        let wire = found.and_then(|schedule| self.schedule_wire(&schedule, states, true));
        Ok(reply(StatusCode::OK, &wire.ok_or_else(|| missing(id))?))
    }

    pub(super) async fn remove_schedule(&self, id: &str) -> Result<Response, Fault> {
        let removed = self.app.gate.unschedule(&self.names.schedule(id)).await;
        if removed.map_err(|error| self.fault(error))? { Ok(done()) } else { Err(missing(id)) }
    }

    pub(super) async fn pause_schedule(&self, id: &str, pauses: bool) -> Result<Response, Fault> {
        let (gate, name) = (&self.app.gate, self.names.schedule(id));
        let changed = match pauses {
            true => gate.pause_schedule(&name).await,
            false => gate.resume_schedule(&name).await,
        };
        if changed.map_err(|error| self.fault(error))? { Ok(done()) } else { Err(missing(id)) }
    }

    /// What is handed in at each tick, and the limits that come along.
    async fn template(
        &self,
        draft: &Draft,
        id: &str,
        before: Option<&Schedule>,
    ) -> Result<(NewCall, Vec<(String, Limit)>), Fault> {
        // Before anything waits that needs it.
        self.shared.keys.get(&self.app.gate, &self.names).await?;
        self.ensure_queues(draft, draft.queue.as_deref()).await?;
        check_callbacks(draft, &self.shared.addresses)?;
        let since = before.and_then(Told::of).map(|told| told.message.card);
        let since = since.map(|card| card::instant(card.created_ms));
        let accepted = Accepted {
            at: since.unwrap_or(self.now().await?.wall),
            caller_ip: Some(self.peer.to_canonical().to_string()),
            queue: draft.queue.clone(),
            schedule: Some(id.to_owned()),
            cron: draft.cron.as_ref().map(|cron| cron.text.clone()),
            ..Accepted::default()
        };
        match &draft.target {
            Target::Url(url) => {
                check_address(url, &self.shared.addresses)?;
                // Times count from the tick.
                let now = Now::both(Timestamp::default());
                let place = draft.queue.clone().map_or(Through::Flow, Through::Queue);
                let posting = Posting { names: &self.names, now, place, accepted, source: None };
                let letter = Letter::new(draft, &self.body, posting)?;
                // Each tick is a message of its own.
                Ok((NewCall { dedupe: None, ..letter.call }, letter.limits))
            }
            Target::Group(group) => {
                self.ensure_ticks().await?;
                let card = Card::new(draft, accepted);
                let to = (&self.names, group.as_str(), card);
                // Limits come along with the messages, and not with the tick.
                Ok((TickRecord::call(draft, &self.body, to)?, Vec::new()))
            }
        }
    }

    /// Makes the queue of ticks to groups, if it is not there, and wakes who sees to them.
    async fn ensure_ticks(&self) -> Result<(), Fault> {
        let gate = &self.app.gate;
        let found = gate.queue_state(GROUPS).await.map_err(|error| self.fault(error))?;
        if found.is_none() {
            let made = gate.queue_as(self.who(), GROUPS, tick::spec()).await;
            made.map_err(|error| self.fault(error))?;
        }
        self.shared.groups_made.notify_one();
        Ok(())
    }

    async fn schedule_named(&self, name: &str) -> Result<Option<Schedule>, Fault> {
        self.app.gate.schedule_state(name).await.map_err(|error| self.fault(error))
    }

    /// How the messages of the last tick went, as far as that is known.
    async fn last_states(&self, schedule: &Schedule) -> Result<BTreeMap<String, TickState>, Fault> {
        let (gate, mut states) = (&self.app.gate, BTreeMap::new());
        // A tick to a group is no message: those that come of it are not known here.
        if schedule.call.queue.as_str() == GROUPS {
            return Ok(states);
        }
        let calls = gate.schedule_calls(&schedule.name).map_err(|error| self.fault(error))?;
        for call in calls {
            let alive = gate.call(call).await.map_err(|error| self.fault(error))?;
            let state = match alive.map(|call| call.state) {
                Some(CallState::Dead) => TickState::Fail,
                Some(_) => TickState::InProgress,
                None => {
                    let gate = gate.clone();
                    let history = async move { gate.history_of(call).await };
                    let history = self.app.history.read(history).await?;
                    match history.iter().rev().find_map(Event::end) {
                        Some(End::Done) => TickState::Success,
                        Some(_) => TickState::Fail,
                        // History is written a moment later.
                        None => TickState::InProgress,
                    }
                }
            };
            states.insert(message_id(call), state);
        }
        Ok(states)
    }

    /// A schedule as it is told; `None` if it is not of this API, or not the caller's.
    fn schedule_wire(
        &self,
        schedule: &Schedule,
        last_states: BTreeMap<String, TickState>,
        tells_body: bool,
    ) -> Option<ScheduleWire> {
        let id = schedule.name.strip_prefix(&self.names.schedule(""))?;
        let Told { message, destination, body } = Told::of(schedule)?;
        let is_hidden = self.app.redact_bodies;
        let message = message.hidden_if(is_hidden);
        let scheduled = Scheduled {
            cron: message.card.cron.as_deref().unwrap_or_default(),
            destination,
            is_paused: schedule.is_paused,
            last_ms: schedule.last.map(card::millis),
            next_ms: schedule.next.map(card::millis),
            last_states,
            error: schedule.problem.clone(),
        };
        let body = Some(&*body).filter(|_| tells_body && !is_hidden);
        Some(ScheduleWire::new(&message.kept(id, body), scheduled))
    }
}

/// What a schedule of this API sends, and where to.
struct Told {
    message: Message,
    destination: String,
    body: Vec<u8>,
}

impl Told {
    fn of(schedule: &Schedule) -> Option<Self> {
        let payload = &schedule.call.payload;
        let message = Message::of(payload.envelope())?;
        if let Some(url) = &message.delivery.destination {
            let (destination, body) = (shown(url), payload.body().to_vec());
            return Some(Self { message, destination, body });
        }
        let tick = TickRecord::read(payload.body())?;
        let (delivery, body) = tick.delivery().zip(tick.body())?;
        let message = Message { delivery, ..message };
        Some(Self { message, destination: tick.group, body })
    }
}

fn new_id() -> Result<String, Fault> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(Fault::unavailable)?;
    Ok(format!("{ID}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("there is no schedule {id}"))
}
