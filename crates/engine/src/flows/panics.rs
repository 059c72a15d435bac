//! What a handler panicked with, where that is said of its run.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project_lite::pin_project! {
    /// Gives what a future gives, or what it panicked with.
    #[project = Stage]
    pub(super) enum UnlessItPanics<F> {
        Made { #[pin] future: F },
        Panicked { text: String },
    }
}

/// What a future gives, or what it panicked with, if only when it was made.
pub(super) fn unless_it_panics<F: Future>(make: impl FnOnce() -> F) -> UnlessItPanics<F> {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(future) => UnlessItPanics::Made { future },
        Err(panic) => UnlessItPanics::Panicked { text: said(&*panic) },
    }
}

impl<F: Future> Future for UnlessItPanics<F> {
    type Output = Result<F::Output, String>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Stage::Made { future } => {
                match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
                    Ok(polled) => polled.map(Ok),
                    Err(panic) => Poll::Ready(Err(said(&*panic))),
                }
            }
            Stage::Panicked { text } => Poll::Ready(Err(std::mem::take(text))),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or_default())
}
