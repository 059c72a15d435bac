//! The one table of routes: the router is made from it, and a test holds `openapi.json` to it.

use super::guard::Door;
use super::roles::RoleTable;
use super::{
    App, audit, calls, claim, consume, dead, enqueue, events, forecast, health, history, lanes,
    limits, meters, metrics, openapi, overview, problem, queues, receipts, runs, schedules, series,
    settle, workflows,
};
use crate::access::Role::{self, Admin, Enqueue, Read, Work};
use crate::qstash::Face;
use axum::Router;
use axum::routing::{MethodRouter, delete, get, post, put};
use std::sync::Arc;

/// One thing that can be asked of the server.
#[derive(Debug)]
pub struct Route {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// What it takes to ask; `None` if no token is wanted.
    pub role: Option<Role>,
    handler: MethodRouter<Arc<App>>,
}

/// All that can be asked.
pub fn routes() -> Vec<Route> {
    let mut all = vec![
        route(Read, "GET", "/v1/limits", get(limits::list)),
        route(Admin, "PUT", "/v1/limits/{name}", put(limits::define)),
        route(Read, "GET", "/v1/limits/{name}", get(limits::read)),
        route(Admin, "DELETE", "/v1/limits/{name}", delete(limits::remove)),
        route(Admin, "PUT", "/v1/limits/{name}/pin", put(limits::pin)),
        route(Admin, "DELETE", "/v1/limits/{name}/pin", delete(limits::unpin)),
        route(
            Admin,
            "PUT",
            "/v1/limits/{name}/partitions/{partition}",
            put(limits::define_partition),
        ),
        route(
            Admin,
            "DELETE",
            "/v1/limits/{name}/partitions/{partition}",
            delete(limits::remove_partition),
        ),
        route(Read, "GET", "/v1/meters/{name}", get(meters::list)),
        route(Admin, "POST", "/v1/meters/{name}/close", post(meters::close_global)),
        route(Admin, "POST", "/v1/meters/{name}/reopen", post(meters::reopen_global)),
        route(Admin, "POST", "/v1/meters/{name}/reset", post(meters::reset_global)),
        route(Read, "GET", "/v1/meters/{name}/{partition}", get(meters::read)),
        route(Admin, "POST", "/v1/meters/{name}/{partition}/close", post(meters::close)),
        route(Admin, "POST", "/v1/meters/{name}/{partition}/reopen", post(meters::reopen)),
        route(Admin, "POST", "/v1/meters/{name}/{partition}/reset", post(meters::reset)),
        route(Admin, "POST", "/v1/limits/{name}/pause", post(queues::pause_limit)),
        route(Admin, "POST", "/v1/limits/{name}/resume", post(queues::resume_limit)),
        route(Read, "GET", "/v1/queues", get(queues::list)),
        route(Admin, "PUT", "/v1/queues/{queue}", put(queues::define)),
        route(Read, "GET", "/v1/queues/{queue}", get(queues::read)),
        route(Admin, "DELETE", "/v1/queues/{queue}", delete(queues::remove)),
        route(Admin, "POST", "/v1/queues/{queue}/pause", post(queues::pause)),
        route(Admin, "POST", "/v1/queues/{queue}/resume", post(queues::resume)),
        route(Read, "GET", "/v1/queues/{queue}/lanes", get(lanes::list)),
        route(Admin, "PUT", "/v1/queues/{queue}/lanes/{lane}", put(lanes::weigh)),
        route(Admin, "POST", "/v1/queues/{queue}/lanes/{lane}/pause", post(lanes::pause)),
        route(Admin, "POST", "/v1/queues/{queue}/lanes/{lane}/resume", post(lanes::resume)),
        route(Enqueue, "POST", "/v1/queues/{queue}/calls", post(enqueue::enqueue)),
        route(Read, "GET", "/v1/queues/{queue}/calls", get(calls::list)),
        route(Work, "POST", "/v1/queues/{queue}/claim", post(claim::claim)),
        route(Work, "POST", "/v1/settle", post(settle::settle)),
        route(Work, "POST", "/v1/leases/renew", post(settle::renew)),
        route(Read, "GET", "/v1/calls/{id}", get(calls::read)),
        route(Admin, "DELETE", "/v1/calls/{id}", delete(calls::cancel)),
        route(Read, "GET", "/v1/dead", get(dead::list)),
        route(Admin, "POST", "/v1/dead/revive", post(dead::revive)),
        route(Admin, "POST", "/v1/dead/delete", post(dead::delete)),
        route(Read, "GET", "/v1/schedules", get(schedules::list)),
        route(Admin, "PUT", "/v1/schedules/{name}", put(schedules::define)),
        route(Read, "GET", "/v1/schedules/{name}", get(schedules::read)),
        route(Admin, "DELETE", "/v1/schedules/{name}", delete(schedules::remove)),
        route(Admin, "POST", "/v1/schedules/{name}/pause", post(schedules::pause)),
        route(Admin, "POST", "/v1/schedules/{name}/resume", post(schedules::resume)),
        route(Read, "GET", "/v1/events", get(events::follow)),
        route(Read, "GET", "/v1/history", get(history::search)),
        route(Work, "POST", "/v1/consume", post(consume::consume)),
        route(Work, "POST", "/v1/receipts/{receipt}/settle", post(receipts::settle)),
        route(Work, "POST", "/v1/receipts/{receipt}/cancel", post(receipts::cancel)),
        route(Work, "POST", "/v1/receipts/{receipt}/renew", post(receipts::renew)),
    ];
    all.extend(of_flows());
    all.extend(of_server());
    all
}

