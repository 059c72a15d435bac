//! Room for connections: each takes a file descriptor, and systems start with few.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Takes as many as the system lets this process have.
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "file descriptors stay few, and so do connections");
    }
}
