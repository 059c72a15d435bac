//! Pushes stay within what an upstream publishes and enforces, and use it. Clocks and sockets are real:
//! the guards cover what a busy machine takes between our start and the arrival.

use super::standstill::seen_without;
use super::upstream::enforcing::{Arrived, Enforcing};
use super::upstream::published::{Published, used};
use super::{Pushed, to};
use std::collections::BTreeMap;
use tollgate::lanes::{Order, QueueSpec};
use tollgate::{Call, Delivery, Limit, Span, global, toll};

const GUARD: Span = Span::from_millis(200);
/// How many thousandths of a limit are used at least.
const USED: u64 = 990;

fn window(limit: u64, millis: u64) -> Published {
    Published::Window { limit, per: Span::from_millis(millis) }
}

fn parallel() -> QueueSpec {
    QueueSpec { order: Order::Parallel(1_000), ..QueueSpec::default() }
}

/// Has a gate with a queue `q` whose calls owe tolls for each of these limits.
async fn pushed(rules: &[Published], spec: QueueSpec) -> Pushed {
    let pushed = Pushed::new().await;
    for (place, rule) in rules.iter().enumerate() {
        pushed.gate.limit(&place.to_string(), rule.limit(GUARD)).await.unwrap();
    }
    pushed.queue("q", Delivery::default(), spec).await;
    pushed
}

/// A call of a tenant.
fn call(upstream: &Enforcing, rules: &[Published], tenant: &str, number: usize) -> Call {
    weighing(upstream, rules, (tenant, number), 1)
}

fn weighing(
    upstream: &Enforcing,
    rules: &[Published],
    (tenant, number): (&str, usize),
    weight: u64,
) -> Call {
    let headers = vec![("x-weight".to_owned(), weight.to_string())];
    let delivery = Delivery { headers, ..to(upstream.url(tenant, number)) };
    let call = Call::new(tenant).delivery(delivery);
    let names: Vec<_> = (0..rules.len()).map(|place| place.to_string()).collect();
    names.iter().fold(call, |call, name| call.pays(toll(&**name, tenant).weight(weight)))
}

/// Pushes calls of these weights, all of one tenant, and says how much of the limits they used.
async fn use_of(rules: &[Published], weights: &[u64]) -> u64 {
    let (violations, used) = seen_without(async || seen_of(rules, weights).await).await;
    assert_eq!(violations, 0);
    used
}

/// How often the limits were broken, and how much of them was used.
async fn seen_of(rules: &[Published], weights: &[u64]) -> (u64, u64) {
    let mut upstream = Enforcing::new(rules, weights.len()).await;
    let pushed = pushed(rules, parallel()).await;
    let calls = weights.iter().enumerate();
    let calls = calls.map(|(number, weight)| weighing(&upstream, rules, ("a", number), *weight));
    pushed.gate.enqueue_all("q", calls).await.unwrap();
    for _ in weights {
        upstream.next().await;
    }
    pushed.close().await;
    (upstream.violations(), used(rules, GUARD, &upstream.arrivals()["a"]))
}

#[tokio::test]
async fn so_many_requests_a_second_are_used_and_not_one_more_arrives() {
    let used = use_of(&[window(20, 1_000)], &[1; 80]).await;
    assert!(used >= USED, "{used}");
}

#[tokio::test]
async fn a_burst_and_then_so_many_in_a_longer_time_are_used_and_not_one_more_arrives() {
    let rule = Published::Bucket { limit: 100, per: Span::from_secs(2), burst: 20 };
    let used = use_of(&[rule], &[1; 170]).await;
    assert!(used >= USED, "{used}");
}

#[tokio::test]
async fn tokens_of_calls_that_weigh_differently_are_used_and_not_one_more_arrives() {
    let rule = Published::Bucket { limit: 5_000, per: Span::from_secs(1), burst: 2_000 };
    let weights: Vec<u64> = (0..150).map(|number| 10 + number * 7_919 % 191).collect();
    let used = use_of(&[rule], &weights).await;
    assert!(used >= USED, "{used}");
}

