//! What is there, from the folder itself, beside what should be.

use super::lines::{Answer, Blob, Change, Command, Fresh, Start, digest};
use super::load::{self, PARTS};
use super::model::{Call, Part};
use std::collections::BTreeMap;
use std::fmt::Debug;
use tollgate::lanes::{CallId, Effect, Kept, Meter};
use tollgate::{Now, Timestamp};

/// Most characters of what was found that are told.
const BRIEF_MAX: usize = 400;

/// What one part of the store holds, as it was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    calls: BTreeMap<u64, FoundCall>,
    dead: BTreeMap<u64, FoundCall>,
    records: BTreeMap<u64, (u64, Box<[u8]>)>,
    dedupes: BTreeMap<u64, u64>,
    spent: u64,
    /// What may have been consumed and was not written down: it is charged at the restart.
    allowed: u64,
}

#[derive(Debug)]
struct FoundCall {
    /// All but which blob is its body.
    call: Call,
    body: Box<[u8]>,
    arrival: Option<u64>,
}

/// What became of a command that was begun and not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Whole,
    Absent,
}

/// What the facts of a store say of each part.
pub(super) fn found(facts: Vec<Effect>) -> Result<Vec<Found>, String> {
    let mut parts: Vec<_> = (0..PARTS).map(|_| Found::default()).collect();
    let mut now = Timestamp::default();
    for mut fact in facts {
        if let Effect::Kept(Kept::Counters { now: latest, .. }) = fact {
            now = latest;
        }
        if tell(&mut parts, &mut fact, now).is_none() {
            return Err(format!("nobody can have made this: {}", brief(&fact)));
        }
    }
    Ok(parts)
}

/// Notes a fact, and takes its bytes.
fn tell(parts: &mut [Found], fact: &mut Effect, now: Timestamp) -> Option<()> {
    match fact {
        Effect::Kept(kept @ Kept::Call { .. }) => tell_call(parts, kept, now)?,
        Effect::Kept(Kept::Dedupe { queue, key, id: CallId(id), .. }) => {
            let (part, key) = load::key_of(key)?;
            (load::part_of(queue)? == part).then_some(())?;
            parts.get_mut(part)?.dedupes.insert(key, *id);
        }
        Effect::Written { key, revision, bytes } => {
            let (part, key) = load::key_of(key)?;
            parts.get_mut(part)?.records.insert(key, (revision.0, bytes.take()?));
        }
        Effect::Kept(Kept::Meter { name: (_, partition), words, closed: None }) => {
            let definition = load::definition().ok()?;
            let meter = Meter::from_words(&definition, words, None)?;
            let remaining = meter.standing(&definition, Now::both(now)).remaining;
            let part = load::part_of(partition.as_ref()?)?;
            parts.get_mut(part)?.spent = load::LIMIT.checked_sub(u64::try_from(remaining).ok()?)?;
        }
        Effect::Allowed { meter: (_, partition), units } => {
            let part = load::part_of(partition.as_ref()?)?;
            parts.get_mut(part)?.allowed = *units;
        }
        Effect::Kept(Kept::Counters { .. } | Kept::Start { .. })
        | Effect::LimitDefined { .. }
        | Effect::QueueDefined { .. } => {}
        _ => return None,
    }
    Some(())
}

fn tell_call(parts: &mut [Found], kept: &mut Kept, now: Timestamp) -> Option<()> {
    let Kept::Call { id, call: new, arrival, attempts, rests_until, is_cancelled, flight, death } =
        kept
    else {
        return None;
    };
    let tried = attempts.unwrap_or_default();
    let token = flight.as_ref().map(|flight| flight.token);
    let body: Box<[u8]> = std::mem::take(&mut new.payload).body().into();
    let call = Call {
        lane: load::lane_of(&new.lane)?,
        priority: new.priority.level().into(),
        weight: new.tolls.iter().map(|toll| toll.weight).sum(),
        body: Blob { number: 0, bytes: body.len() },
        failures: tried.failures,
        was_started: attempts.is_some(),
        rests: token.is_none() && *rests_until > now,
        is_cancelled: *is_cancelled,
        token,
    };
    let part = parts.get_mut(load::part_of(&new.queue)?)?;
    let calls = if death.is_some() { &mut part.dead } else { &mut part.calls };
    calls.insert(id.0, FoundCall { call, body, arrival: *arrival });
    // No lease ran out, and no upstream asked for a pause.
    (tried.crashes == 0 && tried.limited == 0).then_some(())
}

