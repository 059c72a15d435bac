//! A machine that stands still, because its host gives its processors to others: all that is under way arrives late
//! then, whoever sent it. A machine that is merely busy does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often it is looked whether the machine goes on.
const TICK: Duration = Duration::from_millis(5);
/// It stood still if nothing was done for so long: half of what arrivals may be late in these tests.
const STILL: Duration = Duration::from_millis(100);
/// How often something is seen at most. What is seen last counts in any case.
const TIMES_MAX: usize = 4;

/// What is seen while the machine goes on: if it stood still meanwhile, it is seen again, whatever came of it.
pub(super) async fn seen_without<T>(mut see: impl AsyncFnMut() -> T) -> T {
    for _ in 1..TIMES_MAX {
        let watch = Watch::begin();
        let seen = see().await;
        let longest = watch.longest();
        if longest < STILL {
            return seen;
        }
        eprintln!("the machine stood still for {longest:?}: once more");
    }
    see().await
}

/// A thread that notices for how long it did not run.
struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "it is the machine's time that is looked at")]
    fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = thread::spawn(move || {
            let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                thread::park_timeout(TICK);
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            longest
        });
        Self { is_over, thread }
    }

    fn longest(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
