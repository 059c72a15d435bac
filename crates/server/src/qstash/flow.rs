//! Flow-control keys: how they stand, and what is done to them. A key is a limit of that name, and its
//! messages wait in the lane of that name.

use super::draft::keys::check_key;
use super::error::Fault;
use super::face::{ApiRequest, done, reply};
use super::names::UNBOUND;
use super::percent;
use super::pin::{Unpin, read_pin, read_unpin};
use super::routing::FlowAct;
use super::shape::flow::{FlowWire, GlobalWire};
use axum::http::StatusCode;
use axum::response::Response;
use tokio::task::JoinSet;
use tollgate::lanes::{LimitName, PAGE_MAX, Scope};
use tollgate::push::caps::{PUSHES, PUSHES_MAX};
use tollgate::{AskError, Error, Limit, LimitState, Now, Operation, RuleUse};

/// Most keys of a list, but for the rest of the last page: an answer is held in memory whole.
const KEYS_LISTED_MAX: usize = 10_000;
/// What stands in lists for all messages without a key.
const NO_KEY: &str = "$";
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A key, as it is found.
struct Key {
    /// By the caller's name.
    name: String,
    limit: LimitState,
}

impl ApiRequest<'_> {
    pub(super) async fn list_keys(&self) -> Result<Response, Fault> {
        let search = searched(self.query())?;
        let mut wires = Vec::new();
        if NO_KEY.contains(&search) {
            wires.push(self.unbound_wire().await?);
        }
        let prefix = self.names.prefix();
        let mut after = Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty());
        loop {
            let page = self.app.gate.limits_after(after.as_deref(), PAGE_MAX).await;
            let page = page.map_err(|error| self.fault(error))?;
            let Some(last) = page.last().map(|last| last.name.to_string()) else { break };
            let keys = page.into_iter().filter_map(|limit| {
                let name = self.names.outer(&limit.name)?.to_owned();
                let is_sought = check_key(&name).is_ok() && name.contains(&search);
                is_sought.then_some(Key { name, limit })
            });
            wires.extend(self.key_wires(keys.collect()).await?);
            // Who looks for more says which.
            if wires.len() >= KEYS_LISTED_MAX || !last.starts_with(prefix) {
                break;
            }
            after = Some(last);
        }
        Ok(reply(StatusCode::OK, &wires))
    }

    pub(super) async fn read_key(&self, key: &str) -> Result<Response, Fault> {
        if key == NO_KEY {
            return Ok(reply(StatusCode::OK, &self.unbound_wire().await?));
        }
        let limit = self.key_limit(key).await?;
        let meter = self.app.gate.meter(&limit.name, None).await;
        let meter = meter.map_err(|error| self.fault(error))?;
        let lane = self.app.gate.lane(&self.names.messages(), key).await;
        let waiting = lane.map_err(|error| self.fault(error))?.map_or(0, |lane| lane.waiting);
        let key = Key { name: key.to_owned(), limit };
        Ok(reply(StatusCode::OK, &wire(key, &meter.rules, waiting, self.now().await?)))
    }

    pub(super) async fn act_on_key(&self, key: &str, act: FlowAct) -> Result<Response, Fault> {
        check_key(key)?;
        let inner = self.names.inner(key);
        let limit = LimitName::new(&inner).map_err(|error| self.fault(error.into()))?;
        let acted = match act {
            FlowAct::Pin => self.pin_key(key, &inner).await,
            FlowAct::Unpin => self.unpin_key(key).await,
            FlowAct::Pause => {
                self.key_limit(key).await?;
                self.operate(Operation::Pause(Scope::Limit(limit))).await
            }
            FlowAct::Resume => {
                self.key_limit(key).await?;
                self.operate(Operation::Resume(Scope::Limit(limit))).await
            }
            FlowAct::ResetRate => {
                self.key_limit(key).await?;
                self.operate(Operation::Reset((limit, None))).await
            }
        };
        acted.map(|()| done())
    }

    pub(super) async fn global_parallelism(&self) -> Result<Response, Fault> {
        let pushes = self.app.gate.uses(&[PUSHES]).await.map_err(|error| self.fault(error))?;
        let rules = pushes.into_iter().flatten().next();
        let (max, count) = rules.map_or((PUSHES_MAX, 0), |rules| slots(&rules));
        let wire = GlobalWire { parallelism_max: max, parallelism_count: count };
        Ok(reply(StatusCode::OK, &wire))
    }

    /// Pins what the query says over what messages say, beside what is pinned of the other kind. What is
    /// pinned counts from now on, and not from what was spent before.
    async fn pin_key(&self, key: &str, inner: &str) -> Result<(), Fault> {
        let draft = read_pin(key, self.query())?;
        let pin = draft.limit().ok_or_else(|| Fault::invalid("there is nothing to pin"))?;
        let gate = &self.app.gate;
        let known = gate.limit_state(inner).await.map_err(|error| self.fault(error))?;
        let before = known.and_then(|known| known.pinned);
        let whole = before.map_or_else(|| pin.clone(), |before| before.under(&pin));
        let uses = gate.uses(&[inner]).await.map_err(|error| self.fault(error))?;
        let rate = uses.iter().flatten().flatten().find(|rule| rule.per.is_some());
        let is_wider = rate.zip(draft.rate).is_none_or(|(rate, pinned)| rate.limit <= pinned);
        // What starts between the two acts is within the lower of both rates, and counts.
        if is_wider {
            self.forget_spent(inner).await?;
        }
        self.put_pin(inner, pin, whole).await?;
        if !is_wider {
            self.forget_spent(inner).await?;
        }
        Ok(())
    }

    /// Pins all of a limit that is to be pinned; makes it of what is new if it is not there.
    async fn put_pin(&self, inner: &str, new: Limit, whole: Limit) -> Result<(), Fault> {
        let (gate, who) = (&self.app.gate, self.who());
        let pinned = match gate.pin(who, inner, Some(whole.clone())).await {
            Err(Error::Invalid(AskError::UnknownLimit { .. })) => {
                let defined = gate.limit_as(who, inner, new).await;
                defined.map_err(|error| self.fault(error))?;
                gate.pin(who, inner, Some(whole)).await
            }
            pinned => pinned,
        };
        pinned.map_err(|error| self.fault(error))
    }

    /// Lets a rate begin anew; of a limit that is not there nothing was spent.
    async fn forget_spent(&self, inner: &str) -> Result<(), Fault> {
        let limit = LimitName::new(inner).map_err(|error| self.fault(error.into()))?;
        match self.app.gate.operate(self.who(), Operation::Reset((limit, None))).await {
            Err(Error::Invalid(AskError::UnknownLimit { .. })) => Ok(()),
            reset => reset.map_err(|error| self.fault(error)),
        }
    }

    /// Takes a pin away. What it said stays, until a message says otherwise.
    async fn unpin_key(&self, key: &str) -> Result<(), Fault> {
        let Unpin { has_parallelism, has_rate } = read_unpin(self.query())?;
        let LimitState { name, defined, pinned, .. } = self.key_limit(key).await?;
        let is_meant = |is_rate: bool| if is_rate { has_rate } else { has_parallelism };
        let gone = pinned.as_ref().and_then(|pinned| part(pinned, is_meant));
        let Some(gone) = gone else { return Ok(()) };
        let left = pinned.as_ref().and_then(|pinned| part(pinned, |kind| !is_meant(kind)));
        let (gate, who) = (&self.app.gate, self.who());
        // First what is to stay: between the two acts it is in force either way.
        let defined = gate.limit_as(who, &name, defined.under(&gone)).await;
        defined.map_err(|error| self.fault(error))?;
        gate.pin(who, &name, left).await.map_err(|error| self.fault(error))
    }

    async fn key_limit(&self, key: &str) -> Result<LimitState, Fault> {
        let missing = || Fault::missing(format!("there is no flow-control key {key}"));
        if check_key(key).is_err() {
            return Err(missing());
        }
        let found = self.app.gate.limit_state(&self.names.inner(key)).await;
        found.map_err(|error| self.fault(error))?.ok_or_else(missing)
    }

    async fn key_wires(&self, keys: Vec<Key>) -> Result<Vec<FlowWire>, Fault> {
        let inner: Vec<&str> = keys.iter().map(|key| &*key.limit.name).collect();
        let uses = self.app.gate.uses(&inner).await.map_err(|error| self.fault(error))?;
        let waiting = self.waiting(keys.iter().map(|key| key.name.clone())).await?;
        let now = self.now().await?;
        // One that is gone by now is left out.
        let found = keys.into_iter().zip(uses).zip(waiting);
        let wires =
            found.filter_map(|((key, uses), waiting)| Some(wire(key, &uses?, waiting, now)));
        Ok(wires.collect())
    }

    /// How many messages wait for each of some keys. All are asked at once, for an answer may wait for
    /// the disk.
    async fn waiting(&self, keys: impl Iterator<Item = String>) -> Result<Vec<u64>, Fault> {
        let (mut looks, mut waiting) = (JoinSet::new(), Vec::new());
        for (at, key) in keys.enumerate() {
            let (gate, queue) = (self.app.gate.clone(), self.names.messages());
            looks.spawn(async move { (at, gate.lane(&queue, &key).await) });
            waiting.push(0);
        }
        while let Some(looked) = looks.join_next().await {
            let (at, lane) = looked.map_err(Fault::unavailable)?;
            let lane = lane.map_err(|error| self.fault(error))?;
            if let (Some(count), Some(lane)) = (waiting.get_mut(at), lane) {
                *count = lane.waiting;
            }
        }
        Ok(waiting)
    }

    /// Messages without a key: they wait for nothing but a place among all that are in flight.
    async fn unbound_wire(&self) -> Result<FlowWire, Fault> {
        let waiting = self.unbound_waiting().await?;
        let limit = self.app.gate.limit_state(PUSHES).await.map_err(|error| self.fault(error))?;
        let uses = self.app.gate.uses(&[PUSHES]).await.map_err(|error| self.fault(error))?;
        let rules = uses.into_iter().flatten().next();
        let (Some(limit), Some(rules)) = (limit, rules) else {
            let (flow_control_key, parallelism_max) = (NO_KEY.to_owned(), PUSHES_MAX);
            return Ok(FlowWire { flow_control_key, parallelism_max, ..FlowWire::default() });
        };
        let key = Key { name: NO_KEY.to_owned(), limit };
        Ok(wire(key, &rules, waiting, self.now().await?))
    }

    async fn unbound_waiting(&self) -> Result<u64, Fault> {
        let (queue, mut after, mut waiting) = (self.names.messages(), UNBOUND.to_owned(), 0);
        loop {
            let page = self.app.gate.lanes(&queue, Some(&after), PAGE_MAX).await;
            let page = page.map_err(|error| self.fault(error))?.unwrap_or_default();
            let unbound = page.iter().filter(|lane| lane.name.starts_with(UNBOUND));
            waiting += unbound.map(|lane| lane.waiting).sum::<u64>();
            match page.last() {
                Some(last) if last.name.starts_with(UNBOUND) => after = last.name.to_string(),
                _ => return Ok(waiting),
            }
        }
    }
}

