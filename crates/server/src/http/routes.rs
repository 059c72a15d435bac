//! The one table of routes: the router is made from it, and a test holds `openapi.json` to it.

use super::guard::Door;
use super::{App, consume, guard, limits, meters, openapi, problem, receipts};
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
