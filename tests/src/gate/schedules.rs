//! Schedules: a call at each tick, missed ticks once, over a restart.

use super::*;
use tollgate::lanes::{CallsQuery, QueueName};
use tollgate::{Clock, Cron, Envelope, Span, Timestamp, When};

/// The clock of the tests starts at this instant, 13:46:40 on a Monday.
fn start() -> Timestamp {
    Timestamp::default().plus(Span::from_secs(1_000_000))
}

fn cron(text: &str) -> When {
    When::Cron(Cron::new(text, "UTC").unwrap())
}

impl Opened {
    async fn waiting(&self) -> Vec<CallId> {
        let queue = QueueName::new("q").unwrap();
        let query = CallsQuery { queue, lane: None, state: None, after: None, most: 100 };
        self.gate().calls(query).await.unwrap().into_iter().map(|call| call.id).collect()
    }

    /// Waits until so many calls wait.
    async fn come(&self, count: usize) {
        patiently(async {
            while self.waiting().await.len() < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(self.waiting().await.len(), count);
    }

    /// Waits until the first schedule has a problem.
    async fn problem(&self) -> String {
        patiently(async {
            loop {
                let schedule = self.gate().schedules(None, 10).await.unwrap().remove(0);
                if let Some(problem) = schedule.problem {
                    return problem;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    async fn after_a_stop(self, span: Span) -> Self {
        let Self { gate, clock, folder } = self;
        drop(gate);
        clock.advance(span);
        Self { gate: None, clock, folder }.reopen().await
    }

    async fn next_tick(&self) -> Option<Timestamp> {
        self.gate().schedules(None, 10).await.unwrap()[0].next
    }
}

#[tokio::test]
async fn a_call_comes_at_each_tick_and_not_before() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let hourly = opened.gate().schedule("s", "q", cron("@hourly"), call("a", "x")).await.unwrap();
    let first = hourly.next.unwrap();
    assert_eq!(first.since(start()), Span::from_secs(800));
    opened.clock.advance(Span::from_secs(799));
    assert_eq!(opened.next_tick().await, Some(first));
    opened.come(0).await;
    for ticks in 1..4 {
        let next = opened.next_tick().await.unwrap();
        opened.clock.advance(next.since(opened.clock.wall()));
        opened.come(ticks).await;
    }
    let call = opened.waiting().await[2];
    assert_eq!(opened.gate().payload(call).await.unwrap(), Some(b"x"[..].into()));
}

#[tokio::test]
async fn ticks_that_were_missed_come_once_after_a_restart() {
    let opened = Opened::with(Limit::per_second(10)).await;
    opened.gate().schedule("s", "q", cron("*/5 * * * *"), call("a", "x")).await.unwrap();
    let opened = opened.after_a_stop(Span::from_hours(3)).await;
    opened.come(1).await;
    let next = opened.next_tick().await.unwrap();
    assert!(next.since(start()) > Span::from_hours(3));
    opened.clock.advance(Span::from_minutes(5));
    opened.come(2).await;
}

#[tokio::test]
async fn ticks_that_were_missed_come_as_the_last_of_them_and_not_expired() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let short_lived = call("a", "x").expires_after(Span::from_minutes(10));
    opened.gate().schedule("s", "q", cron("*/5 * * * *"), short_lived).await.unwrap();
    let opened = opened.after_a_stop(Span::from_hours(3)).await;
    opened.come(1).await;
    let call = opened.gate().call(opened.waiting().await[0]).await.unwrap().unwrap();
    let tick = opened.next_tick().await.unwrap().minus(Span::from_minutes(5));
    assert_eq!(call.expires, Some(tick.plus(Span::from_minutes(10))), "counted from the last");
}

#[tokio::test]
async fn a_schedule_for_once_ticks_once_and_is_gone() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let once = When::Once(start().plus(Span::from_secs(60)));
    opened.gate().schedule("s", "q", once, call("a", "x").delay(Span::from_secs(5))).await.unwrap();
    opened.clock.advance(Span::from_secs(60));
    opened.come(1).await;
    patiently(async {
        while !opened.gate().schedules(None, 10).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let call = opened.gate().call(opened.waiting().await[0]).await.unwrap().unwrap();
    assert_eq!(call.not_before, Some(start().plus(Span::from_secs(65))), "counted from its tick");
}

#[tokio::test]
async fn a_call_with_a_card_says_at_which_tick_it_was_accepted_and_no_other_does() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let gate = opened.gate();
    gate.schedule("bare", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    let carded = call("a", "y").card(*b"card");
    gate.schedule("carded", "q", cron("* * * * *"), carded).await.unwrap();
    let tick = opened.next_tick().await.unwrap();
    opened.clock.advance(Span::from_secs(60));
    opened.come(2).await;
    for id in opened.waiting().await {
        let payload = gate.payload(id).await.unwrap().unwrap();
        let envelope = Envelope::of(&payload).unwrap();
        match payload.body() {
            b"x" => assert_eq!(envelope, Envelope::default()),
            _ => assert_eq!((envelope.accepted, &*envelope.card), (Some(tick), &b"card"[..])),
        }
    }
}

#[tokio::test]
async fn a_tick_of_which_nothing_can_come_says_why_and_the_next_is_tried() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let unknown = call("a", "x").pays(toll("nowhere", "p"));
    opened.gate().schedule("s", "q", cron("* * * * *"), unknown).await.unwrap();
    opened.clock.advance(Span::from_minutes(1));
    assert!(opened.problem().await.contains("nowhere"));
    opened.gate().limit("nowhere", Limit::per_second(1)).await.unwrap();
    opened.clock.advance(Span::from_minutes(1));
    opened.come(1).await;
}

#[tokio::test]
async fn a_schedule_says_that_its_queue_was_removed_until_it_is_back() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let gate = opened.gate();
    gate.schedule("s", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    assert!(gate.remove_queue("q").await.unwrap());
    assert!(!gate.remove_queue("q").await.unwrap());
    opened.clock.advance(Span::from_minutes(1));
    assert!(opened.problem().await.contains("no queue q"));
    gate.queue("q", QueueSpec::default()).await.unwrap();
    opened.clock.advance(Span::from_minutes(1));
    opened.come(1).await;
    let refused = gate.remove_queue("q").await.unwrap_err().to_string();
    assert!(refused.contains("1 wait"), "{refused}");
}

#[tokio::test]
async fn a_schedule_can_be_paused_and_removed() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let gate = opened.gate();
    gate.schedule("s", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    assert!(gate.pause_schedule("s").await.unwrap());
    opened.clock.advance(Span::from_minutes(10));
    assert!(gate.resume_schedule("s").await.unwrap());
    opened.come(0).await;
    opened.clock.advance(Span::from_minutes(1));
    opened.come(1).await;
    assert!(gate.unschedule("s").await.unwrap());
    assert!(!gate.unschedule("s").await.unwrap());
    assert!(!gate.pause_schedule("s").await.unwrap());
}

#[tokio::test]
async fn a_schedule_that_cannot_tick_holds_up_no_other() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let narrow = QueueSpec { depth_max: 1, ..QueueSpec::default() };
    opened.gate().queue("narrow", narrow).await.unwrap();
    opened.gate().enqueue("narrow", call("a", "in the way")).await.unwrap();
    opened.gate().schedule("a", "narrow", cron("* * * * *"), call("a", "x")).await.unwrap();
    opened.gate().schedule("b", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    opened.clock.advance(Span::from_minutes(1));
    opened.come(1).await;
}

#[tokio::test]
async fn a_schedule_said_again_stays_as_it_is() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let gate = opened.gate();
    gate.schedule("s", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    gate.pause_schedule("s").await.unwrap();
    let again = gate.schedule("s", "q", cron("* * * * *"), call("a", "x")).await.unwrap();
    assert!(again.is_paused);
    let opened = opened.reopen().await;
    opened.gate().resume_schedule("s").await.unwrap();
    opened.clock.advance(Span::from_minutes(1));
    opened.come(1).await;
    let instant = call("a", "x").not_before(start());
    let refused = opened.gate().schedule("t", "q", cron("@daily"), instant).await.unwrap_err();
    assert!(refused.to_string().contains("each tick"), "{refused}");
}
