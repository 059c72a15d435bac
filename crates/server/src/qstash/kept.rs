//! What the face keeps beside calls: records, each changed if it is still as it was read.

use super::error::Fault;
use super::face::ApiRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tollgate::Error;
use tollgate::lanes::{ActError, Key, PAGE_MAX, Record, Revision, Write};

impl ApiRequest<'_> {
    /// What is kept under a key.
    pub(super) async fn kept<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Fault> {
        Ok(self.found(key).await?.0)
    }

    /// All that is kept under keys that begin so, with what is behind that.
    pub(super) async fn all_kept<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, T)>, Fault> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.app.gate.records_of(prefix, after.as_deref(), PAGE_MAX).await;
            let page = page.map_err(|error| self.fault(error))?;
            for (key, record) in &page {
                let name = key.strip_prefix(prefix).unwrap_or_default();
                all.push((name.to_owned(), read(record)?));
            }
            after = page.last().map(|(key, _)| key.to_string());
            if page.len() < PAGE_MAX {
                return Ok(all);
            }
        }
    }

    /// Changes what is kept under a key; `None` removes it, or leaves it out. Says what there was.
    pub(super) async fn change_kept<T: DeserializeOwned + Serialize + Clone>(
        &self,
        key: &str,
        change: impl Fn(Option<T>) -> Result<Option<T>, Fault>,
    ) -> Result<Option<T>, Fault> {
        loop {
            let (before, expected) = self.found(key).await?;
            let after: Option<T> = change(before.clone())?;
            if before.is_none() && after.is_none() {
                return Ok(None);
            }
            let bytes = after.as_ref().map(serde_json::to_vec).transpose();
            let bytes = bytes.map_err(Fault::unavailable)?.map(Vec::into_boxed_slice);
            let name = Key::new(key).map_err(Fault::invalid)?;
            match self.app.gate.keep(Write { key: name, expected, bytes }).await {
                Ok(_) => return Ok(before),
                // Changed by someone else meanwhile: their change comes first.
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(self.fault(error)),
            }
        }
    }

    async fn found<T: DeserializeOwned>(&self, key: &str) -> Result<(Option<T>, Revision), Fault> {
        let record = self.app.gate.record(key).await.map_err(|error| self.fault(error))?;
        let Some(record) = record else { return Ok((None, Revision(0))) };
        Ok((Some(read(&record)?), record.revision))
    }
}

fn read<T: DeserializeOwned>(record: &Record) -> Result<T, Fault> {
    serde_json::from_slice(&record.bytes)
        .map_err(|error| Fault::unavailable(format!("a record cannot be read: {error}")))
}
