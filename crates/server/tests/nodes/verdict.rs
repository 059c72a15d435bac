//! Whether what was promised was kept, as far as producers and workers can tell.

use crate::record::{Call, CallKey, Came, Record, Settling, Start};
use crate::{BURST, RATE, SLOTS};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Adds what was not kept. `spent` is how many starts were paid for, if all was done in time.
pub(crate) fn judge(record: &Record, spent: Option<u64>, faults: &mut Vec<String>) {
    faults.append(&mut record.faults.lock());
    let calls = record.calls.lock();
    for (key, call) in calls.iter() {
        once(*key, call, faults);
        in_order(*key, call, &calls, faults);
    }
    let starts: Vec<&Start> = calls.values().flat_map(|call| &call.starts).collect();
    if starts.is_empty() {
        faults.push("nothing was started".to_owned());
    }
    within_rate(&starts, faults);
    within_slots(&starts, faults);
    let Some(spent) = spent else {
        faults.push("not all was done in time".to_owned());
        return;
    };
    // Attempts are counted from one on, and each was paid for: also those that no worker was told of.
    let attempts: u64 = calls.values().filter_map(last_attempt).sum();
    if spent != attempts {
        faults.push(format!("{attempts} starts were made, and {spent} paid for"));
    }
}

fn last_attempt(call: &Call) -> Option<u64> {
    call.starts.iter().map(|start| start.attempt).max()
}

/// Who said that a call was done, with the start they meant.
fn done(call: &Call) -> impl Iterator<Item = (&Start, &Settling)> {
    let all =
        call.starts.iter().flat_map(|start| start.settlings.iter().map(move |it| (start, it)));
    all.filter(|(_, settling)| settling.came == Came::Done)
}

/// A call was accepted, is done, and was done once.
fn once(key: CallKey, call: &Call, faults: &mut Vec<String>) {
    let mut is_wrong = |what: &str| faults.push(format!("{key:?} {what}: {call:?}"));
    if call.id.is_none() || call.claimed_as.is_some() && call.claimed_as != call.id {
        is_wrong("is not what was accepted");
    }
    if done(call).next().is_none() {
        is_wrong("was lost");
    }
    let counts = |settling: &Settling| settling.answered.is_some_and(|(_, counts)| counts);
    let is_in_doubt = done(call).any(|(_, settling)| settling.answered.is_none());
    match done(call).filter(|(_, settling)| counts(settling)).count() {
        0 if !is_in_doubt => is_wrong("was never done"),
        0 | 1 => {}
        _ => is_wrong("was done twice"),
    }
    let attempts: BTreeSet<u64> = call.starts.iter().map(|start| start.attempt).collect();
    if attempts.len() < call.starts.len() {
        is_wrong("was handed to two workers in one attempt");
    }
    let ended = done(call).find(|(_, settling)| counts(settling));
    let ended = ended.and_then(|(start, settling)| Some((start.attempt, settling.answered?.0)));
    if let Some((attempt, at)) = ended
        && call.starts.iter().any(|start| start.asked > at || start.attempt > attempt)
    {
        is_wrong("was started when it was done");
    }
}

/// No call starts before the one before it is done, nor while a start of the same is held.
fn in_order(key: CallKey, call: &Call, calls: &BTreeMap<CallKey, Call>, faults: &mut Vec<String>) {
    let (lane, number) = key;
    let first = call.starts.iter().map(|start| start.told).min();
    if let (Some(before), Some(first)) = (number.checked_sub(1), first) {
        let before = calls.get(&(lane, before));
        // What counted if that is known, or what may have.
        let may_count = |settling: &Settling| settling.answered.is_none_or(|(_, counts)| counts);
        let done = before.into_iter().flat_map(done).filter(|(_, settling)| may_count(settling));
        if done.map(|(_, settling)| settling.sent).min().is_none_or(|sent| sent > first) {
            faults.push(format!("{key:?} came before the one before it: {before:?}, {call:?}"));
        }
    }
    let mut starts: Vec<&Start> = call.starts.iter().collect();
    starts.sort_by_key(|start| start.attempt);
    for pair in starts.windows(2) {
        if pair[1].told < held(pair[0]).1 {
            faults.push(format!("{key:?} was started while it was held: {pair:?}"));
        }
    }
}

/// From when until when a start was surely held.
fn held(start: &Start) -> (Duration, Duration) {
    let settled = start.settlings.first().map_or(Duration::MAX, |settling| settling.sent);
    (start.told, start.held.min(settled))
}

/// In no span more starts than the burst and what flowed meanwhile.
fn within_rate(starts: &[&Start], faults: &mut Vec<String>) {
    let mut by_end: Vec<(u128, u128)> =
        starts.iter().map(|start| (start.told.as_nanos(), start.asked.as_nanos())).collect();
    by_end.sort_unstable();
    for &(_, from) in &by_end {
        let mut count = 0;
        for &(until, asked) in &by_end {
            if asked < from {
                continue;
            }
            count += 1;
            let flowed = u128::from(RATE) * (until - from) / 1_000_000_000;
            if count > u128::from(BURST) + flowed {
                let span = Duration::from_nanos(u64::try_from(until - from).unwrap());
                faults.push(format!("{count} starts within {span:?}, from {from} ns on"));
                return;
            }
        }
    }
}

/// At no time more in flight than there are slots.
fn within_slots(starts: &[&Start], faults: &mut Vec<String>) {
    let held = starts.iter().map(|start| held(start)).filter(|(from, until)| from < until);
    // One that ends makes room for one that begins at the same time.
    let mut changes: Vec<(Duration, i64)> =
        held.flat_map(|(from, until)| [(from, 1), (until, -1)]).collect();
    changes.sort_unstable();
    let (mut count, mut most) = (0, 0);
    for (_, change) in changes {
        count += change;
        most = most.max(count);
    }
    if most > i64::try_from(SLOTS).unwrap() {
        faults.push(format!("{most} were in flight at a time, with {SLOTS} slots"));
    }
}
