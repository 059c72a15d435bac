//! The description of the API, as it is served and as tests compare it with the routes.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// OpenAPI 3.1, in JSON.
pub const OPENAPI: &str = include_str!("openapi.json");

pub(super) async fn read() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}
