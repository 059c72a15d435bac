//! What the server's own history tells, read from its folder once it has ended.

use crate::Process;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tollgate::Tollgate;
use tollgate::lanes::{End, Event, HistoryQuery, Outcome, QueueName, What};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Every attempt and every end, oldest first.
pub(crate) struct Told(Vec<Event>);

impl Told {
    /// Ends the server well, and reads what it wrote.
    pub(crate) fn read(mut server: Process, folder: &Path) -> Self {
        let process = server.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &process]).status().unwrap().success());
        assert!(server.0.wait().unwrap().success(), "the server did not end well");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut events = runtime.block_on(async {
            let gate = Tollgate::open(folder).await.unwrap();
            let queue = Some(QueueName::new("jobs").unwrap());
            let query = HistoryQuery { queue, most: 1_000, ..HistoryQuery::default() };
            let (mut events, mut after) = (Vec::new(), None);
            loop {
                let page = gate.history(HistoryQuery { after, ..query.clone() }).await.unwrap();
                events.extend(page.events);
                after = page.next;
                if after.is_none() {
                    return events;
                }
            }
        });
        events.reverse();
        Self(events)
    }

    /// Every call was settled as done once, and ended by it; nothing else was there.
    pub(crate) fn each_call_is_done_once(&self, ids: &[String]) {
        let mut found: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for event in &self.0 {
            let [settled, ended] = found.entry(event.call.0.to_string()).or_default();
            match event.what {
                What::Settled { outcome: Outcome::Done, .. } => *settled += 1,
                What::Ended { end, .. } => {
                    assert_eq!(end, End::Done, "{event:?}");
                    *ended += 1;
                }
                _ => {}
            }
        }
        let expected = ids.iter().map(|id| (id.clone(), [1, 1])).collect();
        assert_eq!(found, expected);
    }

    /// In no interval more starts than the burst and what the rate gave meanwhile, on the clock that
    /// decided. What was handed back unstarted was paid back.
    pub(crate) fn starts_keep_the_limit(&self, rate: u64, burst: u64) {
        let starts = self.starts();
        for (first, begin) in starts.iter().enumerate() {
            for (last, end) in starts.iter().enumerate().skip(first) {
                let passed = u128::from(end.0 - begin.0);
                let allowed = u128::from(burst) * NANOS_PER_SECOND + u128::from(rate) * passed;
                let started = (last - first + 1) as u128;
                assert!(started * NANOS_PER_SECOND <= allowed, "{started} within {passed} ns");
            }
        }
    }

    /// In each lane a call starts when all before it have ended; one may start again, and none that
    /// is behind it in between.
    pub(crate) fn starts_keep_the_order(&self, ids: &[String], lanes: u64) {
        let place: BTreeMap<&str, u64> = ids.iter().map(String::as_str).zip(0..).collect();
        let mut latest: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, id) in self.starts() {
            let (lane, sequence) = (place[id.as_str()] % lanes, place[id.as_str()] / lanes);
            let before = latest.insert(lane, sequence);
            let follows =
                before.map_or(sequence == 0, |before| (before..=before + 1).contains(&sequence));
            assert!(follows, "call {sequence} of lane {lane} started after {before:?}");
        }
    }

    /// Whether a lease of the call ran out.
    pub(crate) fn crashed(&self, id: &str) -> bool {
        let is_crash =
            |event: &&Event| matches!(event.what, What::Settled { outcome: Outcome::Crashed, .. });
        self.0.iter().filter(is_crash).any(|event| event.call.0.to_string() == id)
    }

    /// Which attempt of a call was settled as done.
    pub(crate) fn done_by(&self, id: &str) -> Option<u64> {
        self.0.iter().filter(|event| event.call.0.to_string() == id).find_map(|event| {
            match event.what {
                What::Settled { attempt, outcome: Outcome::Done, .. } => Some(u64::from(attempt)),
                _ => None,
            }
        })
    }

    /// When which call started and paid, oldest first.
    fn starts(&self) -> Vec<(u64, String)> {
        let starts = self.0.iter().filter_map(|event| match event.what {
            What::Settled { outcome: Outcome::Released, .. } => None,
            What::Settled { started, .. } => {
                Some((started.at.as_nanos(), event.call.0.to_string()))
            }
            _ => None,
        });
        let mut starts: Vec<(u64, String)> = starts.collect();
        starts.sort();
        starts
    }
}
