//! Looking without paying, and asking for many at once.

use crate::world::{World, seconds};
use tollgate::{Limit, Span, Toll, Tollgate, TryError, global, toll};

#[tokio::test]
async fn peeking_pays_nothing_and_says_what_consume_would() {
    for limit in [
        Limit::per_second(3),
        Limit::fixed_window(3, seconds(1)),
        Limit::sliding_window(3, seconds(1)),
        Limit::concurrency(3),
    ] {
        let world = World::of("api", limit.clone()).await;
        for _ in 0..10 {
            let standing = world.gate.peek(global("api").weight(3)).await.unwrap();
            assert_eq!(standing.remaining, 3, "{limit:?}");
        }
        let held = world.gate.consume(global("api").weight(2)).await.unwrap();
        let peeked = world.gate.peek(global("api").weight(2)).await.unwrap_err();
        let asked = world.gate.consume(global("api").weight(2)).await.unwrap_err();
        assert_eq!(peeked, asked, "{limit:?}");
        drop(held);
    }
}

#[tokio::test]
async fn peeking_at_a_partition_makes_no_meter() {
    let world = World::of("api", Limit::per_second(3)).await;
    for number in 0..100 {
        world.gate.peek(toll("api", &format!("tenant {number}"))).await.unwrap();
    }
    assert_eq!(world.gate.limiter().unwrap().meters_kept(), 0);
}

/// What a mixed batch asks: rules of every kind, weights, and asks that are wrong.
fn mixed(keys: &[String]) -> Vec<Toll<'_>> {
    let each = keys.iter().enumerate().flat_map(|(number, key)| {
        let weight = u64::try_from(number % 4).unwrap();
        let limits = ["bucket", "window", "sliding", "bucket", "both", "unknown"];
        limits.map(|limit| toll(limit, key).weight(weight)).into_iter().chain([global("bucket")])
    });
    each.collect()
}

async fn gate_of_every_rule() -> Tollgate {
    let world = World::of("bucket", Limit::per_second(3)).await;
    let world = world.limit("window", Limit::fixed_window(4, seconds(1))).await;
    let world = world.limit("sliding", Limit::sliding_window(3, seconds(1))).await;
    let world = world.limit("both", Limit::per_second(9).and(Limit::per_minute(5))).await;
    world.gate
}

#[tokio::test]
async fn many_at_once_are_decided_as_one_by_one() {
    let keys: Vec<_> = (0..200).map(|number| format!("tenant {}", number % 37)).collect();
    let tolls = mixed(&keys);
    let [together, apart] = [gate_of_every_rule().await, gate_of_every_rule().await];
    let answers = together.consume_many(&tolls).await;
    assert_eq!(answers.len(), tolls.len());
    for (toll, answer) in tolls.iter().zip(answers) {
        let alone = apart.limiter().unwrap().try_consume(*toll);
        assert_eq!(told(answer), told(alone), "{toll:?}");
    }
}

type Told = Result<(u64, i64, Span), String>;

fn told(answer: Result<tollgate::Pass, TryError>) -> Told {
    match answer {
        Ok(pass) => Ok((pass.limit(), pass.remaining(), pass.reset_after())),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[tokio::test]
async fn partitions_are_listed_in_pages_without_gaps() {
    let world = World::of("api", Limit::per_hour(3)).await;
    let mut expected: Vec<_> = (0..25).map(|number| format!("tenant {number}")).collect();
    for key in &expected {
        world.pay(toll("api", key)).await;
    }
    expected.sort();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = world.gate.partitions("api", after.as_deref(), 7).await.unwrap();
        listed.extend(page.partitions);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, expected);
}
