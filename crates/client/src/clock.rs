//! The one place where the client looks at the time and lets it pass.

use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::Span;

/// The first pause after a failure; each is up to twice as long as the one before.
const FIRST: Duration = Duration::from_millis(50);

/// The present, as the runtime has it.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets time pass.
pub(crate) async fn rest(span: impl Into<Duration>) {
    tokio::time::sleep(span.into()).await;
}

/// Waits until an instant.
pub(crate) async fn rest_until(instant: Instant) {
    tokio::time::sleep_until(instant).await;
}

/// How long to leave a server alone that did not answer: longer each time, and never as long as others
/// do, so that they do not come back together.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn up_to(most: Span) -> Self {
        Self { next: FIRST, most: most.into() }
    }

    /// Between half of the pause and all of it.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.most);
        let part = u32::from(random::<1>()[0]);
        pause / 2 + pause / 2 * part / 256
    }
}

/// Bytes that nobody can guess. A system without any gives zeros: nothing hangs on them but that requests
/// can be told apart.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::warn!(%error, "the system gives no random bytes");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_bound() {
        let mut backoff = Backoff::up_to(Span::from_millis(300));
        let pauses: Vec<_> = (0..6).map(|_| backoff.next().as_millis()).collect();
        for (pause, most) in pauses.iter().zip([50, 100, 200, 300, 300, 300]) {
            assert!((most / 2..=most).contains(pause), "{pauses:?}");
        }
    }
}
