//! Limits that are spread over Redis Cluster: each meter lies by itself, and is as exact as any.

use super::super::world::{asking, define, passes};
use super::{say, settings};
use crate::servers::cluster::{self, RedisCluster};
use std::collections::BTreeSet;
use std::sync::Arc;
use tollgate::lanes::{
    Ask, AskError, Configure, ConfigureError, Cost, Definition, LimitName, MeterError, Meters,
    Partition, TollError,
};
use tollgate::shared::Shared;
use tollgate::{Limit, Span};
use tollgate_stores::redis::{RedisCells, Settings};

/// Two processes at one cluster.
async fn two(settings: &Settings) -> [Shared; 2] {
    let mut stores = Vec::new();
    for _ in 0..2 {
        let cells = RedisCells::connect(cluster::shared(), settings.clone()).await.unwrap();
        stores.push(Shared::new(Arc::new(cells)));
    }
    stores.try_into().unwrap()
}

fn at(limit: &str, partition: &str) -> Ask {
    let mut ask = asking(limit);
    ask.tolls[0].partition = Some(Partition::new(partition).unwrap());
    ask
}

/// How many of so many asks at a partition are granted, one after the other.
async fn granted(store: &Shared, partition: &str, asks: usize) -> usize {
    let mut granted = 0;
    for _ in 0..asks {
        let paid = store.consume(vec![at("l", partition)]).await.unwrap().remove(0);
        granted += usize::from(paid.is_ok());
    }
    granted
}

