//! Any change: read, decide here, and write if nothing of what was read has changed since.
//!
//! Who reads says that it means to write, and others let it for a while: otherwise one that is far away
//! would never be first. Safe it is by the comparison alone.

use super::pack::Pack;
use super::scripts::Script;
use super::{RedisCells, fault, key};
use crate::shared::cells::{Change, Decide, Found, Kind, Wanted};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use std::time::Duration;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::{Now, Span, Timestamp};

/// How long others wait for who has read and is about to write: a way there and back, and what it takes
/// to decide. So long cells are held up by one that died in between.
const INTENT_MS: u64 = 100;
/// The shortest wait before another try.
const PAUSE_MIN_MICROS: u64 = 200;
/// How often the longest wait doubles.
const PAUSE_DOUBLINGS: u32 = 5;

/// How often a script is sent again that was not run.
const AGAIN_MAX: usize = 2;

/// One change under way, of cells that lie together.
pub(super) struct Attempt<'a> {
    wanted: Wanted<'a>,
    /// Where it is said what someone means to change.
    intents: String,
    /// Of all cells, those to be changed last.
    keys: Vec<String>,
    /// Tells its intents from those of others.
    owner: String,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisCells<C> {
    pub(super) async fn change_slowly(
        &self,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<()> {
        let attempt = self.attempt(wanted, &owner());
        let mut tries = 0;
        loop {
            if let Some((now, found)) = self.read(&attempt).await? {
                let changes = decide.decide(now, &found);
                if self.write(&attempt, &found, &changes).await? {
                    self.ended.notify_waiters();
                    return Ok(());
                }
            }
            self.pause(tries).await;
            tries += 1;
        }
    }

    pub(super) fn attempt<'a>(&self, wanted: Wanted<'a>, owner: &str) -> Attempt<'a> {
        let cells = || wanted.read.iter().chain(wanted.change);
        let keys = cells().map(|cell| self.keys.cell(cell)).collect();
        let intents = self.keys.intents(cells().next());
        Attempt { wanted, intents, keys, owner: owner.to_owned() }
    }

    /// The time and what is there; `None` if someone else is about to change it.
    pub(super) async fn read(&self, attempt: &Attempt<'_>) -> Answer<Option<(Now, Found)>> {
        let script = &self.scripts.read;
        let mut call = calling(script, 1 + attempt.keys.len());
        call.arg(&attempt.intents).arg(&attempt.keys);
        call.arg(&attempt.owner).arg(INTENT_MS).arg(attempt.wanted.change.len());
        let answer = self.run(script, &call).await?;
        let Value::Array(answer) = answer else { return Err(fault::strange()) };
        let mut answer = answer.into_iter();
        let seconds = number(answer.next());
        let (Some(seconds), Some(micros)) = (seconds, number(answer.next())) else {
            return Ok(None);
        };
        let values = answer.map(value).collect::<Option<Vec<_>>>().ok_or_else(fault::strange)?;
        if values.len() != attempt.keys.len() {
            return Err(fault::strange());
        }
        let mut read = values;
        let change = read.split_off(attempt.wanted.read.len());
        Ok(Some((self.now(seconds, micros.saturating_mul(1_000)), Found { read, change })))
    }

    /// Whether it was written: not if something has changed since it was read.
    pub(super) async fn write(
        &self,
        attempt: &Attempt<'_>,
        found: &Found,
        changes: &[Change],
    ) -> Answer<bool> {
        let cells = &attempt.keys[attempt.wanted.read.len()..];
        if changes.is_empty() {
            // What was read was so at one instant, and that is all there is to it.
            self.forget_intents(&attempt.intents, cells).await;
            return Ok(true);
        }
        let is_apart = attempt.wanted.change.iter().any(|cell| cell.kind.is_spread());
        let listed = Kind::ALL.into_iter().filter(|kind| key::is_listed(*kind) && !is_apart);
        let lists: Vec<Kind> = listed.collect();
        let script = &self.scripts.write;
        let mut call = calling(script, 1 + attempt.keys.len() + lists.len());
        call.arg(&attempt.intents).arg(&attempt.keys);
        for kind in &lists {
            call.arg(self.keys.list(*kind));
        }
        call.arg(&attempt.owner).arg(request(attempt, found, changes, &lists));
        match self.run(script, &call).await? {
            Value::Int(done) => Ok(done == 1),
            _ => Err(fault::strange()),
        }
    }

    async fn forget_intents(&self, intents: &str, cells: &[String]) {
        if !cells.is_empty() {
            let mut forget = redis::cmd("HDEL");
            forget.arg(intents).arg(cells);
            // Left alone, they are over soon.
            let _ = self.connection.clone().req_packed_command(&forget).await;
        }
    }

    pub(super) async fn names_listed(
        &self,
        kind: Kind,
        after: Option<&str>,
        most: usize,
    ) -> Answer<Vec<Box<str>>> {
        if !key::is_listed(kind) {
            let reason = format!("Redis keeps no list of the names of this kind: {kind:?}");
            return Err(StoreError::Failed { reason });
        }
        let script = &self.scripts.names;
        let mut call = calling(script, 1);
        call.arg(self.keys.list(kind)).arg(self.keys.start(kind));
        call.arg(after.map(key::behind).unwrap_or_default()).arg(most);
        let answer = self.run(script, &call).await?;
        let Value::Array(names) = answer else { return Err(fault::strange()) };
        let names = names.into_iter().map(|name| {
            let name = value(name).flatten().and_then(|name| String::from_utf8(name).ok());
            name.map(Into::into).ok_or_else(fault::strange)
        });
        names.collect()
    }

    /// Runs a script. A connection that could not be made is tried once more, for what was found out
    /// may have been long ago; one that was cut is not, for the script may have run. A server of a
    /// cluster that has it no more has not run it: the client knows by now who has.
    pub(super) async fn run(&self, script: &Script, call: &Cmd) -> Answer<Value> {
        let mut answer = self.run_once(script, call).await;
        for _ in 0..AGAIN_MAX {
            match &answer {
                Err(error) if was_not_run(error) => answer = self.run_once(script, call).await,
                _ => break,
            }
        }
        answer.map_err(fault::of)
    }

    async fn run_once(&self, script: &Script, call: &Cmd) -> RedisResult<Value> {
        let mut connection = self.connection.clone();
        let answer = call.query_async(&mut connection).await;
        let no_script = ErrorKind::Server(ServerErrorKind::NoScript);
        if !answer.as_ref().is_err_and(|error: &RedisError| error.kind() == no_script) {
            return answer;
        }
        // The client's own way would hand the text to all servers of a cluster, of which one may be away.
        script.in_full(call).query_async(&mut connection).await
    }

    /// What the server's clock says, or the test's.
    pub(super) fn now(&self, seconds: u64, nanos: u64) -> Now {
        let server = || {
            let at = Timestamp::default().plus(Span::from_secs(seconds));
            Now::both(at.plus(Span::from_nanos(nanos)))
        };
        self.settings.time.as_ref().map_or_else(server, |time| time())
    }

    /// Waits until a change of this process has ended, but not for long: most are of others. By chance
    /// longer or shorter, lest two meet again and again.
    pub(super) async fn pause(&self, tries: u32) {
        let longest = PAUSE_MIN_MICROS << tries.min(PAUSE_DOUBLINGS);
        let pause = Duration::from_micros(PAUSE_MIN_MICROS + random() % longest);
        let _ = tokio::time::timeout(pause, self.ended.notified()).await;
    }
}

