//! `tollgate torture`: a child works at a store and is killed, again and again, and each time what
//! it was answered must be there.

mod child;
mod compare;
mod lines;
mod load;
mod model;
mod random;
mod tally;

use super::{Exit, TortureArguments, output};
use anyhow::Context;
use child::Child;
use compare::{Fate, compare, found};
use lines::{Command, Line, Plan};
use load::PARTS;
use model::Part;
use random::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use tollgate::embedded::{Contents, Disk, RealDisk, contents};
use tollgate::{Clock, Span, SystemClock, Timestamp};

/// It stops before it takes 1 GB: a round writes far less than what is left.
const DISK_BYTES_MAX: u64 = 750 << 20;
/// A child that takes longer to open its store is stuck.
const OPENING_MAX: Span = Span::from_minutes(2);
/// Calls of a part that have not ended: so much is read and compared in each round.
const CALLS_MANY: usize = 48;
const CALLS_FEW: usize = 4;
/// How often it says how it gets on.
const PROGRESS_EVERY: Span = Span::from_secs(2);

/// Kills and compares until time is up.
pub(super) fn torture(arguments: &TortureArguments) -> anyhow::Result<Exit> {
    let clock = SystemClock::new();
    let seed = arguments.seed.unwrap_or_else(|| clock.wall().as_nanos() / 1_000);
    let folder = arguments.folder.join(format!("tollgate-torture-{seed}"));
    let made = fs::create_dir(&folder);
    made.with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    let folder = folder.canonicalize()?;
    let mut torture = Torture::new(folder, seed, clock);
    output::progress(format_args!(
        "torturing a store in {} with seed {seed}",
        torture.folder.display()
    ));
    let difference = torture.run(arguments)?;
    let value = torture.tally.value(&torture.folder, seed, difference.as_deref());
    let text = torture.tally.text(&torture.folder, seed, difference.as_deref());
    if difference.is_none() {
        fs::remove_dir_all(&torture.folder)?;
    }
    output::outcome(arguments.json.then_some(&value), &text);
    Ok(if difference.is_none() { Exit::Done } else { Exit::Refused })
}

/// Works at the store until it is killed.
pub(super) fn work() -> anyhow::Result<Exit> {
    load::work().map(|()| Exit::Failed)
}

struct Torture {
    folder: PathBuf,
    clock: SystemClock,
    random: Random,
    /// What should be there.
    parts: Vec<Part>,
    /// The command of each part that was begun and not answered.
    begun: Vec<Option<Command>>,
    tally: Tally,
}

