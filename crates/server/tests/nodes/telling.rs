//! What the history that the nodes share tells of the calls, once all is done.

use crate::asking::Nodes;
use crate::record::Record;
use crate::{LANES, told};
use serde_json::Value;
use std::collections::BTreeMap;

/// All of it, oldest first, as a node tells it.
pub(crate) async fn history(nodes: &Nodes, node: usize) -> Vec<Value> {
    let (mut events, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/history?queue=q&limit=1000{after}");
        let mut page = told(nodes, node, &path).await;
        events.append(page["events"].as_array_mut().unwrap());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    events.reverse();
    events
}

/// Adds what is not told of a call, or not once, or not in order: each attempt, and then the end; and the ends of a
/// lane in the order of its calls.
pub(crate) fn judge(record: &Record, events: &[Value], faults: &mut Vec<String>) {
    let mut lives: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in events {
        lives.entry(event["call"].as_str().unwrap()).or_default().push(event);
    }
    let calls = record.calls.lock();
    let ended = |event: &&Value| event["event"] == "ended";
    for lane in 0..LANES {
        let name = lane.to_string();
        let of_lane = events.iter().filter(ended).filter(|event| event["lane"] == name.as_str());
        let told: Vec<&str> = of_lane.map(|event| event["call"].as_str().unwrap()).collect();
        let its_calls = calls.range((lane, 0)..(lane + 1, 0));
        let in_order: Vec<&str> = its_calls.filter_map(|(_, call)| call.id.as_deref()).collect();
        if told != in_order {
            faults.push(format!("history tells the ends of lane {lane} as {told:?}"));
        }
    }
    let accepted: Vec<&str> = calls.values().filter_map(|call| call.id.as_deref()).collect();
    for id in &accepted {
        let life = lives.remove(id).unwrap_or_default();
        if !is_whole(&life) {
            faults.push(format!("history tells of {id}: {life:?}"));
        }
    }
    if !lives.is_empty() {
        faults.push(format!("history tells of what nobody handed in: {lives:?}"));
    }
}

fn is_whole(life: &[&Value]) -> bool {
    // What was handed back is told, and was no attempt.
    let life: Vec<_> = life.iter().filter(|event| event["outcome"] != "released").collect();
    let Some((end, attempts)) = life.split_last() else { return false };
    let is_told = |(event, number): (&&&Value, u64)| {
        event["event"] == "settled" && event["attempt"] == number
    };
    let are_told = attempts.iter().zip(1..).all(is_told);
    are_told && end["event"] == "ended" && end["end"] == "done" && end["attempts"] == attempts.len()
}