/// Whether a script did not run, and may if it is sent again at once.
fn was_not_run(error: &RedisError) -> bool {
    error.is_connection_refusal() || error.kind() == ErrorKind::Server(ServerErrorKind::Moved)
}

/// A call of a script with so many keys, which come next.
pub(super) fn calling(script: &Script, keys: usize) -> Cmd {
    let mut call = redis::cmd("EVALSHA");
    call.arg(script.hash()).arg(keys);
    call
}

/// What the script that writes is handed.
fn request(attempt: &Attempt<'_>, found: &Found, changes: &[Change], lists: &[Kind]) -> Vec<u8> {
    let Wanted { read, change } = attempt.wanted;
    let mut pack = Pack::default();
    pack.list(4);
    pack.number(attempt.keys.len() as u64);
    pack.number(change.len() as u64);
    pack.list(attempt.keys.len());
    for value in found.read.iter().chain(&found.change) {
        pack.bytes(value.as_deref());
    }
    let changes = changes.iter().filter_map(|made| Some((made, change.get(made.at)?)));
    let changes: Vec<_> = changes.collect();
    pack.list(changes.len() * 5);
    for (Change { at, value, life }, cell) in changes {
        pack.number((read.len() + at + 1) as u64);
        pack.bytes(value.as_deref());
        pack.number(life.map_or(0, |life| life.as_millis_ceil().max(1)));
        let list = lists.iter().position(|kind| *kind == cell.kind);
        pack.number(list.map_or(0, |list| list as u64 + 1));
        pack.bytes(list.map(|_| key::entry(cell)).as_deref());
    }
    pack.finish()
}

/// A value, or that there is none; `None` if it is neither.
pub(super) fn value(value: Value) -> Option<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Some(Some(bytes)),
        Value::Nil => Some(None),
        _ => None,
    }
}

/// A number, as Redis tells the time.
fn number(value: Option<Value>) -> Option<u64> {
    match value? {
        Value::BulkString(digits) => std::str::from_utf8(&digits).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

/// A name for who changes something, that nobody else has.
pub(super) fn owner() -> String {
    format!("{:x}", random())
}

fn random() -> u64 {
    // Without chance two may meet more often, and nothing else.
    getrandom::u64().unwrap_or(0)
}
