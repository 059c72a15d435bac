//! Changes of limits with the records beside them.

use super::Naive;
use crate::contract::{Configure, ConfigureError};
use crate::time::Now;

impl Naive {
    /// Changes limits and records, or nothing.
    pub fn configure(&mut self, change: Configure, now: Now) -> Result<(), ConfigureError> {
        self.advance(now);
        change.check_size()?;
        self.check_writes(&change.write)?;
        let mut after = self.clone();
        for write in &change.write {
            after.write(write);
        }
        for (name, definition) in change.limits {
            after.define_limit(&name, definition, now);
        }
        for (limit, partition, definition) in change.overrides {
            after.override_partition(&limit, &partition, definition, now)?;
        }
        *self = after;
        Ok(())
    }
}
