//! What a request asks for, by its method and its path as it came: destinations and keys stand there
//! unencoded, with any slashes that they have.

use super::error::Fault;
use super::percent;
use crate::access::Role;
use axum::http::{Method, StatusCode};

/// Where the API is.
pub(super) const ROOT: &str = "/v2/";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// With the rest of the path, as it came.
    Publish(&'a str),
    /// With the queue and where to, as they came.
    Enqueue(&'a str),
    Batch,
    Message(String),
    CancelMessage(String),
    CancelMessages,
    Queues,
    DefineQueue,
    Queue(String),
    RemoveQueue(String),
    PauseQueue(String),
    ResumeQueue(String),
    Schedules,
    /// With where to, as it came.
    MakeSchedule(&'a str),
    Schedule(String),
    RemoveSchedule(String),
    PauseSchedule(String),
    ResumeSchedule(String),
    Groups,
    Group(String),
    RemoveGroup(String),
    /// What all messages to a group say unless they say otherwise.
    PatchGroup(String),
    AddEndpoints(String),
    RemoveEndpoints(String),
    /// The log under its old name, and under its new one.
    Events,
    Logs,
    Dead,
    DeadMessage(String),
    RemoveDead,
    RemoveDeadMessage(String),
    RetryDead,
    RetryDeadMessage(String),
    FlowKeys,
    FlowKey(String),
    FlowAct(String, FlowAct),
    GlobalParallelism,
    SigningKeys,
    RotateSigningKeys,
}

/// What can be done to a flow-control key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowAct {
    Pause,
    Resume,
    Pin,
    Unpin,
    ResetRate,
}

impl Route<'_> {
    /// What it takes to ask for it.
    pub(super) fn role(&self) -> Role {
        match self {
            Self::Publish(_) | Self::Enqueue(_) | Self::Batch => Role::Enqueue,
            Self::Message(_)
            | Self::Queues
            | Self::Queue(_)
            | Self::Schedules
            | Self::Schedule(_)
            | Self::Groups
            | Self::Group(_)
            | Self::Events
            | Self::Logs
            | Self::Dead
            | Self::DeadMessage(_)
            | Self::FlowKeys
            | Self::FlowKey(_)
            | Self::GlobalParallelism => Role::Read,
            // Who knows the signing keys can pass for this server.
            _ => Role::Admin,
        }
    }
}

/// What a request asks for.
pub(super) fn find<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, Fault> {
    let rest = path.strip_prefix(ROOT).unwrap_or_default();
    let (head, tail) = match rest.split_once('/') {
        Some((head, tail)) => (head, Some(tail)),
        None => (rest, None),
    };
    let tail = tail.filter(|tail| !tail.is_empty());
    let found = match head {
        "publish" => of_publish(method, tail),
        "enqueue" => of_enqueue(method, tail),
        "batch" if tail.is_none() => only(method, &Method::POST, Route::Batch),
        "messages" => of_messages(method, tail)?,
        "queues" => of_queues(method, tail)?,
        "schedules" => of_schedules(method, tail)?,
        "topics" => of_groups(method, tail)?,
        "events" if tail.is_none() => only(method, &Method::GET, Route::Events),
        "logs" if tail.is_none() => only(method, &Method::GET, Route::Logs),
        "dlq" => of_dead(method, tail)?,
        "flowControl" => of_flow(method, tail)?,
        "globalParallelism" if tail.is_none() => {
            only(method, &Method::GET, Route::GlobalParallelism)
        }
        "keys" => of_keys(method, tail),
        _ => Found::Nothing,
    };
    match found {
        Found::Route(route) => Ok(route),
        Found::OtherMethod => {
            let why = format!("{method} is not understood at {path}: see docs/qstash.md");
            Err(Fault::new(StatusCode::METHOD_NOT_ALLOWED, why))
        }
        Found::Nothing => Err(Fault::missing(format!("there is nothing at {path}"))),
    }
}

enum Found<'a> {
    Route(Route<'a>),
    /// There is something, but not by this method.
    OtherMethod,
    Nothing,
}

impl<'a> From<Option<Route<'a>>> for Found<'a> {
    fn from(route: Option<Route<'a>>) -> Self {
        route.map_or(Self::OtherMethod, Self::Route)
    }
}

fn only<'a>(method: &Method, wanted: &Method, route: Route<'a>) -> Found<'a> {
    (method == wanted).then_some(route).into()
}

fn of_publish<'a>(method: &Method, tail: Option<&'a str>) -> Found<'a> {
    only(method, &Method::POST, Route::Publish(tail.unwrap_or_default()))
}