#[tokio::test]
async fn two_limits_at_once_are_used_and_neither_is_broken() {
    let used = use_of(&[window(10, 400), window(25, 1_500)], &[1; 60]).await;
    assert!(used >= USED, "{used}");
}

#[tokio::test]
async fn as_many_requests_at_once_as_may_be_are_there_and_never_one_more() {
    let rules = [Published::AtOnce { limit: 8 }];
    let mut upstream = Enforcing::new(&rules, 200).await;
    let pushed = pushed(&rules, parallel()).await;
    let calls = (0..200).map(|number| call(&upstream, &rules, "a", number));
    pushed.gate.enqueue_all("q", calls).await.unwrap();
    // Each is answered when there are eight at once: with fewer this would not end.
    for _ in 0..200 {
        upstream.next().await;
    }
    pushed.close().await;
    assert_eq!(upstream.violations(), 0);
}

#[tokio::test]
async fn a_thousand_tenants_use_their_limits_in_one_queue_and_none_is_broken() {
    let (violations, used) = seen_without(seen_of_tenants).await;
    assert_eq!(violations, 0);
    assert!(used >= USED, "{used}");
}

/// The same of a thousand tenants with two calls each, and the use of the average one.
async fn seen_of_tenants() -> (u64, u64) {
    const TENANTS: usize = 1_000;
    let rules = [window(1, 2_500)];
    let mut upstream = Enforcing::new(&rules, 2 * TENANTS).await;
    let pushed = pushed(&rules, QueueSpec::default()).await;
    // The first calls of all tenants are spread, as in real life: this is not about how many requests a
    // machine can make at once.
    pushed.gate.limit("pace", Limit::per_second(500).burst(10)).await.unwrap();
    let tenants: Vec<_> = (0..TENANTS).map(|tenant| format!("t{tenant}")).collect();
    for number in 0..2 {
        let call = |tenant| call(&upstream, &rules, tenant, number).pays(global("pace"));
        let calls = tenants.iter().map(|tenant| call(tenant));
        pushed.gate.enqueue_all("q", calls).await.unwrap();
    }
    for number in 0..2 * TENANTS {
        if number == TENANTS {
            pushed.gate.limit("pace", Limit::per_second(10_000)).await.unwrap();
        }
        upstream.next().await;
    }
    pushed.close().await;
    let arrivals = upstream.arrivals();
    let shares = tenants.iter().map(|tenant| used(&rules, GUARD, &arrivals[tenant]));
    (upstream.violations(), shares.sum::<u64>() / TENANTS as u64)
}

#[tokio::test]
async fn through_restarts_no_limit_is_broken_and_each_lane_arrives_whole_and_in_order() {
    const CALLS: usize = 16;
    let rules = [window(4, 500)];
    let tenants = ["a", "b", "c"];
    let mut upstream = Enforcing::new(&rules, CALLS * tenants.len()).await;
    let mut pushed = pushed(&rules, QueueSpec::default()).await;
    for number in 0..CALLS {
        let calls = tenants.iter().map(|tenant| call(&upstream, &rules, tenant, number));
        pushed.gate.enqueue_all("q", calls).await.unwrap();
    }
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    // Within a window, at its end, and with calls on their way.
    for restart_after in [Some(2), Some(10), Some(5), Some(7), None] {
        let left = |numbers: &BTreeMap<String, Vec<usize>>| {
            let last = |tenant: &&str| numbers.get(*tenant).and_then(|it| it.last().copied());
            tenants.iter().any(|tenant| last(tenant) != Some(CALLS - 1))
        };
        for _ in 0..restart_after.unwrap_or(usize::MAX) {
            if !left(&numbers) {
                break;
            }
            let Arrived { tenant, number } = upstream.next().await;
            numbers.entry(tenant).or_default().push(number);
        }
        if restart_after.is_some() {
            pushed = pushed.reopen().await;
        }
    }
    pushed.close().await;
    assert_eq!(upstream.violations(), 0);
    for (tenant, mut arrived) in numbers {
        assert!(arrived.is_sorted(), "{tenant}: {arrived:?}");
        arrived.dedup();
        assert_eq!(arrived, (0..CALLS).collect::<Vec<_>>(), "{tenant}");
    }
}