/// Those of the server itself.
fn of_server() -> [Route; 8] {
    let open = |method, path, handler| Route { method, path, role: None, handler };
    [
        route(Read, "POST", "/v1/forecast", post(forecast::ask)),
        route(Read, "GET", "/v1/audit", get(audit::list)),
        route(Read, "GET", "/v1/overview", get(overview::read)),
        route(Read, "GET", "/v1/series", get(series::read)),
        route(Read, "GET", "/metrics", get(metrics::read)),
        open("GET", health::HEALTH, get(health::alive)),
        open("GET", health::READY, get(health::ready)),
        route(Read, "GET", "/openapi.json", get(openapi::read)),
    ]
}

/// Those of workflows and runs.
fn of_flows() -> [Route; 13] {
    [
        route(Read, "GET", "/v1/workflows", get(workflows::list)),
        route(Admin, "PUT", "/v1/workflows/{name}", put(workflows::define)),
        route(Read, "GET", "/v1/workflows/{name}", get(workflows::read)),
        route(Read, "GET", "/v1/workflows/{name}/picture", get(workflows::picture)),
        route(Enqueue, "POST", "/v1/workflows/{name}/runs", post(workflows::start)),
        route(Read, "GET", "/v1/runs", get(runs::list)),
        route(Read, "GET", "/v1/runs/{run}", get(runs::read)),
        route(Read, "GET", "/v1/runs/{run}/timeline", get(runs::timeline)),
        route(Read, "GET", "/v1/runs/{run}/picture", get(runs::picture)),
        route(Enqueue, "GET", "/v1/runs/{run}/result", get(runs::result)),
        route(Enqueue, "POST", "/v1/runs/{run}/signals", post(runs::signal)),
        route(Admin, "POST", "/v1/runs/{run}/cancel", post(runs::cancel)),
        route(Admin, "POST", "/v1/runs/{run}/rerun", post(runs::rerun)),
    ]
}

fn route(
    role: Role,
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<Arc<App>>,
) -> Route {
    Route { method, path, role: Some(role), handler }
}

/// The way to every route.
pub(crate) fn door(app: Arc<App>, face: Face) -> Door {
    let table = routes();
    let roles = RoleTable::new(&table);
    let table = table.into_iter();
    let router = table.fold(Router::new(), |router, route| router.route(route.path, route.handler));
    // A partition may be called like an action: reading it is a GET, acting a POST.
    let router = meters::ACTIONS.into_iter().fold(router, |router, action| {
        let read = get(move |app, caller, path| meters::read_named(app, caller, path, action));
        router.route(&format!("/v1/meters/{{name}}/{action}"), read)
    });
    let router = router
        .fallback(problem::unknown_route)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(app.clone());
    Door::new(app, roles, router, face)
}