/// Compares a part with what was found: all that was answered is there and nothing else, but for a
/// command that was begun, which is there whole or not at all.
pub(super) fn compare(
    part: &mut Part,
    begun: Option<&Command>,
    found: &Found,
) -> Result<Fate, String> {
    let charged = found.spent + found.allowed;
    let Some(difference) = difference(part, found) else {
        part.spent = charged;
        return Ok(Fate::Absent);
    };
    let Some(command) = begun else { return Err(difference) };
    let of_command =
        |difference| format!("{difference}; begun and not answered was {}", brief(command));
    let answer = found.answer(part, command).ok_or_else(|| of_command(difference))?;
    let mut after = part.clone();
    after.answered(command, &answer).map_err(of_command)?;
    if let Some(difference) = self::difference(&after, found) {
        return Err(of_command(difference));
    }
    *part = after;
    part.spent = charged;
    Ok(Fate::Whole)
}

/// The first difference between what should be there and what is.
fn difference(part: &Part, found: &Found) -> Option<String> {
    let calls = || differing(&part.calls, &found.calls, |due, is| is.is_as(due, part.index));
    let dead = || differing(&part.dead, &found.dead, |(_, due), is| is.is_as(due, part.index));
    let records = || {
        differing(&part.records, &found.records, |(revision, blob), (found, bytes)| {
            revision == found && blob.make(part.index) == *bytes
        })
    };
    let dedupes = || differing(&part.dedupes, &found.dedupes, |due, is| due == is);
    let spent = || {
        let (due, is, allowed) = (part.spent, found.spent, found.allowed);
        let is_so = (is..=is + allowed).contains(&due);
        let allowed = || format!("{is} are, and {allowed} more may be");
        (!is_so).then(|| format!("the meter: {due} should be spent, and {}", allowed()))
    };
    let calls = || calls().map(|text| format!("call {text}"));
    let dead = || dead().map(|text| format!("dead call {text}"));
    let records = || records().map(|text| format!("record {text}"));
    let dedupes = || dedupes().map(|text| format!("dedupe key {text}"));
    let first =
        calls().or_else(dead).or_else(|| found.disorder()).or_else(records).or_else(dedupes);
    first.or_else(spent).map(|text| format!("part {}, {text}", part.index))
}

fn differing<A: Debug, B: Debug>(
    due: &BTreeMap<u64, A>,
    is: &BTreeMap<u64, B>,
    is_same: impl Fn(&A, &B) -> bool,
) -> Option<String> {
    for (key, due) in due {
        match is.get(key) {
            None => return Some(format!("{key} is lost: {due:?}")),
            Some(is) if !is_same(due, is) => {
                return Some(format!("{key} should be {due:?}, and is {}", brief(is)));
            }
            Some(_) => {}
        }
    }
    let extra = is.iter().find(|(key, _)| !due.contains_key(key));
    extra.map(|(key, is)| format!("{key} should not be there: {}", brief(is)))
}

/// As much of it as anyone reads: bodies are long.
fn brief(thing: &impl Debug) -> String {
    format!("{thing:?}").chars().take(BRIEF_MAX).collect()
}

impl FoundCall {
    fn is_as(&self, due: &Call, part: usize) -> bool {
        // Which blob it is shows in its bytes alone.
        let call = Call { body: due.body, ..self.call.clone() };
        call == *due && self.body == due.body.make(part)
    }
}

impl Found {
    /// Two calls that do not wait in the order in which they came.
    fn disorder(&self) -> Option<String> {
        let arrivals: Vec<_> = self.calls.iter().map(|(id, call)| (id, call.arrival)).collect();
        let wrong = arrivals.windows(2).find(|pair| pair[0].1.is_none() || pair[0].1 >= pair[1].1);
        wrong.map(|pair| format!("calls have changed their order: {pair:?}"))
    }

    /// What the answer to a command would have been, if it was done.
    fn answer(&self, part: &Part, command: &Command) -> Option<Answer> {
        match command {
            Command::Act(change) => self.acted(part, change),
            Command::Claim { .. } => Some(Answer::Claimed(self.started(part))),
            Command::Consume { .. } => Some(Answer::Paid),
        }
    }

