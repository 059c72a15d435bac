//! What counts at each rule of a limit.

use super::*;
use tollgate::{Clock, RuleUse, Span, global};

#[tokio::test]
async fn each_rule_tells_what_counts_at_it_in_memory_as_in_a_folder() {
    let (clock, folder) = (ManualClock::new(), tempfile::tempdir().unwrap());
    let memory = Tollgate::builder().clock(clock.clone()).memory();
    let kept = Tollgate::builder().clock(clock.clone()).open(folder.path()).await.unwrap();
    for gate in [memory, kept] {
        let minute = Span::from_minutes(1);
        let limit = Limit::fixed_window(5, minute).and(Limit::concurrency(3));
        gate.limit("l", limit).await.unwrap();
        let opened = Some(clock.now());
        let pass = gate.consume(global("l").weight(2)).await.unwrap();
        clock.advance(Span::from_secs(1));
        let window = RuleUse { limit: 5, per: Some(minute), used: 2, opened };
        let slots = RuleUse { limit: 3, per: None, used: 2, opened: None };
        assert_eq!(gate.meter("l", None).await.unwrap().rules, [window, slots]);
        let uses = gate.uses(&["l", "none"]).await.unwrap();
        assert_eq!(uses, [Some(vec![window, slots]), None]);
        drop(pass);
    }
}