fn of_enqueue<'a>(method: &Method, tail: Option<&'a str>) -> Found<'a> {
    only(method, &Method::POST, Route::Enqueue(tail.unwrap_or_default()))
}

fn of_messages<'a>(method: &Method, tail: Option<&str>) -> Result<Found<'a>, Fault> {
    let route = match (method.as_str(), tail) {
        ("DELETE", None) => Some(Route::CancelMessages),
        ("GET", Some(id)) => Some(Route::Message(name(id)?)),
        ("DELETE", Some(id)) => Some(Route::CancelMessage(name(id)?)),
        _ => None,
    };
    Ok(route.into())
}

fn of_queues<'a>(method: &Method, tail: Option<&str>) -> Result<Found<'a>, Fault> {
    let route = match (method.as_str(), tail, tail.and_then(action)) {
        ("GET", None, _) => Some(Route::Queues),
        ("POST", None, _) => Some(Route::DefineQueue),
        ("POST", _, Some((queue, "pause"))) => Some(Route::PauseQueue(name(queue)?)),
        ("POST", _, Some((queue, "resume"))) => Some(Route::ResumeQueue(name(queue)?)),
        ("GET", Some(queue), _) => Some(Route::Queue(name(queue)?)),
        ("DELETE", Some(queue), _) => Some(Route::RemoveQueue(name(queue)?)),
        _ => None,
    };
    Ok(route.into())
}

fn of_schedules<'a>(method: &Method, tail: Option<&'a str>) -> Result<Found<'a>, Fault> {
    // The id of a schedule has no slash, and the address of a destination has some: what is paused is
    // no destination that ends like that.
    let acts = tail.and_then(action).filter(|(id, _)| !id.contains(['/', ':', '%']));
    let route = match (method.as_str(), tail, acts) {
        ("GET", None, _) => Some(Route::Schedules),
        ("PATCH" | "POST", _, Some((id, "pause"))) => Some(Route::PauseSchedule(name(id)?)),
        ("PATCH" | "POST", _, Some((id, "resume"))) => Some(Route::ResumeSchedule(name(id)?)),
        ("POST", tail, _) => Some(Route::MakeSchedule(tail.unwrap_or_default())),
        ("GET", Some(id), _) => Some(Route::Schedule(name(id)?)),
        ("DELETE", Some(id), _) => Some(Route::RemoveSchedule(name(id)?)),
        _ => None,
    };
    Ok(route.into())
}

fn of_groups<'a>(method: &Method, tail: Option<&str>) -> Result<Found<'a>, Fault> {
    let route = match (method.as_str(), tail, tail.and_then(action)) {
        ("GET", None, _) => Some(Route::Groups),
        ("POST", _, Some((group, "endpoints"))) => Some(Route::AddEndpoints(name(group)?)),
        ("DELETE", _, Some((group, "endpoints"))) => Some(Route::RemoveEndpoints(name(group)?)),
        ("GET", Some(group), _) => Some(Route::Group(name(group)?)),
        ("DELETE", Some(group), _) => Some(Route::RemoveGroup(name(group)?)),
        ("PATCH", Some(group), _) => Some(Route::PatchGroup(name(group)?)),
        _ => None,
    };
    Ok(route.into())
}

fn of_dead<'a>(method: &Method, tail: Option<&str>) -> Result<Found<'a>, Fault> {
    let retried = tail.and_then(|tail| tail.strip_prefix("retry/"));
    let route = match (method.as_str(), tail, retried) {
        ("GET", None, _) => Some(Route::Dead),
        ("DELETE", None, _) => Some(Route::RemoveDead),
        ("POST", Some("retry"), _) => Some(Route::RetryDead),
        ("POST", _, Some(id)) => Some(Route::RetryDeadMessage(name(id)?)),
        ("GET", Some(id), _) => Some(Route::DeadMessage(name(id)?)),
        ("DELETE", Some(id), _) => Some(Route::RemoveDeadMessage(name(id)?)),
        _ => None,
    };
    Ok(route.into())
}

fn of_flow<'a>(method: &Method, tail: Option<&str>) -> Result<Found<'a>, Fault> {
    let act = |word| match word {
        "pause" => Some(FlowAct::Pause),
        "resume" => Some(FlowAct::Resume),
        "pin" => Some(FlowAct::Pin),
        "unpin" => Some(FlowAct::Unpin),
        "resetRate" | "reset" => Some(FlowAct::ResetRate),
        _ => None,
    };
    let route = match (method.as_str(), tail) {
        ("GET", None) => Some(Route::FlowKeys),
        ("GET", Some(key)) => Some(Route::FlowKey(name(key)?)),
        ("POST", Some(tail)) => match action(tail).map(|(key, word)| (key, act(word))) {
            Some((key, Some(act))) => Some(Route::FlowAct(name(key)?, act)),
            _ if act(tail).is_some() => {
                return Err(Fault::invalid("a flow-control key is missing"));
            }
            _ => None,
        },
        _ => None,
    };
    Ok(route.into())
}

