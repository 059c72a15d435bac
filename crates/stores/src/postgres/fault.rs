//! What an error of the database means for whoever asked.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tollgate_core::contract::StoreError;

/// An operation that failed.
pub(super) struct Trouble {
    error: Error,
    may_be_done: bool,
}

impl Trouble {
    /// Before anything was committed.
    pub(super) fn before_commit(error: Error) -> Self {
        Self { error, may_be_done: false }
    }

    /// When it may have been committed, if the connection broke.
    pub(super) fn at_commit(error: Error) -> Self {
        Self { error, may_be_done: true }
    }
}

/// How often an operation is tried anew.
pub(super) struct Tries {
    broken: usize,
    missing: usize,
}

/// What to do before an operation is tried anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Nothing.
    Nothing,
    /// Make what is missing: the schema is not what it was.
    Make,
}

impl Tries {
    /// Each of so many connections may turn out to be broken.
    pub(super) fn new(connections: usize) -> Self {
        Self { broken: connections, missing: 1 }
    }

    /// Says whether to try anew, which is until the deadline if others were in the way.
    pub(super) fn again_after(&mut self, trouble: Trouble) -> Result<First, StoreError> {
        if is_undone_by_others(&trouble.error) {
            return Ok(First::Nothing);
        }
        if is_broken(&trouble.error) && !trouble.may_be_done && self.broken > 0 {
            self.broken -= 1;
            return Ok(First::Nothing);
        }
        if is_missing(&trouble.error) && self.missing > 0 {
            self.missing -= 1;
            return Ok(First::Make);
        }
        Err(of(trouble.error))
    }
}

/// What to tell of an error.
pub(super) fn of(error: Error) -> StoreError {
    let reason = reason(&error);
    match error.code() {
        _ if is_out_of_reach(&error) => StoreError::Unreachable { reason },
        Some(code) if is_full(code) => StoreError::Full { reason },
        _ => StoreError::Failed { reason },
    }
}

/// What to tell of a store that is open: the server is asked again, whatever it says, and so may be who asks here.
pub(super) fn while_open(error: StoreError) -> StoreError {
    match error {
        StoreError::Failed { reason } => StoreError::Unreachable { reason },
        other => other,
    }
}

/// What to tell of a url that cannot be read. The url is not shown: it may hold a password.
pub(super) fn of_url(error: Error) -> StoreError {
    StoreError::Failed { reason: format!("the url of PostgreSQL cannot be read: {}", deep(&error)) }
}

/// A url that asks for what this was built without.
#[cfg(not(feature = "tls"))]
pub(super) fn without_tls() -> StoreError {
    StoreError::Failed {
        reason: "the url asks for encryption, and this program was built without it: enable the feature tls, or leave sslmode out".to_owned(),
    }
}

fn reason(error: &Error) -> String {
    let Some(db) = error.as_db_error() else { return format!("PostgreSQL: {}", deep(error)) };
    let cure = cure(db.code());
    format!("PostgreSQL says {:?} ({}){cure}", db.message(), db.code().code())
}

/// The error and what caused it, since the first line alone says little.
fn deep(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

fn cure(code: &SqlState) -> &'static str {
    match code.code() {
        "25006" => ": connect to the primary",
        "28000" | "28P01" => ": check user and password of the url",
        "3D000" => ": make the database, or name another in the url",
        "3F000" | "42P01" | "42703" => {
            ": the schema was changed; remove all of it, or put back what is missing"
        }
        "42501" => ": grant the role USAGE on the schema and all rights on its tables",
        "53100" => ": make room on its disk",
        "53300" => ": raise max_connections, or keep fewer connections",
        "55P03" | "57014" => ": others hold a lock on it for too long, or it is overloaded",
        _ => "",
    }
}

/// Two transactions got in each other's way, and this one was rolled back.
fn is_undone_by_others(error: &Error) -> bool {
    let undone = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| undone.contains(code))
}

/// The connection is no more.
fn is_broken(error: &Error) -> bool {
    let is_io = || {
        let source = std::error::Error::source(error);
        let io = source.and_then(<dyn std::error::Error>::downcast_ref::<std::io::Error>);
        // A certificate that is not trusted will not be the next time.
        io.is_some_and(|error| error.kind() != std::io::ErrorKind::InvalidData)
    };
    match error.code() {
        // An operator's doing, an idle transaction cut, or what stands before the server gone.
        Some(code) => {
            matches!(code.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
                || code.code().starts_with("08")
        }
        None => error.is_closed() || is_io(),
    }
}

/// There is no such schema, or no such table in it.
fn is_missing(error: &Error) -> bool {
    error.code().is_some_and(|code| matches!(code.code(), "3F000" | "42P01"))
}

/// Out of reach for now: gone, too slow, too busy, or one that only reads.
fn is_out_of_reach(error: &Error) -> bool {
    let busy = ["25006", "53300", "55P03", "57014"];
    is_broken(error)
        || is_undone_by_others(error)
        || error.code().is_some_and(|code| busy.contains(&code.code()))
}

/// It took longer than it may: a lock of others is in the way, or the server is overloaded.
pub(super) fn is_out_of_time(error: &Error) -> bool {
    error.code().is_some_and(|code| matches!(code.code(), "55P03" | "57014"))
}

/// Out of memory, disk, or what an operator allows.
fn is_full(code: &SqlState) -> bool {
    code.code().starts_with("53")
}
