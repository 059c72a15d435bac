//! Changes of limits that were cut short after they were written down: who says so again has them in force.

use super::record::LimitRecord;
use super::{Of, Parts, key};
use crate::error::Error;
use tollgate_core::LimitName;
use tollgate_core::contract::{ConfigureError, Meters};
use tollgate_core::lanes::{Revision, Write};

impl<S: Meters + 'static> Parts<S> {
    /// Whether the store has in force what is written down.
    pub(super) async fn is_in_force(
        &self,
        name: &LimitName,
        of: &Of,
        record: &LimitRecord,
    ) -> Result<bool, Error> {
        let partition = if let Of::Partition(partition) = of { Some(partition) } else { None };
        let own = partition.and_then(|partition| record.overrides.get(partition.as_str()));
        let expected = own.cloned().or_else(|| record.in_force());
        let meter = (name.clone(), partition.cloned());
        let found = self.store.inspect(vec![meter]).await?.pop().flatten();
        Ok(found.map(|found| found.definition.limit().clone()) == expected)
    }

    /// Makes up for a change that was cut short after it was written down, which can happen where a
    /// store does not write all of it together. Says whether nobody else was faster.
    pub(super) async fn put_in_force_again(
        &self,
        name: &LimitName,
        of: &Of,
        (record, revision): (&LimitRecord, Revision),
    ) -> Result<bool, Error> {
        let mut change = LimitRecord::default().changed_to(record, name)?;
        if let Of::Partition(partition) = of
            && !record.overrides.contains_key(partition.as_str())
        {
            change.overrides.push((name.clone(), partition.clone(), None));
        }
        let bytes = Some(record.written()?);
        change.write.push(Write { key: key(name)?, expected: revision, bytes });
        match self.store.configure(change).await? {
            Err(ConfigureError::RevisionDiffers { .. }) => return Ok(false),
            changed => changed?,
        }
        self.was_written();
        self.crowds.wake_limit(name);
        tracing::info!(limit = name.as_str(), "limit put in force as it is written down");
        Ok(true)
    }
}
