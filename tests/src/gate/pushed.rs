//! Queues whose calls are delivered: what is handed in to them, and what is not.

use super::*;
use tollgate::lanes::{Act, ActError, NewCall, QueueName};
use tollgate::{AskError, Cron, Delivery, Error, Span, When};

fn to(url: Option<&str>) -> Delivery {
    let method = Some("PUT".to_owned());
    Delivery { destination: url.map(str::to_owned), method, ..Delivery::default() }
}

impl Opened {
    async fn with_delivery(delivery: Option<Delivery>) -> Self {
        let opened = Self::new().await;
        opened.define(delivery).await;
        opened
    }

    async fn define(&self, delivery: Option<Delivery>) {
        let delivery = delivery.map(|delivery| delivery.to_bytes().unwrap());
        let spec = QueueSpec { delivery, ..QueueSpec::default() };
        self.gate().queue("q", spec).await.unwrap();
    }

    /// Hands in a call that says so much of its own.
    async fn hand_in(&self, delivery: Delivery) -> Result<CallId, Error> {
        self.gate().enqueue("q", call("a", "x").delivery(delivery)).await
    }

    async fn new_call(&self, queue: &str) -> NewCall {
        let now = self.gate().now().await.unwrap();
        call("a", "x").into_new(QueueName::new(queue).unwrap(), now).unwrap()
    }
}

fn is_not_pushed(answer: &Result<CallId, Error>) -> bool {
    matches!(answer, Err(Error::Invalid(AskError::QueueNotPushed { at: 0, .. })))
}

fn is_missing(answer: &Result<CallId, Error>) -> bool {
    matches!(answer, Err(Error::Invalid(AskError::DestinationMissing { at: 0, .. })))
}

#[tokio::test]
async fn a_call_fits_its_queue_as_that_is_now_and_after_a_restart() {
    let opened = Opened::with_delivery(None).await;
    assert_eq!(opened.gate().is_pushed("q").await.unwrap(), Some(false));
    assert!(is_not_pushed(&opened.hand_in(to(None)).await));
    assert!(opened.hand_in(Delivery::default()).await.is_ok());
    opened.define(Some(to(None))).await;
    assert_eq!(opened.gate().is_pushed("q").await.unwrap(), Some(true));
    assert_eq!(opened.gate().is_pushed("none").await.unwrap(), None);
    assert!(is_missing(&opened.hand_in(to(None)).await));
    assert!(is_missing(&opened.hand_in(Delivery::default()).await));
    assert!(opened.hand_in(to(Some("https://a.example"))).await.is_ok());
    let opened = opened.reopen().await;
    assert!(is_missing(&opened.hand_in(to(None)).await));
    opened.define(Some(to(Some("https://a.example")))).await;
    assert!(opened.hand_in(Delivery::default()).await.is_ok());
    opened.define(None).await;
    assert!(is_not_pushed(&opened.hand_in(to(None)).await));
}

#[tokio::test]
async fn an_act_is_refused_whole_for_one_call_that_goes_nowhere() {
    let opened = Opened::with_delivery(Some(to(None))).await;
    opened.gate().queue("workers", QueueSpec::default()).await.unwrap();
    let enqueue = vec![opened.new_call("workers").await, opened.new_call("q").await];
    let answer = opened.gate().act(Act { enqueue, ..Act::default() }).await;
    let error = AskError::DestinationMissing { at: 1, queue: "q".to_owned() };
    assert_eq!(answer.unwrap_err(), Error::Invalid(error));
    assert_eq!(opened.gate().queue_state("workers").await.unwrap().unwrap().waiting, 0);
    // Each act for itself; and what is no queue is for the store to say.
    let act =
        async |queue: &str| Act { enqueue: vec![opened.new_call(queue).await], ..Act::default() };
    let acts = vec![act("q").await, act("workers").await, act("none").await];
    let answers = opened.gate().act_all(acts).await.unwrap();
    assert!(matches!(answers[0], Err(Error::Invalid(AskError::DestinationMissing { .. }))));
    assert!(answers[1].is_ok());
    assert!(matches!(answers[2], Err(Error::Act(ActError::UnknownQueue { .. }))));
}

#[tokio::test]
async fn a_tick_that_goes_nowhere_says_so() {
    let opened = Opened::with_delivery(Some(to(None))).await;
    let when = || When::Cron(Cron::new("* * * * *", "UTC").unwrap());
    let there = call("a", "x").delivery(to(Some("https://a.example")));
    let nowhere = opened.gate().schedule("s", "q", when(), call("a", "x")).await;
    assert!(matches!(nowhere, Err(Error::Invalid(AskError::DestinationMissing { .. }))));
    opened.gate().schedule("s", "q", when(), there).await.unwrap();
    opened.define(None).await;
    opened.clock.advance(Span::from_secs(60));
    let problem = patiently(async {
        loop {
            let schedule = opened.gate().schedule_state("s").await.unwrap().unwrap();
            if let Some(problem) = schedule.problem {
                return problem;
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(problem.await.contains("hands its calls to workers"));
    assert_eq!(opened.gate().queue_state("q").await.unwrap().unwrap().waiting, 0);
}
