//! Queues that change, and what follows that cannot be done, while a call is on its way.

use super::upstream::{Upstream, status};
use super::{Pushed, to};
use crate::gate::patiently;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate::lanes::{End, QueueSpec, What};
use tollgate::{Call, Delivery};

/// A destination that answers when it is told to.
struct Holding(TcpListener);

impl Holding {
    async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}/", self.0.local_addr().unwrap())
    }

    /// Waits for a request.
    async fn asked(&self) -> TcpStream {
        let (mut stream, _) = patiently(self.0.accept()).await.unwrap();
        patiently(stream.read_u8()).await.unwrap();
        stream
    }
}

async fn answer(mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
}

fn is_done(history: &[What]) -> bool {
    history.iter().any(|what| matches!(what, What::Ended { end: End::Done, attempts: 1 }))
}

#[tokio::test]
async fn a_queue_that_is_defined_anew_is_served_by_one_worker_whatever_becomes_of_the_last() {
    let (holding, mut upstream) =
        (Holding::new().await, Upstream::new(|_| status(200, &[], "")).await);
    let pushed = Pushed::new().await;
    pushed.queue("q", to(holding.url()), QueueSpec::default()).await;
    let held = pushed.gate.enqueue("q", Call::new("held")).await.unwrap();
    let mut stream = Some(holding.asked().await);
    pushed.gate.queue("q", QueueSpec::default()).await.unwrap();
    // The pusher has let go of the queue when it has seen another one since.
    pushed.queue("other", to(upstream.url("/other")), QueueSpec::default()).await;
    pushed.gate.enqueue("other", Call::new("a")).await.unwrap();
    assert_eq!(upstream.next().await.path, "/other");
    pushed.queue("q", to(upstream.url("/q")), QueueSpec::default()).await;
    for end_of_the_last in [false, true] {
        if end_of_the_last {
            answer(stream.take().unwrap()).await;
            assert!(is_done(&pushed.ended(held).await));
        }
        for lane in ["a", "b", "a"] {
            let id = pushed.gate.enqueue("q", Call::new(lane)).await.unwrap();
            assert_eq!(upstream.next().await.path, "/q");
            assert!(is_done(&pushed.ended(id).await));
        }
    }
    // One claim waits, and is not given up and made anew over and over.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(pushed.gate.asking("q"), 1);
    }
    pushed.close().await;
}

#[tokio::test]
async fn a_call_that_was_made_is_not_made_again_for_a_callback_that_cannot_be() {
    let holding = Holding::new().await;
    let pushed = Pushed::new().await;
    let callback = Some(Box::new(to("http://127.0.0.1:9/")));
    let delivery = Delivery { callback, ..to(holding.url()) };
    pushed.queue("q", delivery, QueueSpec::default()).await;
    pushed.queue("q:callbacks", Delivery::default(), QueueSpec::default()).await;
    let id = pushed.gate.enqueue("q", Call::new("a")).await.unwrap();
    let stream = holding.asked().await;
    // What the callback would owe at is gone.
    pushed.gate.remove("tester", "tollgate:destinations").await.unwrap();
    answer(stream).await;
    assert!(is_done(&pushed.ended(id).await));
    let callbacks = pushed.gate.queue_state("q:callbacks").await.unwrap().unwrap();
    assert_eq!(callbacks.waiting + callbacks.in_flight, 0);
    pushed.close().await;
}