/// What ends a torture early: the store lost something, or it cannot go on.
enum Stop {
    Difference(String),
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Torture {
    fn new(folder: PathBuf, seed: u64, clock: SystemClock) -> Self {
        let parts = (0..PARTS).map(Part::new).collect();
        let (random, begun, tally) = (Random::new(seed), vec![None; PARTS], Tally::default());
        Self { folder, clock, random, parts, begun, tally }
    }

    /// The first difference, if there is one.
    fn run(&mut self, arguments: &TortureArguments) -> anyhow::Result<Option<String>> {
        let end = self.clock.now().plus(Span::from_secs(arguments.seconds));
        let mut told = self.clock.now();
        let rounds = arguments.rounds.unwrap_or(u64::MAX);
        while self.tally.rounds < rounds && self.clock.now() < end {
            match self.round(end) {
                Ok(()) => {}
                Err(Stop::Difference(difference)) => return Ok(Some(difference)),
                Err(Stop::Failed(error)) => return Err(error),
            }
            if self.clock.now().since(told) >= PROGRESS_EVERY {
                told = self.clock.now();
                output::progress(self.tally.progress());
            }
            if bytes_in(&self.folder)? > DISK_BYTES_MAX {
                output::progress("it takes no more of the disk, and stops");
                break;
            }
        }
        Ok(None)
    }

    /// Starts a child, kills it, and compares.
    fn round(&mut self, end: Timestamp) -> Result<(), Stop> {
        self.tally.rounds += 1;
        let plan = self.plan();
        let mut child = Child::start(&plan)?;
        self.parts = plan.parts;
        let watched = self.watch(&mut child, end);
        // What it said before it died counts, too.
        let rest = child.kill()?;
        watched?;
        for line in rest {
            self.heed(line)?;
        }
        self.tally.kills += 1;
        self.look()
    }

    /// Most rounds have segments so small that there are checkpoints; in some most calls end, so that
    /// bodies move and segments go.
    fn plan(&mut self) -> Plan {
        let (segment_bytes, checkpoint_bytes) = match self.random.below(4) {
            0 => (64 << 20, 256 << 20),
            1 => (1 << 20, 2 << 20),
            _ => (16 << 10 << self.random.below(5), 64 << 10 << self.random.below(5)),
        };
        let calls_max = if self.random.once_in(4) { CALLS_FEW } else { CALLS_MANY };
        let (folder, seed) = (self.folder.clone(), self.random.next());
        Plan {
            folder,
            seed,
            segment_bytes,
            checkpoint_bytes,
            calls_max,
            parts: std::mem::take(&mut self.parts),
        }
    }

    /// Listens to a child until it is time to kill it.
    fn watch(&mut self, child: &mut Child, end: Timestamp) -> Result<(), Stop> {
        let started = self.clock.now();
        let millis = |millis| Span::from_millis(1 + millis);
        // Some die while they open the store.
        let is_early = self.random.once_in(4);
        let early = millis(self.random.below(40));
        let later = millis(self.random.below(20) * self.random.below(20));
        let mut deadline = started.plus(if is_early { early } else { OPENING_MAX });
        let mut is_open = false;
        loop {
            let left = deadline.since(self.clock.now());
            if left.is_zero() {
                break;
            }
            match child.next(Duration::from_nanos(left.as_nanos())) {
                Some(Line::Opened) => {
                    is_open = true;
                    if !is_early {
                        deadline = self.clock.now().plus(later).min(end.plus(millis(0)));
                    }
                }
                Some(line) => self.heed(line)?,
                None if child.has_ended() => {
                    return Err(Stop::Difference("the child ended by itself".to_owned()));
                }
                None => break,
            }
        }
        if !is_open && !is_early {
            return Err(Stop::Difference("the store did not open in time".to_owned()));
        }
        Ok(())
    }

    fn heed(&mut self, line: Line) -> Result<(), Stop> {
        match line {
            Line::Opened => Ok(()),
            Line::Full(reason) => Err(Stop::Failed(anyhow::Error::msg(reason))),
            Line::Failed(reason) => Err(Stop::Difference(reason)),
            Line::Begun(part, command) => {
                self.parts[part].begun(&command);
                self.begun[part] = Some(command);
                Ok(())
            }
            Line::Answered(part, answer) => {
                let command = self.begun[part].take();
                let command = command.ok_or_else(|| {
                    Stop::Difference(format!("{answer:?} answers nothing that was begun"))
                })?;
                self.tally.answered(&self.parts[part], &command, &answer);
                let answered = self.parts[part].answered(&command, &answer);
                answered.map_err(|error| Stop::Difference(format!("part {part}, {error}")))
            }
        }
    }

    /// Compares what is in the folder with what should be.
    fn look(&mut self) -> Result<(), Stop> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(&self.folder)?);
        let Contents { checked, facts } =
            contents(&disk).map_err(|error| Stop::Difference(error.to_string()))?;
        self.tally.looked(&checked);
        let found = found(facts).map_err(Stop::Difference)?;
        for (part, found) in self.parts.iter_mut().zip(&found) {
            let begun = self.begun[part.index].take();
            let fate = compare(part, begun.as_ref(), found).map_err(Stop::Difference)?;
            match (begun, fate) {
                (None, _) => {}
                (Some(_), Fate::Whole) => self.tally.whole += 1,
                (Some(_), Fate::Absent) => self.tally.absent += 1,
            }
        }
        Ok(())
    }
}

fn bytes_in(folder: &Path) -> anyhow::Result<u64> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