/// What names are to contain; everything does if nothing is said.
fn searched(query: &str) -> Result<String, Fault> {
    let said = percent::parameters(query).filter(|(_, name, _)| *name == "search").last();
    let Some((_, _, value)) = said else { return Ok(String::new()) };
    let wrong = || Fault::invalid("query parameter search should be UTF-8, percent-encoded");
    percent::decode_parameter(value).ok_or_else(wrong)
}

/// The rules of those kinds, rates or not; `None` if there are none.
fn part(limit: &Limit, is_meant: impl Fn(bool) -> bool) -> Option<Limit> {
    let rules = limit.rules().iter().filter(|rule| is_meant(rule.is_rate()));
    let rules: Vec<_> = rules.cloned().collect();
    (!rules.is_empty()).then(|| Limit::of(rules))
}

/// How many may be in flight, and how many are.
fn slots(rules: &[RuleUse]) -> (u64, u64) {
    let rule = rules.iter().find(|rule| rule.per.is_none());
    rule.map_or((0, 0), |rule| (rule.limit, rule.used))
}

/// How a key stands. Of several rates, the first is told.
fn wire(key: Key, rules: &[RuleUse], waiting: u64, now: Now) -> FlowWire {
    let Key { name, limit } = key;
    let pinned = |is_rate: bool| {
        let part = limit.pinned.as_ref().and_then(|pinned| part(pinned, |kind| kind == is_rate));
        part.is_some()
    };
    let (parallelism_max, parallelism_count) = slots(rules);
    let rate = rules.iter().find_map(|rule| Some((rule, rule.per?)));
    let opened = rate.and_then(|(rule, _)| rule.opened);
    // It opened as long ago by the wall clock as by the one that limits go by.
    let opened = opened.map(|opened| now.wall.minus(now.at.since(opened)));
    FlowWire {
        flow_control_key: name,
        wait_list_size: waiting,
        parallelism_max,
        parallelism_count,
        rate_max: rate.map_or(0, |(rule, _)| rule.limit),
        rate_count: rate.map_or(0, |(rule, _)| rule.used),
        rate_period: rate.map_or(0, |(_, per)| per.as_secs_ceil()),
        rate_period_start: opened.map_or(0, |opened| opened.as_nanos() / NANOS_PER_SECOND),
        is_paused: limit.is_paused,
        is_pinned_parallelism: pinned(false),
        is_pinned_rate: pinned(true),
    }
}
