//! Who waits for something of a name, in this process.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Those who wait, by what they wait for. What nobody waits for costs nothing.
#[derive(Default)]
pub(super) struct Audience {
    waiting: Mutex<HashMap<String, Weak<Notify>>>,
}

impl Audience {
    /// Tells all who wait for this.
    pub(super) fn told(&self, name: &str) {
        let told = self.waiting.lock().remove(name);
        if let Some(told) = told.and_then(|told| told.upgrade()) {
            told.notify_waiters();
        }
    }

    /// Tells all who wait for something of which this is so.
    pub(super) fn told_each(&self, is_it: impl Fn(&str) -> bool) {
        let names: Vec<String> =
            self.waiting.lock().keys().filter(|it| is_it(it)).cloned().collect();
        names.iter().for_each(|name| self.told(name));
    }

    /// Ready when it is told after this was first polled.
    pub(super) async fn until_told(&self, name: &str) {
        let place = Listener { audience: self, name, notify: self.place(name) };
        place.notify.notified().await;
    }

    fn place(&self, name: &str) -> Arc<Notify> {
        let mut waiting = self.waiting.lock();
        if let Some(known) = waiting.get(name).and_then(Weak::upgrade) {
            return known;
        }
        let notify = Arc::new(Notify::new());
        waiting.insert(name.to_owned(), Arc::downgrade(&notify));
        notify
    }
}

/// Someone who waits, and may leave.
struct Listener<'a> {
    audience: &'a Audience,
    name: &'a str,
    notify: Arc<Notify>,
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let mut waiting = self.audience.waiting.lock();
        let is_last = Arc::strong_count(&self.notify) == 1;
        let is_it = |known: &Weak<Notify>| known.ptr_eq(&Arc::downgrade(&self.notify));
        if is_last && waiting.get(self.name).is_some_and(is_it) {
            waiting.remove(self.name);
        }
    }
}
