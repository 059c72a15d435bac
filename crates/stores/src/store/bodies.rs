//! Bodies in memory: those that do not last yet, and those that were enqueued last, for most
//! calls start soon after.

use super::ByCall;
use std::collections::VecDeque;
use tollgate_core::lanes::{CallId, Payload};

/// Bodies that are in the log and kept in memory all the same.
const LOGGED_BYTES_MAX: usize = 32 << 20;

/// The newest bodies.
#[derive(Debug, Default)]
pub(crate) struct RecentBodies {
    bodies: ByCall<Payload>,
    /// Those that are in the log, oldest first, also some that are gone.
    logged: VecDeque<(CallId, usize)>,
    logged_bytes: usize,
}

impl RecentBodies {
    /// Keeps a body that is not in the log.
    pub(crate) fn insert(&mut self, id: CallId, payload: Payload) {
        self.bodies.insert(id, payload);
    }

    /// From now on a body can be read from the log: it is kept as long as there is room.
    pub(crate) fn note_logged(&mut self, id: CallId) {
        let Some(bytes) = self.bodies.get(&id).map(|body| body.bytes() + size_of::<CallId>())
        else {
            return;
        };
        self.logged.push_back((id, bytes));
        self.logged_bytes += bytes;
        while self.logged_bytes > LOGGED_BYTES_MAX {
            let Some((oldest, bytes)) = self.logged.pop_front() else { return };
            self.logged_bytes -= bytes;
            self.bodies.remove(&oldest);
        }
    }

    /// Forgets the body of a call that has ended.
    pub(crate) fn remove(&mut self, id: CallId) {
        self.bodies.remove(&id);
    }

    pub(crate) fn find(&self, id: CallId) -> Option<&Payload> {
        self.bodies.get(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bodies_in_the_log_are_forgotten_and_the_oldest_first() {
        let mut bodies = RecentBodies::default();
        let large = || Payload::body_alone(&vec![0; LOGGED_BYTES_MAX / 2]);
        for id in [1, 2, 3, 4].map(CallId) {
            bodies.insert(id, large());
        }
        for id in [1, 2].map(CallId) {
            bodies.note_logged(id);
        }
        let kept = |bodies: &RecentBodies| [1, 2, 3, 4].map(|id| bodies.find(CallId(id)).is_some());
        assert_eq!(kept(&bodies), [false, true, true, true]);
        bodies.remove(CallId(2));
        bodies.note_logged(CallId(3));
        assert_eq!(kept(&bodies), [false, false, true, true]);
    }
}
