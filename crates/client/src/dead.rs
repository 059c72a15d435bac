//! Dead letters: looked at, revived and deleted.

use crate::calls::{CallId, CallPageWire, CallView, Page};
use crate::client::Client;
use crate::error::ClientError;
use crate::limits::PAGE;
use crate::path::{path, with_query};
use serde::Deserialize;
use serde_json::json;
use tollgate_core::Span;

#[derive(Deserialize)]
struct RevivedWire {
    revived: u64,
}

#[derive(Deserialize)]
struct DeletedWire {
    deleted: u64,
}

impl Client {
    /// The dead calls of a queue, or of one of its lanes, after one.
    pub async fn dead(
        &self,
        queue: &str,
        lane: Option<&str>,
        after: Option<&str>,
    ) -> Result<Page<CallView>, ClientError> {
        let parameters =
            [("queue", Some(queue)), ("lane", lane), ("after", after), ("limit", Some(PAGE))];
        Ok(self.fetch::<CallPageWire>(with_query(path(&["dead"]), &parameters)).await?.into())
    }

    /// Lets dead calls wait again, as if they were new; says how many were dead.
    pub async fn revive(&self, calls: &[CallId]) -> Result<u64, ClientError> {
        let RevivedWire { revived } =
            self.post(path(&["dead", "revive"]), &json!({"ids": calls})).await?;
        Ok(revived)
    }

    /// Lets all dead calls of a queue, or of one of its lanes, wait again, one every so often; says how
    /// many.
    pub async fn revive_all(
        &self,
        queue: &str,
        lane: Option<&str>,
        every: impl Into<Span>,
    ) -> Result<u64, ClientError> {
        let mut body = json!({"queue": queue, "every": every.into().to_string()});
        if let Some(lane) = lane {
            body["lane"] = lane.into();
        }
        let RevivedWire { revived } = self.post(path(&["dead", "revive"]), &body).await?;
        Ok(revived)
    }

    /// Deletes all dead calls of a queue, or of one of its lanes; says how many.
    pub async fn delete_dead(&self, queue: &str, lane: Option<&str>) -> Result<u64, ClientError> {
        let mut body = json!({"queue": queue});
        if let Some(lane) = lane {
            body["lane"] = lane.into();
        }
        let DeletedWire { deleted } = self.post(path(&["dead", "delete"]), &body).await?;
        Ok(deleted)
    }
}
