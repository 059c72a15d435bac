//! What Redis says when it fails, as what the caller can do about it.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::time::Duration;
use tollgate_core::contract::StoreError;

/// What a server says that has no room. A script's own error may come wrapped in another.
const FULL: [&str; 2] = ["OOM", "MISCONF"];
/// What a server says that has to come to itself first, or to find its master.
const AWAY: [&str; 8] = [
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "BUSY",
    "UNBLOCKED",
];

/// What to do about a certificate that is not trusted.
const CURE: &str = "name the authority that signed it, or put it among those of the system";

/// Of an error of a command.
pub(super) fn of(error: RedisError) -> StoreError {
    let (told, code) = (error.to_string(), error.code().unwrap_or_default());
    let says = |words: &[&str]| words.iter().any(|word| *word == code || has_word(&told, word));
    match error.kind() {
        // Keys of one script are on two servers until they all have moved.
        ErrorKind::Server(ServerErrorKind::Ask) => StoreError::Unreachable {
            reason: format!("keys of the cluster are being moved ({told})"),
        },
        ErrorKind::Server(ServerErrorKind::Moved) => StoreError::Failed {
            reason: format!(
                "this Redis is one server of a cluster: hand over a connection to the cluster ({told})"
            ),
        },
        ErrorKind::Server(_) | ErrorKind::Extension if says(&FULL) => StoreError::Full {
            reason: format!("Redis takes no more writes: give it memory, or disk ({told})"),
        },
        ErrorKind::Server(_) | ErrorKind::Extension if says(&AWAY) => {
            StoreError::Unreachable { reason: format!("Redis is not ready to write ({told})") }
        }
        // To try again would be of no use.
        ErrorKind::Io if has_word(&told, "certificate") => StoreError::Failed {
            reason: format!("the certificate of Redis is not trusted: {CURE} ({told})"),
        },
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
            StoreError::Unreachable { reason: format!("the connection to Redis is lost ({told})") }
        }
        _ => StoreError::Failed {
            reason: format!("Redis refuses: see to its password, its rights and its keys ({told})"),
        },
    }
}

/// Of a url that is none. It is not told, for there may be a password in it.
pub(super) fn of_url(error: RedisError) -> StoreError {
    StoreError::Failed {
        reason: format!("the url of Redis cannot be used: {error}. One is redis://host:6379"),
    }
}

/// Redis did not answer in time.
pub(super) fn late(deadline: Duration) -> StoreError {
    StoreError::Unreachable { reason: format!("Redis did not answer within {deadline:?}") }
}

/// A script answered what it never does.
pub(super) fn strange() -> StoreError {
    StoreError::Failed { reason: "Redis answered a script with something else".to_owned() }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{Value, parse_redis_value};

    /// An error as the server writes it.
    fn said(line: &str) -> StoreError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else { panic!("{value:?}") };
        of(error.into())
    }

    #[test]
    fn what_the_caller_can_do_about_an_error_is_told() {
        let full = [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR Error running script (call to f_1): @user_script:3: -OOM command not allowed",
            "MISCONF Redis is configured to save RDB snapshots, but is unable to persist",
        ];
        for line in full {
            assert!(matches!(said(line), StoreError::Full { .. }), "{line}");
        }
        let away = [
            "READONLY You can't write against a read only replica.",
            "LOADING wait",
            "ASK 1 127.0.0.1:1",
            "TRYAGAIN Multiple keys request during rehashing of slot",
        ];
        for line in away {
            assert!(matches!(said(line), StoreError::Unreachable { .. }), "{line}");
        }
        let failed = ["WRONGTYPE wrong kind", "NOPERM no", "NOAUTH no", "MOVED 1 127.0.0.1:1"];
        for line in failed {
            assert!(matches!(said(line), StoreError::Failed { .. }), "{line}");
        }
        let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(matches!(of(cut), StoreError::Unreachable { .. }));
    }
}
