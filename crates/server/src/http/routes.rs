//! The one table of routes: the router is made from it, and a test holds `openapi.json` to it.

use super::guard::Door;
use super::{
    App, calls, claim, consume, dead, enqueue, events, guard, history, lanes, limits, meters,
    openapi, problem, queues, receipts, schedules, settle,
};
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
    handler: MethodRouter<Arc<App>>,
}

/// All that can be asked.
pub fn routes() -> Vec<Route> {
    let route = |method, path, handler| Route { method, path, handler };
    vec![
        route("GET", "/v1/limits", get(limits::list)),
        route("PUT", "/v1/limits/{name}", put(limits::define)),
        route("GET", "/v1/limits/{name}", get(limits::read)),
        route("DELETE", "/v1/limits/{name}", delete(limits::remove)),
        route("PUT", "/v1/limits/{name}/pin", put(limits::pin)),
        route("DELETE", "/v1/limits/{name}/pin", delete(limits::unpin)),
        route("PUT", "/v1/limits/{name}/partitions/{partition}", put(limits::define_partition)),
        route(
            "DELETE",
            "/v1/limits/{name}/partitions/{partition}",
            delete(limits::remove_partition),
        ),
        route("GET", "/v1/meters/{name}", get(meters::list)),
        route("POST", "/v1/meters/{name}/close", post(meters::close_global)),
        route("POST", "/v1/meters/{name}/reopen", post(meters::reopen_global)),
        route("POST", "/v1/meters/{name}/reset", post(meters::reset_global)),
        route("GET", "/v1/meters/{name}/{partition}", get(meters::read)),
        route("POST", "/v1/meters/{name}/{partition}/close", post(meters::close)),
        route("POST", "/v1/meters/{name}/{partition}/reopen", post(meters::reopen)),
        route("POST", "/v1/meters/{name}/{partition}/reset", post(meters::reset)),
        route("POST", "/v1/limits/{name}/pause", post(queues::pause_limit)),
        route("POST", "/v1/limits/{name}/resume", post(queues::resume_limit)),
        route("GET", "/v1/queues", get(queues::list)),
        route("PUT", "/v1/queues/{queue}", put(queues::define)),
        route("GET", "/v1/queues/{queue}", get(queues::read)),
        route("DELETE", "/v1/queues/{queue}", delete(queues::remove)),
        route("POST", "/v1/queues/{queue}/pause", post(queues::pause)),
        route("POST", "/v1/queues/{queue}/resume", post(queues::resume)),
        route("GET", "/v1/queues/{queue}/lanes", get(lanes::list)),
        route("PUT", "/v1/queues/{queue}/lanes/{lane}", put(lanes::weigh)),
        route("POST", "/v1/queues/{queue}/lanes/{lane}/pause", post(lanes::pause)),
        route("POST", "/v1/queues/{queue}/lanes/{lane}/resume", post(lanes::resume)),
        route("POST", "/v1/queues/{queue}/calls", post(enqueue::enqueue)),
        route("GET", "/v1/queues/{queue}/calls", get(calls::list)),
        route("POST", "/v1/queues/{queue}/claim", post(claim::claim)),
        route("POST", "/v1/settle", post(settle::settle)),
        route("POST", "/v1/leases/renew", post(settle::renew)),
        route("GET", "/v1/calls/{id}", get(calls::read)),
        route("DELETE", "/v1/calls/{id}", delete(calls::cancel)),
        route("GET", "/v1/dead", get(dead::list)),
        route("POST", "/v1/dead/revive", post(dead::revive)),
        route("POST", "/v1/dead/delete", post(dead::delete)),
        route("GET", "/v1/schedules", get(schedules::list)),
        route("PUT", "/v1/schedules/{name}", put(schedules::define)),
        route("GET", "/v1/schedules/{name}", get(schedules::read)),
        route("DELETE", "/v1/schedules/{name}", delete(schedules::remove)),
        route("POST", "/v1/schedules/{name}/pause", post(schedules::pause)),
        route("POST", "/v1/schedules/{name}/resume", post(schedules::resume)),
        route("GET", "/v1/events", get(events::follow)),
        route("GET", "/v1/history", get(history::search)),
        route("POST", "/v1/consume", post(consume::consume)),
        route("POST", "/v1/receipts/{receipt}/settle", post(receipts::settle)),
        route("POST", "/v1/receipts/{receipt}/cancel", post(receipts::cancel)),
        route("POST", "/v1/receipts/{receipt}/renew", post(receipts::renew)),
        route("GET", guard::HEALTH, get(openapi::health)),
        route("GET", "/openapi.json", get(openapi::read)),
    ]
}

/// The way to every route.
pub(crate) fn door(app: Arc<App>) -> Door {
    let table = routes().into_iter();
    let router = table.fold(Router::new(), |router, route| router.route(route.path, route.handler));
    // A partition may be called like an action: reading it is a GET, acting a POST.
    let router = meters::ACTIONS.into_iter().fold(router, |router, action| {
        let read = get(move |app, path| meters::read_named(app, path, action));
        router.route(&format!("/v1/meters/{{name}}/{action}"), read)
    });
    let router = router
        .fallback(problem::unknown_route)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(app.clone());
    Door::new(app, router)
}