fn of_keys<'a>(method: &Method, tail: Option<&str>) -> Found<'a> {
    match tail {
        None => only(method, &Method::GET, Route::SigningKeys),
        Some("rotate") => only(method, &Method::POST, Route::RotateSigningKeys),
        Some(_) => Found::Nothing,
    }
}

/// What stands before the last segment, and that.
fn action(tail: &str) -> Option<(&str, &str)> {
    tail.rsplit_once('/').filter(|(before, _)| !before.is_empty())
}

fn name(text: &str) -> Result<String, Fault> {
    let decoded = percent::decode(text);
    decoded.ok_or_else(|| Fault::invalid("the request's target is not UTF-8: encode it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(request: &str) -> Result<Route<'_>, u16> {
        let (method, path) = request.split_once(' ').unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        find(&method, path).map_err(|fault| fault.status().as_u16())
    }

    fn owned(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn destinations_are_left_as_they_came() {
        let publish = Route::Publish("https://a.example:8443/b%2Fc//d");
        assert_eq!(found("POST /v2/publish/https://a.example:8443/b%2Fc//d"), Ok(publish));
        assert_eq!(found("POST /v2/publish/"), Ok(Route::Publish("")));
        assert_eq!(found("POST /v2/enqueue/q/http://a/"), Ok(Route::Enqueue("q/http://a/")));
        let schedule = Route::MakeSchedule("https://a.example/pause");
        assert_eq!(found("POST /v2/schedules/https://a.example/pause"), Ok(schedule));
        let encoded = Route::MakeSchedule("https%3A%2F%2Fa/pause");
        assert_eq!(found("POST /v2/schedules/https%3A%2F%2Fa/pause"), Ok(encoded));
    }

    #[test]
    fn a_key_is_all_that_stands_before_its_action() {
        let key = |key: &str, act| Ok(Route::FlowAct(owned(key), act));
        assert_eq!(found("POST /v2/flowControl/a/b/c/pin"), key("a/b/c", FlowAct::Pin));
        assert_eq!(found("POST /v2/flowControl/a%20b/resetRate"), key("a b", FlowAct::ResetRate));
        assert_eq!(found("POST /v2/flowControl/50%/pause"), key("50%", FlowAct::Pause));
        assert_eq!(found("POST /v2/flowControl/pause"), Err(400));
        assert_eq!(found("GET /v2/flowControl/a/pause"), Ok(Route::FlowKey(owned("a/pause"))));
        assert_eq!(found("GET /v2/flowControl"), Ok(Route::FlowKeys));
        assert_eq!(found("GET /v2/flowControl/%ff"), Err(400));
    }

    #[test]
    fn both_ways_to_pause_a_schedule_are_understood() {
        for method in ["PATCH", "POST"] {
            let request = format!("{method} /v2/schedules/scd_1/pause");
            assert_eq!(found(&request), Ok(Route::PauseSchedule(owned("scd_1"))));
        }
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_there_otherwise() {
        for request in ["GET /v2/", "GET /v2/nothing", "GET /v2/keys/other", "GET /v2/batch/x"] {
            assert_eq!(found(request), Err(404), "{request}");
        }
        for request in ["GET /v2/publish/x", "PUT /v2/queues", "GET /v2/messages", "PUT /v2/dlq"] {
            assert_eq!(found(request), Err(405), "{request}");
        }
        assert_eq!(found("POST /v2/dlq/retry"), Ok(Route::RetryDead));
        assert_eq!(found("POST /v2/dlq/retry/1-2"), Ok(Route::RetryDeadMessage(owned("1-2"))));
        assert_eq!(found("DELETE /v2/topics/g/endpoints"), Ok(Route::RemoveEndpoints(owned("g"))));
    }

    #[test]
    fn a_token_that_reads_changes_nothing() {
        for (request, role) in [
            ("GET /v2/keys", Role::Admin),
            ("GET /v2/logs", Role::Read),
            ("POST /v2/publish/x", Role::Enqueue),
            ("POST /v2/batch", Role::Enqueue),
            ("DELETE /v2/messages/1", Role::Admin),
            ("POST /v2/keys/rotate", Role::Admin),
            ("POST /v2/flowControl/k/pause", Role::Admin),
        ] {
            assert_eq!(found(request).unwrap().role(), role, "{request}");
        }
    }
}
