//! Commands that one thread sends together: the home hears of the first when the last is there.
//!
//! Whoever does commands is woken by the first, often on the same processor, and has done it before the second is
//! sent: that takes two wakes and two batches, and in between somebody is told what is not so any more.

use super::home::Commands;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// What this thread is sending together, if it is.
    static SENDING: Cell<Sending> = const { Cell::new(Sending { to: 0, is_unheard: false }) };
}

#[derive(Clone, Copy)]
struct Sending {
    /// The address of who takes the commands; 0: nobody's are sent together.
    to: usize,
    /// Some were taken of which nobody heard.
    is_unheard: bool,
}

/// Lets `send` send commands, of which the home hears afterwards.
pub(super) fn together<T>(commands: Arc<dyn Commands>, send: impl FnOnce() -> T) -> T {
    let to = Arc::as_ptr(&commands).cast::<()>().addr();
    let before = SENDING.replace(Sending { to, is_unheard: false });
    let _announced = Announced { commands, before };
    send()
}

/// Whether they are to hear later of what they take from this thread, and will.
pub(crate) fn is_heard_later<C: Commands>(commands: &C) -> bool {
    let sending = SENDING.get();
    let is_to_them = sending.to == std::ptr::from_ref(commands).addr();
    if is_to_them {
        SENDING.set(Sending { is_unheard: true, ..sending });
    }
    is_to_them
}

/// Tells of what was sent, also if sending panics.
struct Announced {
    commands: Arc<dyn Commands>,
    before: Sending,
}

impl Drop for Announced {
    fn drop(&mut self) {
        if SENDING.replace(self.before).is_unheard {
            self.commands.announce();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::command::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what it takes and hears.
    #[derive(Default)]
    struct Counting {
        taken: AtomicUsize,
        heard: AtomicUsize,
    }

    impl Commands for Counting {
        fn take(&self, _: Box<dyn Command>) {
            unreachable!("no command is sent here");
        }

        fn announce(&self) {
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counting {
        fn send(&self) {
            self.taken.fetch_add(1, Ordering::Relaxed);
            if !is_heard_later(self) {
                self.announce();
            }
        }

        fn counts(&self) -> (usize, usize) {
            (self.taken.load(Ordering::Relaxed), self.heard.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn what_is_sent_together_is_heard_of_once_and_of_others_at_once() {
        let [one, other] = [Arc::<Counting>::default(), Arc::default()];
        one.send();
        assert_eq!(one.counts(), (1, 1));
        together(one.clone(), || {
            one.send();
            one.send();
            other.send();
            assert_eq!((one.counts(), other.counts()), ((3, 1), (1, 1)));
            together(other.clone(), || {
                other.send();
                one.send();
                assert_eq!((one.counts(), other.counts()), ((4, 2), (2, 1)));
            });
            assert_eq!(other.counts(), (2, 2));
        });
        assert_eq!(one.counts(), (4, 3));
        together(one.clone(), || {});
        one.send();
        assert_eq!((one.counts(), other.counts()), ((5, 4), (2, 2)));
    }

    #[test]
    fn it_is_heard_of_if_sending_panics_too() {
        let one = Arc::<Counting>::default();
        let sent = std::panic::catch_unwind(|| {
            together(one.clone(), || {
                one.send();
                panic!("on purpose");
            })
        });
        assert!(sent.is_err());
        assert_eq!(one.counts(), (1, 1));
        one.send();
        assert_eq!(one.counts(), (2, 2));
    }
}
