//! Dead calls: seen, revived at a rate, deleted.

use super::*;
use tollgate::lanes::CallState;
use tollgate::{Outcome, Span};

/// A gate with so many dead calls.
async fn with_dead(count: usize) -> Opened {
    let opened = Opened::with(Limit::per_second(10)).await;
    opened.gate().queue("q", parallel(100)).await.unwrap();
    let calls = (0..count).map(|n| call("a", &format!("{n}")));
    opened.gate().enqueue_all("q", calls).await.unwrap();
    for claimed in opened.gate().claim("q", count, Span::ZERO).await.unwrap() {
        let _ = opened.gate().settle(claimed.started.lease, Outcome::dead()).await.unwrap();
    }
    opened
}

impl Opened {
    async fn states(&self) -> Vec<CallState> {
        let queue = tollgate::lanes::QueueName::new("q").unwrap();
        let query =
            tollgate::lanes::CallsQuery { queue, lane: None, state: None, after: None, most: 100 };
        self.gate().calls(query).await.unwrap().into_iter().map(|call| call.state).collect()
    }
}

#[tokio::test]
async fn dead_calls_are_seen_and_last() {
    let opened = with_dead(3).await.reopen().await;
    let dead = opened.gate().dead("q", None, None, 10).await.unwrap();
    assert_eq!(dead.len(), 3);
    assert_eq!(opened.gate().payload(dead[1].id).await.unwrap(), Some(b"1"[..].into()));
    assert_eq!(opened.gate().dead("q", None, Some(dead[1].id), 10).await.unwrap().len(), 1);
    assert_eq!(opened.gate().dead("q", Some("other"), None, 10).await.unwrap(), []);
    assert_eq!(opened.gate().queues(None, 10).await.unwrap()[0].dead, 3);
}

#[tokio::test]
async fn dead_calls_are_revived_at_the_rate_that_was_chosen() {
    let opened = with_dead(4).await;
    let revived = opened.gate().revive_all("q", None, Span::from_secs(2)).await.unwrap();
    assert_eq!(revived, 4);
    for _ in 0..4 {
        let claimed = opened.gate().claim("q", 10, Span::ZERO).await.unwrap();
        assert_eq!(claimed.len(), 1);
        opened.clock.advance(Span::from_secs(2));
    }
    assert_eq!(opened.gate().revive_all("q", None, Span::ZERO).await.unwrap(), 0);
}

#[tokio::test]
async fn one_dead_call_is_revived_and_the_rest_deleted() {
    let opened = with_dead(3).await;
    let dead = opened.gate().dead("q", None, None, 1).await.unwrap()[0].id;
    assert_eq!(opened.gate().revive(vec![dead, dead]).await.unwrap(), [true, false]);
    assert_eq!(opened.gate().delete_dead("q", Some("a")).await.unwrap(), 2);
    assert_eq!(opened.states().await, [CallState::Waiting]);
}
