//! Meters: looked at, closed, reopened, reset.

use crate::client::Client;
use crate::error::ClientError;
use crate::limits::PAGE;
use crate::path::{path, with_query};
use crate::wire::meter::{MeterPageWire, MeterWire};
use serde::de::IgnoredAny;
use serde_json::json;
use tollgate_core::Span;
use tollgate_engine::MeterState;

impl Client {
    /// How one meter stands.
    pub async fn meter(
        &self,
        limit: &str,
        partition: Option<&str>,
    ) -> Result<MeterState, ClientError> {
        match partition {
            Some(partition) => {
                let meter: MeterWire = self.fetch(path(&["meters", limit, partition])).await?;
                Ok(meter.into())
            }
            None => {
                let query = [("limit", Some("1"))];
                let page: MeterPageWire =
                    self.fetch(with_query(path(&["meters", limit]), &query)).await?;
                Ok(page.global.into())
            }
        }
    }

    /// The meters of a limit's partitions, sorted by name, after one; and what to go on after.
    pub async fn meters(
        &self,
        limit: &str,
        after: Option<&str>,
    ) -> Result<(Vec<MeterState>, Option<String>), ClientError> {
        let query = [("after", after), ("limit", Some(PAGE))];
        let page: MeterPageWire = self.fetch(with_query(path(&["meters", limit]), &query)).await?;
        Ok((page.partitions.into_iter().map(MeterState::from).collect(), page.next))
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for.
    pub async fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), ClientError> {
        let body = json!({"for": span.into().to_string(), "reason": reason});
        let _: IgnoredAny = self.post(of_meter(limit, partition, "close"), &body).await?;
        Ok(())
    }

    /// Ends a closure before its time.
    pub async fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(of_meter(limit, partition, "reopen")).await?;
        Ok(())
    }

    /// Forgets what was spent at a meter: an operator's act.
    pub async fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(of_meter(limit, partition, "reset")).await?;
        Ok(())
    }
}

fn of_meter(limit: &str, partition: Option<&str>, action: &str) -> String {
    match partition {
        Some(partition) => path(&["meters", limit, partition, action]),
        None => path(&["meters", limit, action]),
    }
}
