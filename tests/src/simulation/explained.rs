//! Asking why calls wait, and whether what is told comes true.

use super::record::Expected;
use super::run::{Asking, Checked, HANDS, Run};
use tollgate_core::Span;
use tollgate_core::lanes::CallId;

/// Most calls that are explained at once.
const EXPLAINED_MAX: usize = 40;

impl Run {
    /// Calls of a queue are explained, and then its workers ask: who has no reason to wait starts.
    pub(super) fn explain_and_claim(&mut self) -> Checked {
        // What is due has happened when someone is told.
        self.advance()?;
        let queue = self.catalog.queue(&mut self.random);
        let open = self.oracle.open_of(&queue);
        let first = self.random.index(open.len().max(1));
        for id in open.iter().cycle().skip(first).take(open.len().min(EXPLAINED_MAX)) {
            self.explain(*id)?;
        }
        if self.random.one_in(3) {
            return Ok(());
        }
        let asks_for = Span::from_millis(self.random.between(0, 3_000));
        let asking = Asking { queue, most: HANDS, lease: None, asks_for };
        self.claim(&asking, Expected::Anything)?;
        Ok(())
    }

    /// A call that is alone is told when it starts: not a nanosecond before, and then.
    pub(super) fn wait_out(&mut self) -> Checked {
        self.advance()?;
        let alone = self.oracle.alone(self.now);
        if alone.is_empty() {
            return Ok(());
        }
        let (queue, id) = self.random.pick(&alone).clone();
        self.explain(id)?;
        let told = self.scheduler.explain(id, self.now).and_then(|told| told.not_before);
        let Some(told) = told else {
            return Err(format!("call {} is alone, and nobody knows when it starts", id.0));
        };
        if self.workers.next_due().is_some_and(|due| due <= told) {
            return Ok(());
        }
        let asking = Asking { queue, most: HANDS, lease: None, asks_for: Span::ZERO };
        let before = told.minus(Span::from_nanos(1));
        if before > self.now.at {
            self.move_to(before);
            self.claim(&asking, Expected::Anything)?;
        }
        // Whom the first claim started is another, and holds nothing that it needs.
        self.move_to(told);
        self.claim(&asking, Expected::Start(id))?;
        Ok(())
    }

    fn explain(&mut self, id: CallId) -> Checked {
        let Some(told) = self.scheduler.explain(id, self.now) else {
            return Err(format!("call {} has not ended and is not explained", id.0));
        };
        self.oracle.explained(id, &told, self.now)
    }
}
