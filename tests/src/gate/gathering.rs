//! Limits that open shortly one after the other: whoever waits gets what they let pass together, and
//! nobody waits who is alone.

use super::{Opened, patiently};
use tollgate::lanes::{Order, QueueSpec};
use tollgate::{Call, Limit, Span, toll};

/// What one unit takes to flow in; two are saved up.
const UNIT: Span = Span::from_millis(500);
const WAIT: Span = Span::from_secs(10);

/// Calls of these lanes wait, each lane at a meter of its own that was spent so much later than the one
/// before. The clock stands where the last was spent.
async fn spent(lanes: &[&str], weight: u64, apart: Span) -> Opened {
    let opened = Opened::with(Limit::per_second(2).burst(2)).await;
    let spec = QueueSpec { order: Order::Parallel(100), ..QueueSpec::default() };
    opened.gate().queue("q", spec).await.unwrap();
    for (nth, lane) in lanes.iter().enumerate() {
        if nth > 0 {
            opened.clock.advance(apart);
        }
        let calls =
            (0..=2 / weight).map(|_| Call::new(*lane).pays(toll("l", *lane).weight(weight)));
        opened.gate().enqueue_all("q", calls).await.unwrap();
        assert!(claimed(&opened, Span::ZERO).await.iter().all(|started| started == lane));
    }
    opened
}

/// The lanes of the calls that a claim gets.
async fn claimed(opened: &Opened, wait: Span) -> Vec<String> {
    let claimed = patiently(opened.gate().claim("q", 10, wait)).await.unwrap();
    claimed.iter().map(|claimed| claimed.started.lane.to_string()).collect()
}

/// The lanes of the calls that one gets who waits while the clock is moved.
async fn claimed_after(opened: &Opened, span: Span) -> Vec<String> {
    tokio::join!(claimed(opened, WAIT), async { opened.clock.advance(span) }).0
}

#[tokio::test]
async fn a_limit_that_opens_alone_lets_pass_at_that_instant() {
    let apart = Span::from_nanos(1_000_001);
    let opened = spent(&["a", "b"], 1, apart).await;
    assert_eq!(claimed_after(&opened, Span::from_nanos(UNIT.as_nanos() - 1_000_001)).await, ["a"]);
    assert_eq!(claimed_after(&opened, apart).await, ["b"]);
}

#[tokio::test]
async fn limits_that_open_within_a_millisecond_let_pass_with_the_last_of_them() {
    let apart = Span::from_nanos(400_000);
    let opened = spent(&["a", "b", "c"], 1, apart).await;
    opened.clock.advance(Span::from_nanos(UNIT.as_nanos() - 800_000));
    assert!(claimed(&opened, Span::ZERO).await.is_empty(), "a is open, and b will be");
    opened.clock.advance(apart);
    assert!(claimed(&opened, Span::ZERO).await.is_empty(), "b is open, and c will be");
    assert_eq!(claimed_after(&opened, apart).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_limit_that_would_lose_its_rate_waits_for_nobody() {
    let apart = Span::from_nanos(400_000);
    // A bucket that is full when it opens overflows at once.
    let opened = spent(&["a", "b"], 2, apart).await;
    let opens = Span::from_nanos(2 * UNIT.as_nanos() - 400_000);
    assert_eq!(claimed_after(&opened, opens).await, ["a"]);
    assert_eq!(claimed_after(&opened, apart).await, ["b"]);
}
