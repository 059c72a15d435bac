//! Section: bytes per key, from what the process holds before and after it inserts the keys.

use anyhow::Context as _;

use crate::contender::Contender;
use crate::contenders::{ALL, REFERENCE, named};
use crate::keys::Key;
use crate::plan::{MANY_KEYS, Plan};
use crate::process;
use crate::table::{Table, grouped};

/// The child's command: `memory KIND CONTENDER KEYS`.
pub(crate) const COMMAND: &str = "memory";

/// Lets a child measure each contender and returns the section.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Bytes per key",
        &["keys", "contender", "bytes per key", "at the peak while growing", "× governor"],
    );
    add_kind::<u64>(&mut table, plan)?;
    add_kind::<String>(&mut table, plan)?;
    Ok(table)
}

/// The child's part: prints the bytes held, and held at the peak, by that many keys.
pub(crate) fn measure_here(kind: &str, name: &str, keys: usize) -> anyhow::Result<Vec<u64>> {
    let contender = named(name)?;
    if kind == u64::KIND { fill::<u64>(contender, keys) } else { fill::<String>(contender, keys) }
}

fn fill<K: Key>(contender: &Contender, keys: usize) -> anyhow::Result<Vec<u64>> {
    let open = K::opened_by(contender).context("the contender has no such keys")?;
    let before = process::memory_bytes("VmRSS")?;
    let limiter = open(MANY_KEYS, keys);
    for number in 0..keys {
        limiter.decide_each(&[K::numbered(number)]);
    }
    let after = process::memory_bytes("VmRSS")?;
    let peak = process::memory_bytes("VmHWM")?;
    // The limiter lives until the memory is read.
    drop(limiter);
    Ok(vec![after.saturating_sub(before), peak.saturating_sub(before)])
}

fn add_kind<K: Key>(table: &mut Table, plan: &Plan) -> anyhow::Result<()> {
    let mut held = Vec::new();
    for contender in ALL.iter().filter(|contender| K::opened_by(contender).is_some()) {
        let keys = plan.keys.to_string();
        let [after, peak] = process::ask(&[COMMAND, K::KIND, contender.name, &keys])?;
        held.push((contender.name, after, peak));
    }
    let reference = held.iter().find(|(name, ..)| *name == REFERENCE).map(|(_, after, _)| *after);
    for (name, after, peak) in held {
        let per_key = |bytes: u64| format!("{:.0}", bytes as f64 / plan.keys as f64);
        let ratio = reference.map_or(f64::NAN, |reference| after as f64 / reference as f64);
        let title = format!("{} {}", grouped(plan.keys), K::KIND);
        table.add(vec![
            title,
            name.to_owned(),
            per_key(after),
            per_key(peak),
            format!("{ratio:.2}"),
        ]);
    }
    Ok(())
}
