//! What is asked of a limit: a little, then more than it lets pass, then nothing for a while, then too much
//! again.

use std::ops::Range;
use tollgate::{Limit, ManualClock, Span, Tollgate, global};

/// How long a scene is, until when calls come one by one, and when nobody asks, in milliseconds.
pub(super) const LENGTH: u64 = 24_000;
pub(super) const ONE_BY_ONE: u64 = 2_000;
pub(super) const IDLE: Range<u64> = 10_000..16_000;

/// How often everyone asks who is waiting, and how far apart calls are that come one by one.
const STEP: u64 = 20;
const APART: u64 = 200;
/// How long each call takes, for limits of calls at a time.
const CALL: u64 = 1_000;

/// A rule under load.
pub(super) struct Scene {
    /// The picture's file.
    pub(super) name: &'static str,
    /// The rule in words.
    pub(super) title: &'static str,
    limit: fn() -> Limit,
}

/// The pictures that there are.
pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "token-bucket",
        title: "token bucket: 5 a second, burst 10",
        limit: || Limit::per_second(5).burst(10),
    },
    Scene {
        name: "token-bucket-even",
        title: "token bucket: 5 a second, burst 1",
        limit: || Limit::per_second(5).burst(1),
    },
    Scene {
        name: "fixed-window",
        title: "fixed window: 20 in 4 seconds, opens at the first call",
        limit: || Limit::fixed_window(20, Span::from_secs(4)),
    },
    Scene {
        name: "calendar-window",
        title: "fixed window on the calendar: 20 in 4 seconds",
        // The clock begins two seconds into a window.
        limit: || Limit::fixed_window(20, Span::from_secs(4)).on_calendar("UTC"),
    },
    Scene {
        name: "sliding-window",
        title: "sliding window: 20 in any 4 seconds",
        limit: || Limit::sliding_window(20, Span::from_secs(4)),
    },
    Scene {
        name: "guard",
        title: "sliding window with a guard: 20 in any 4 seconds, guard 1 second",
        limit: || Limit::sliding_window(20, Span::from_secs(4)).guard(Span::from_secs(1)),
    },
    Scene {
        name: "concurrency",
        title: "concurrency: 5 at a time, each call takes a second",
        limit: || Limit::concurrency(5),
    },
    Scene {
        name: "two-rules",
        title: "two rules under one name: 5 a second, and 12 in any 4 seconds",
        limit: || Limit::per_second(5).and(Limit::sliding_window(12, Span::from_secs(4))),
    },
];

/// The instants at which calls were admitted, in milliseconds from the beginning.
pub(super) async fn play(scene: &Scene) -> Vec<u64> {
    let clock = ManualClock::new();
    clock.advance(Span::from_secs(2));
    let gate = Tollgate::builder().clock(clock.clone()).memory();
    gate.limit("upstream", (scene.limit)()).await.unwrap();
    let (mut admitted, mut under_way) = (Vec::new(), Vec::new());
    for now in (0..LENGTH).step_by(usize::try_from(STEP).unwrap()) {
        under_way.retain(|(ends, _)| *ends > now);
        for _ in 0..asks_at(now) {
            let Ok(pass) = gate.consume(global("upstream")).await else { break };
            under_way.push((now + CALL, pass));
            admitted.push(now);
        }
        clock.advance(Span::from_millis(STEP));
    }
    admitted
}

/// How many ask at an instant, at most: too many count as one more than any rule here lets pass.
fn asks_at(now: u64) -> u64 {
    match now {
        now if now < ONE_BY_ONE => u64::from(now.is_multiple_of(APART)),
        now if IDLE.contains(&now) => 0,
        _ => 100,
    }
}

/// The most that was admitted in any interval of so many milliseconds.
pub(super) fn most_within(admitted: &[u64], span: u64) -> usize {
    let within =
        |from: &u64| admitted.iter().filter(|at| (*from..*from + span).contains(*at)).count();
    admitted.iter().map(within).max().unwrap_or_default()
}

#[tokio::test]
async fn what_a_scene_shows_is_what_its_rule_says() {
    for (name, span, most) in [
        ("token-bucket", 4_000, 29),
        ("token-bucket-even", 4_000, 20),
        ("fixed-window", 4_000, 39),
        ("calendar-window", 4_000, 40),
        ("sliding-window", 4_000, 20),
        ("guard", 5_000, 20),
        ("concurrency", 1_000, 5),
        ("two-rules", 4_000, 12),
    ] {
        let scene = SCENES.iter().find(|scene| scene.name == name).unwrap();
        assert_eq!(most_within(&play(scene).await, span), most, "{name}");
    }
}