#[tokio::test]
async fn meters_lie_on_all_servers_and_all_processes_pay_at_the_same() {
    let cluster = RedisCluster::start();
    let settings = settings();
    let mut stores = Vec::new();
    for _ in 0..2 {
        let cells = RedisCells::connect(&cluster.url(), settings.clone()).await.unwrap();
        stores.push(Shared::new(Arc::new(cells)));
    }
    define(&stores[0], "l", Limit::per_hour(3).spread()).await;
    for number in 0..20 {
        let partition = format!("tenant {number}");
        let sum =
            granted(&stores[0], &partition, 2).await + granted(&stores[1], &partition, 2).await;
        assert_eq!(sum, 3, "{partition}");
    }
    let start = format!("{{{}/*", settings.prefix);
    let kept = cluster.nodes.iter().map(|node| cluster::say(node, &["KEYS", &start]));
    let kept: Vec<Vec<String>> = kept.collect();
    assert!(kept.iter().all(|keys| !keys.is_empty()), "{kept:?}");
    let meters: BTreeSet<_> = kept.iter().flatten().filter(|key| key.ends_with(":m")).collect();
    assert_eq!(meters.len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_ask_at_once_get_no_more_than_there_is() {
    let stores = two(&settings()).await;
    define(&stores[0], "l", Limit::per_hour(10).spread()).await;
    let asking = (0..40).map(|number| {
        let store = stores[number % 2].clone();
        tokio::spawn(async move { granted(&store, &format!("p{}", number % 4), 5).await })
    });
    let mut sum = 0;
    for asking in asking.collect::<Vec<_>>() {
        sum += asking.await.unwrap();
    }
    assert_eq!(sum, 40);
}

#[tokio::test]
async fn several_asks_of_one_request_are_each_all_or_nothing() {
    let [store, other] = two(&settings()).await;
    define(&store, "l", Limit::per_hour(1).spread()).await;
    define(&store, "plain", Limit::per_hour(1)).await;
    for (store, expected) in [(&other, [true, true, false, true]), (&store, [false; 4])] {
        let asks = vec![at("l", "a"), at("l", "b"), at("l", "a"), asking("plain")];
        let paid = store.consume(asks).await.unwrap();
        let paid: Vec<_> = paid.iter().map(Result::is_ok).collect();
        assert_eq!(paid, expected);
    }
}

#[tokio::test]
async fn with_others_it_is_refused_and_nothing_is_paid() {
    let [store, other] = two(&settings()).await;
    define(&store, "l", Limit::per_hour(1).spread()).await;
    define(&store, "plain", Limit::per_hour(1)).await;
    for store in [&store, &other] {
        for partner in [asking("plain"), at("l", "b")] {
            let mut ask = at("l", "a");
            ask.tolls.extend(partner.tolls);
            let refused = store.consume(vec![ask.clone()]).await.unwrap().remove(0);
            let limit = LimitName::new("l").unwrap();
            assert_eq!(refused, Err(AskError::Toll(TollError::Spread { limit })));
            assert!(store.peek(vec![ask]).await.unwrap()[0].is_err());
        }
    }
    assert!(passes(&store, "plain").await);
    assert_eq!(granted(&store, "a", 2).await, 1);
    let mut twice = at("l", "c");
    twice.tolls.extend(at("l", "c").tolls);
    let too_much = store.consume(vec![twice]).await.unwrap().remove(0);
    assert!(
        matches!(too_much, Err(AskError::Toll(TollError::WeightOverCapacity { .. }))),
        "two tolls at one meter add up as ever: {too_much:?}"
    );
}

#[tokio::test]
async fn rules_change_for_all_and_what_was_spent_stays() {
    let [store, other] = two(&settings()).await;
    define(&store, "l", Limit::per_hour(3).spread()).await;
    assert_eq!(granted(&other, "a", 2).await, 2);
    define(&store, "l", Limit::per_hour(5).spread()).await;
    assert_eq!(granted(&other, "a", 5).await, 3);
    let own = Definition::new(Limit::per_hour(9)).unwrap();
    let (limit, partition) = (LimitName::new("l").unwrap(), Partition::new("b").unwrap());
    let change = Configure::partition(limit.clone(), partition, Some(own));
    store.configure(change).await.unwrap().unwrap();
    assert_eq!(granted(&other, "b", 12).await, 9);
    let plain = Definition::new(Limit::per_hour(5)).unwrap();
    let refused = store.configure(Configure::limit(limit.clone(), Some(plain))).await.unwrap();
    let stays = MeterError::SpreadStays { limit };
    assert_eq!(refused, Err(ConfigureError::Meter(stays)));
    assert_eq!(granted(&other, "a", 1).await, 0);
}

#[tokio::test]
async fn a_receipt_settles_once_whoever_settles_it() {
    let [store, other] = two(&settings()).await;
    define(&store, "l", Limit::per_hour(4).spread()).await;
    let mut ask = at("l", "a");
    ask.tolls[0].weight = 4;
    let receipt = store.consume(vec![ask]).await.unwrap().remove(0).unwrap().receipt;
    let settle = |store: Shared| {
        let receipt = receipt.clone();
        async move { store.settle(vec![(receipt, Cost::Nothing)]).await.unwrap().remove(0) }
    };
    assert!(settle(other.clone()).await.is_ok());
    assert!(settle(store.clone()).await.is_err());
    assert!(settle(other.clone()).await.is_err());
    assert_eq!(granted(&other, "a", 6).await, 4);
}

#[tokio::test]
async fn slots_are_held_renewed_and_let_go() {
    let [store, other] = two(&settings()).await;
    define(&store, "l", Limit::concurrency(1).spread()).await;
    let paid = store.consume(vec![at("l", "a")]).await.unwrap().remove(0).unwrap();
    assert_eq!(granted(&other, "a", 1).await, 0);
    let renewed = other.renew(vec![paid.receipt], Span::from_secs(30)).await.unwrap().remove(0);
    let settled = store.settle(vec![(renewed.unwrap(), Cost::Nothing)]).await.unwrap();
    assert_eq!(settled, [Ok(())]);
    assert_eq!(granted(&other, "a", 1).await, 1);
    let name = at("l", "a").owed().remove(0).0;
    let told = store.inspect(vec![name]).await.unwrap().remove(0).unwrap();
    assert_eq!(told.standing.remaining, 0);
}

#[tokio::test]
async fn one_server_alone_takes_it_as_well() {
    let settings = settings();
    let cells = RedisCells::connect(crate::servers::redis::shared(), settings.clone()).await;
    let store = Shared::new(Arc::new(cells.unwrap()));
    define(&store, "l", Limit::per_hour(2).spread()).await;
    assert_eq!(granted(&store, "a}b", 3).await, 2);
    let key = format!("{{{}/1:l:a}}b}}:m", settings.prefix);
    let there: i64 = say(crate::servers::redis::shared(), &["EXISTS", &key]).await;
    assert_eq!(there, 1);
}
