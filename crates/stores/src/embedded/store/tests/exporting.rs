//! An export makes the same state elsewhere, and nothing else is taken for one.

use super::{Machine, enqueue, queue, wait};
use crate::embedded::disk::Disk;
use crate::embedded::disk::simulated::Host;
use crate::embedded::store::export::import_on;
use crate::embedded::{ImportError, contents, export, import};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::histories::{Seen, beginning, lasting, step, tell};
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, Claim, Effect, Kept, NewCall, Payload, Revision, Scope, Write};
use tollgate_core::{Definition, Key, LaneName, Limit, LimitName, Partition, Span, Toll};

fn exported(disk: &Arc<dyn Disk>) -> String {
    let mut lines = Vec::new();
    let exported = export(disk, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(exported.lines, lines.lines().count() as u64);
    lines
}

/// What a snapshot says, in an order that does not depend on where things are kept, but for what is
/// history.
fn facts(disk: &Arc<dyn Disk>) -> Vec<String> {
    let facts = contents(disk).unwrap().facts.into_iter();
    let facts = facts.filter(|fact| !matches!(fact, Effect::Kept(Kept::Start { .. })));
    let mut facts: Vec<_> = facts.map(|fact| format!("{fact:?}")).collect();
    facts.sort_unstable();
    facts
}

/// A machine that was stopped with something of every kind.
fn stopped() -> Machine {
    let mut machine = Machine::new(1);
    machine.define();
    let store = machine.store();
    let limit = |name| LimitName::new(name).unwrap();
    let both = Limit::fixed_window(3, Span::from_days(1)).on_calendar("Europe/Berlin");
    let limits = [
        ("rate", Limit::per_minute(100).burst(150).guard(Span::from_millis(50))),
        ("both", both.and(Limit::concurrency(2))),
        ("gone", Limit::sliding_window(5, Span::from_hours(1))),
    ];
    let defined = limits.map(|(name, rule)| (limit(name), Some(Definition::new(rule).unwrap())));
    let change = Configure { limits: defined.to_vec(), ..Configure::default() };
    wait(store.configure(change)).unwrap().unwrap();
    let toll = |name| Toll {
        limit: limit(name),
        partition: Some(Partition::new("acme \"quoted\"").unwrap()),
        weight: 1,
        hears_feedback: true,
    };
    let call = |body: &[u8], tolls: &[&'static str]| NewCall {
        tolls: tolls.iter().map(|name| toll(name)).collect(),
        dedupe: Some(Key::new(&format!("{body:?}")).unwrap()),
        payload: Payload::new(b"{}", body).unwrap(),
        ..NewCall::new(queue(), LaneName::new("line\nfeed").unwrap())
    };
    let calls = [call(b"text", &["rate", "both"]), call(b"\xff\0", &["gone"]), call(b"", &[])];
    let write = |key, bytes: &[u8]| {
        let (key, bytes) = (Key::new(key).unwrap(), Some(bytes.into()));
        Write { key, expected: Revision(0), bytes }
    };
    let write = vec![write("a", b"value"), write("b", b"\xfe")];
    let act = Act { enqueue: calls.to_vec(), write, ..Act::default() };
    wait(store.act(vec![act])).unwrap()[0].as_ref().unwrap();
    assert_eq!(machine.claim(2).len(), 2);
    wait(store.pause(Scope::Lane(queue(), LaneName::new("b").unwrap()))).unwrap();
    wait(store.pause(Scope::Limit(limit("rate")))).unwrap();
    wait(store.configure(Configure::limit(limit("gone"), None))).unwrap().unwrap();
    machine.store = None;
    machine
}

#[test]
fn an_export_can_be_read_by_people() {
    let lines = exported(&stopped().host.open().unwrap());
    for line in [
        r#"{"tollgate":"export","version":1}"#,
        r#"{"fact":"limit","name":"rate","rules":[{"rule":"token_bucket","limit":100,"per":"1m","burst":150,"guard":"50ms"}]}"#,
        r#"{"fact":"limit_paused","name":"rate"}"#,
        r#"{"fact":"limit_removed","name":"gone"}"#,
        r#"{"fact":"lane","queue":"q","lane":"b","is_paused":true,"weight":1}"#,
        r#"{"fact":"record","key":"a","revision":1,"value":"value"}"#,
        r#"{"fact":"record","key":"b","revision":2,"value_base64":"/g=="}"#,
    ] {
        assert!(lines.lines().any(|found| found == line), "{line} is not in\n{lines}");
    }
    for part in [
        r#""state":"in_flight","queue":"q","lane":"line\nfeed","tolls":[{"limit":"rate","partition":"acme \"quoted\"","weight":1,"hears_feedback":true}"#,
        r#""expires":"2030-11-27T08:18:14.960000000Z""#,
        r#""body":"text""#,
        r#""body_base64":"/wA=""#,
    ] {
        assert!(lines.contains(part), "{part} is not in\n{lines}");
    }
}

#[test]
fn lines_in_another_order_make_the_same_state() {
    let lines = exported(&stopped().host.open().unwrap());
    let mut shuffled: Vec<_> = lines.lines().collect();
    // All but the header, the counters and the end, limits and queues still first.
    let last = shuffled.len() - 1;
    shuffled[2..last].sort_by_key(|line| {
        let kinds = ["limit\"", "meter", "limit_removed", "queue\"", "lane", "call"];
        let is_kind = |kind: &&str| line.starts_with(&format!("{{\"fact\":\"{kind}"));
        kinds.iter().position(is_kind).unwrap_or(kinds.len())
    });
    assert_ne!(shuffled.join("\n"), lines.trim_end());
    let host = Host::new(2);
    import_on(shuffled.join("\n").as_bytes(), &host.open().unwrap()).unwrap();
    assert_eq!(exported(&host.open().unwrap()), lines);
}

/// What is wrong with an export of which one line was changed, and where.
fn refused(lines: &str, change: impl Fn(&mut Vec<String>)) -> String {
    let mut changed: Vec<_> = lines.lines().map(str::to_owned).collect();
    change(&mut changed);
    let parent = tempfile::tempdir().unwrap();
    let text = changed.join("\n");
    let error = import(text.as_bytes(), &parent.path().join("a")).unwrap_err();
    assert!(matches!(error, ImportError::Line { .. }), "{error}");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "nothing is left");
    error.to_string()
}

