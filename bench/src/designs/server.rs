//! The processor time that PostgreSQL takes, where it runs on this machine.

use std::fs;

use tokio_postgres::Client;

/// The kernel counts processor time in hundredths of a second, for programs at least.
const TICK_MICROS: u64 = 10_000;

/// A server whose processes may be seen from here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    postmaster: Option<u32>,
}

impl Server {
    pub(crate) async fn find(client: &Client) -> anyhow::Result<Self> {
        let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
        let stat = u32::try_from(backend).ok().and_then(stat_of);
        // On another machine the number may be that of any process here.
        let stat = stat.filter(|stat| stat.name == "postgres");
        Ok(Self { postmaster: stat.map(|stat| stat.parent) })
    }

    /// Of all its processes, those that have ended too; nothing if it is out of sight.
    pub(crate) fn cpu_micros(self) -> Option<u64> {
        let postmaster = self.postmaster?;
        let own = stat_of(postmaster)?;
        let mut ticks = own.ticks + own.ticks_of_ended_children;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let stat = process.and_then(stat_of).filter(|stat| stat.parent == postmaster);
            ticks += stat.map_or(0, |stat| stat.ticks);
        }
        Some(ticks * TICK_MICROS)
    }
}

#[derive(Debug, PartialEq)]
struct Stat {
    name: String,
    parent: u32,
    ticks: u64,
    ticks_of_ended_children: u64,
}

fn stat_of(process: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse(line: &str) -> Option<Stat> {
    let (front, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Stat {
        name: front.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        ticks: number(11)? + number(12)?,
        ticks_of_ended_children: number(13)? + number(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_the_kernel() {
        let line = "2523 (a) b) S 17 2523 2523 0 -1 4194560 8 9 0 0 30 12 500 60 20 0 1 0 99";
        let stat =
            Stat { name: "a) b".to_owned(), parent: 17, ticks: 42, ticks_of_ended_children: 560 };
        assert_eq!(parse(line), Some(stat));
    }
}
