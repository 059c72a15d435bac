//! The edge: Tollgate's HTTP server and its command.
//!
//! ```
//! use tollgate::Tollgate;
//! use tollgate_server::{Server, Settings};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let settings = Settings::new(([127, 0, 0, 1], 0).into());
//! let server = Server::bind(Tollgate::memory(), settings).await?;
//! println!("http://{}", server.address());
//! server.serve(async { /* until this ends */ }).await;
//! # Ok::<(), tollgate_server::StartError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub mod cli;
mod clock;
mod config;
mod console;
mod handed_out;
mod http;
mod lease;
mod qstash;
mod receipt;
mod seal;
mod server;
mod shutdown;
mod threads;
mod tls;
mod token;
mod traces;

pub use access::{
    HashError, Namespace, NamespaceError, Role, RoleError, Roles, TokenHash, TokenSpec, TokensError,
};
pub use http::metrics::{Metric, metrics};
pub use http::openapi::OPENAPI;
pub use http::problem::kinds::codes;
pub use http::routes::{Route, routes};
pub use server::{Reloader, Server, Settings, StartError};
pub use threads::runtime_beside;
pub use tls::{Tls, TlsError};
pub use token::{Token, TokenError};
#[cfg(feature = "otel")]
pub use traces::{TraceSettings, TracesError};