    fn acted(&self, part: &Part, change: &Change) -> Option<Answer> {
        let mut new = self.calls.keys().filter(|id| !part.calls.contains_key(id));
        let mut id = |fresh: &Fresh| {
            let first = fresh.dedupe.and_then(|key| part.dedupes.get(&key));
            first.or_else(|| new.next()).copied()
        };
        let enqueued = change.enqueue.iter().map(&mut id).collect::<Option<_>>()?;
        let mut settled = part.clone();
        settled.settle_all(change);
        let cancelled = change.cancel.iter().map(|id| settled.has(*id)).collect();
        let revision = |key| self.records.get(key).map(|(revision, _)| *revision);
        // No one can tell any more at which revision a record was removed.
        let written = change.write.iter().map(|write| match write.bytes {
            Some(_) => revision(&write.key),
            None => Some(u64::MAX),
        });
        Some(Answer::Acted { enqueued, cancelled, written: written.collect::<Option<_>>()? })
    }

    /// Calls that are in flight and were not, each lane's in the order in which they start.
    fn started(&self, part: &Part) -> Vec<Start> {
        let token = |id| part.calls.get(id).and_then(|call: &Call| call.token);
        let mut starts = Vec::new();
        for (id, FoundCall { call, body, .. }) in &self.calls {
            if let Some(new) = call.token.filter(|new| token(id) != Some(*new)) {
                let (failures, digest) = (call.failures, digest(body));
                starts.push(Start { call: *id, token: new, failures, digest });
            }
        }
        starts.sort_unstable_by_key(|start| start.token);
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(number: u64) -> Fresh {
        let body = Blob { number, bytes: 30 };
        Fresh { lane: 1, priority: 0, weight: 2, dedupe: Some(number), body }
    }

    fn enqueue(numbers: &[u64]) -> Command {
        let enqueue = numbers.iter().map(|number| fresh(*number)).collect();
        Command::Act(Change { enqueue, ..Change::default() })
    }

    /// A part after an act that enqueued these, with ids that are the same numbers.
    fn after(numbers: &[u64]) -> Part {
        let mut part = Part::new(0);
        let (enqueued, cancelled, written) = (numbers.to_vec(), vec![], vec![]);
        let answer = Answer::Acted { enqueued, cancelled, written };
        part.answered(&enqueue(numbers), &answer).unwrap();
        part
    }

    /// What would be found if all is well.
    fn sound(part: &Part) -> Found {
        let call = |(id, call): (&u64, &Call)| {
            let found =
                FoundCall { call: call.clone(), body: call.body.make(0), arrival: Some(*id) };
            (*id, found)
        };
        let calls = part.calls.iter().map(call).collect();
        Found { calls, dedupes: part.dedupes.clone(), spent: part.spent, ..Found::default() }
    }

    #[test]
    fn what_was_answered_must_be_there_as_it_was() {
        let mut part = after(&[1, 2]);
        let found = sound(&part);
        assert_eq!(compare(&mut part, None, &found), Ok(Fate::Absent));
        let spoil: [fn(&mut Found); 5] = [
            |found| drop(found.calls.remove(&1)),
            |found| found.calls.get_mut(&1).unwrap().body[29] ^= 1,
            |found| found.calls.get_mut(&1).unwrap().arrival = Some(9),
            |found| found.dedupes.clear(),
            |found| found.spent += 1,
        ];
        for spoil in spoil {
            let mut found = sound(&part);
            spoil(&mut found);
            assert!(compare(&mut part, None, &found).is_err(), "{found:?}");
        }
    }

    #[test]
    fn what_was_begun_is_there_whole_or_not_at_all() {
        let begun = enqueue(&[3, 4]);
        let look = |found: &[u64]| {
            let mut part = after(&[1, 2]);
            let fate = compare(&mut part, Some(&begun), &sound(&after(found)));
            (fate, part.calls.len())
        };
        assert_eq!(look(&[1, 2]), (Ok(Fate::Absent), 2));
        assert_eq!(look(&[1, 2, 3, 4]), (Ok(Fate::Whole), 4));
        assert!(look(&[1, 2, 3]).0.is_err());
        assert!(look(&[1, 3, 4]).0.is_err());
        assert!(look(&[1, 2, 3, 4, 5]).0.is_err());
    }
}