#[test]
fn a_line_that_is_wrong_is_named_and_leaves_nothing() {
    let lines = exported(&stopped().host.open().unwrap());
    let last = lines.lines().count();
    let find = |part: &str| lines.lines().position(|line| line.contains(part)).unwrap();
    let (call, queue) = (find(r#""body":"text""#), find(r#""fact":"queue""#));
    let (meter, gone) = (find(r#""fact":"meter""#), find(r#""fact":"limit","name":"gone""#));
    let dedupe = find(r#""fact":"dedupe""#);
    let replace = |line: usize, from: &'static str, to: &'static str| {
        move |lines: &mut Vec<String>| {
            assert!(lines[line].contains(from), "{}", lines[line]);
            lines[line] = lines[line].replacen(from, to, 1);
        }
    };
    let said = |error: String, line: usize, found: &str| {
        let begin = format!("line {}: ", line + 1);
        assert!(error.starts_with(&begin) && error.contains(found), "{error}");
    };
    said(refused(&lines, |all| all.truncate(0)), 0, "was cut off");
    said(refused(&lines, replace(0, "1", "2")), 0, "this release knows up to 1");
    said(refused(&lines, replace(0, "export", "expert")), 0, "an export begins with");
    said(refused(&lines, |all| drop(all.remove(1))), 1, "counters come before");
    said(refused(&lines, replace(call, "{", "[")), call, "at column ");
    said(refused(&lines, replace(call, "\"call\"", "\"cull\"")), call, "unknown variant `cull`");
    said(refused(&lines, replace(call, "\"lane\"", "\"line\"")), call, "unknown field `line`");
    said(refused(&lines, replace(call, "\"in_flight\"", "\"waiting\"")), call, "its state");
    said(refused(&lines, replace(call, "\"id\":0", "\"id\":7")), call, "counters have not come to");
    said(refused(&lines, replace(call, "20", "1920-20")), call, "is not an instant");
    said(refused(&lines, replace(call, "\"weight\":1", "\"weight\":0")), call, "a toll weighs");
    said(refused(&lines, replace(queue, "\"30s\"", "\"soon\"")), queue, "is not a duration");
    said(refused(&lines, replace(queue, "parallel", "strict")), queue, "");
    said(refused(&lines, |all| drop(all.remove(queue))), queue, "queue that is not defined");
    said(refused(&lines, replace(gone, "\"limit\":5", "\"limit\":0")), gone, "limit is 0");
    said(
        refused(&lines, replace(meter, "\"words\":\"", "\"words\":\"1 ")),
        meter,
        "numbers are not",
    );
    said(refused(&lines, replace(dedupe, "2030", "2029")), dedupe, "it does not last");
    said(refused(&lines, |all| all.truncate(last - 1)), last - 1, "was cut off");
    said(refused(&lines, |all| drop(all.remove(call))), last - 2, "lines were written");
    said(refused(&lines, |all| all.push(all[1].clone())), last, "nothing may follow");
    said(refused(&lines, |all| all.insert(call, all[call].clone())), call + 1, "already");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_import_is_what_was_exported(seed in any::<u64>(), steps in vec(step(), 1..60)) {
        let mut seen = Seen::default();
        let mut machine = Machine::at(seed, seen.now.at);
        for step in beginning().iter().chain(&steps) {
            machine.set_now(seen.pass(step));
            wait(tell(machine.store(), step, &mut seen));
        }
        machine.store = None;
        let lines = exported(&machine.host.open().unwrap());
        let (clock, settings) = (machine.clock.clone(), machine.settings);
        let mut other = Machine { host: Host::new(seed), store: None, clock, settings };
        import_on(lines.as_bytes(), &other.host.open().unwrap()).unwrap();
        prop_assert_eq!(&exported(&other.host.open().unwrap()), &lines);
        let [one, two] = [&machine, &other].map(|it| facts(&it.host.open().unwrap()));
        prop_assert_eq!(one, two);
        other.start();
        machine.start();
        let [one, two] = [&machine, &other].map(|it| wait(lasting(it.store(), &seen)));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn any_change_of_a_digit_is_taken_or_refused(place in any::<prop::sample::Index>(), digit in 0..10_u8) {
        let mut lines = exported(&stopped().host.open().unwrap()).into_bytes();
        let digits = (0..lines.len()).filter(|at| lines[*at].is_ascii_digit()).collect::<Vec<_>>();
        lines[digits[place.index(digits.len())]] = b'0' + digit;
        let mut machine = Machine::new(1);
        machine.store = None;
        machine.host = Host::new(1);
        if import_on(&*lines, &machine.host.open().unwrap()).is_err() {
            return Ok(());
        }
        // Whatever it says now, a store can live with it.
        machine.start();
        wait(machine.store().advance()).unwrap();
        let claim = Claim { queue: queue(), most: 5, lease: None, asks: Span::from_secs(0) };
        let _ = wait(machine.store().claim(claim)).unwrap();
        let _ = wait(machine.store().act(vec![enqueue(3)])).unwrap();
    }
}
