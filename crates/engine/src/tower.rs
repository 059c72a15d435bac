//! A `tower` layer that throttles any service or client by key.
//!
//! Each request waits its turn at the limit's meter for its key; slots are held until the answer.
//!
//! ```
//! use tollgate_core::Limit;
//! use tollgate_engine::{Limiter, tower::ThrottleLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let limiter = Limiter::default();
//! limiter.define("upstream", Limit::per_second(50))?;
//! let by_host = |request: &String| request.split('/').next().map(str::to_owned);
//!
//! let client = ServiceBuilder::new()
//!     .layer(ThrottleLayer::new(limiter, "upstream", by_host))
//!     .service(service_fn(|request: String| async move { Ok::<_, std::io::Error>(request.len()) }));
//! assert_eq!(client.oneshot("example.com/a".to_owned()).await.unwrap(), 13);
//! # Ok::<(), tollgate_engine::Error>(())
//! # }).unwrap();
//! ```

use crate::ask::{global, toll};
use crate::error::Error;
use crate::limiter::Limiter;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Wraps services so that each request waits its turn at a limit, by a key read from it.
#[derive(Debug, Clone)]
pub struct ThrottleLayer<K> {
    limiter: Limiter,
    limit: Arc<str>,
    key: K,
}

impl<K> ThrottleLayer<K> {
    /// Throttles by the partition that `key` reads from a request; `None` is the global meter.
    pub fn new(limiter: Limiter, limit: &str, key: K) -> Self {
        Self { limiter, limit: limit.into(), key }
    }
}

impl<S, K: Clone> Layer<S> for ThrottleLayer<K> {
    type Service = Throttle<S, K>;

    fn layer(&self, service: S) -> Throttle<S, K> {
        Throttle { service, layer: self.clone() }
    }
}

/// A service behind a limit.
#[derive(Debug, Clone)]
pub struct Throttle<S, K> {
    service: S,
    layer: ThrottleLayer<K>,
}

/// Why a throttled request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThrottleError<E> {
    /// The limit did not let it pass: the request was not sent.
    #[error(transparent)]
    Limit(Error),
    /// The service failed.
    #[error(transparent)]
    Service(E),
}

impl<S, K, R> Service<R> for Throttle<S, K>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    K: Fn(&R) -> Option<String>,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = ThrottleError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context).map_err(ThrottleError::Service)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let ThrottleLayer { limiter, limit, key } = &self.layer;
        let (limiter, limit, key) = (limiter.clone(), limit.clone(), key(&request));
        // The one that was polled ready goes along; the clone that stays is polled anew.
        let fresh = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, fresh);
        Box::pin(async move {
            let toll = match &key {
                Some(key) => toll(&*limit, key),
                None => global(&*limit),
            };
            let pass = limiter.acquire(toll).await.map_err(ThrottleError::Limit)?;
            let answer = service.call(request).await.map_err(ThrottleError::Service);
            drop(pass);
            answer
        })
    }
}
