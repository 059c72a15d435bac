//! Reading the bodies of calls, and doing so for whoever asks, whatever thread that is on.

use super::link::number;
use crate::postgres::fault;
use crate::postgres::pool::Pool;
use crate::postgres::schema::SchemaName;
use crate::store::home::Body;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::types::Type;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{CallId, Payload};

/// Bodies that are read at a time, and at first, when it is not known how long they are.
const MOST: usize = 1_000;
const FIRST: usize = 64;

/// Where bodies are.
pub(super) struct Bodies {
    pool: Arc<Pool>,
    sql: String,
    patience: Duration,
}

impl Bodies {
    pub(super) fn new(pool: Arc<Pool>, schema: &SchemaName, patience: Duration) -> Self {
        let sql = "SELECT id, payload FROM :\"schema\".calls WHERE id = ANY ($1)";
        Self { pool, sql: schema.put_into(sql), patience }
    }

    /// The first of those that are wanted, at least one and as many as have so many bytes.
    pub(super) async fn read(
        &self,
        wanted: &[(CallId, u64)],
        bytes_max: usize,
    ) -> Vec<Answer<Body>> {
        let (mut bodies, mut bytes) = (Vec::with_capacity(wanted.len()), 0_usize);
        let (mut wanted, mut most) = (wanted, FIRST);
        while !wanted.is_empty() && (bytes < bytes_max || bodies.is_empty()) {
            let (some, rest) = wanted.split_at(most.min(wanted.len()));
            wanted = rest;
            match self.read_in_time(some).await {
                Ok(read) => {
                    bytes += read.iter().map(Body::bytes).sum::<usize>();
                    bodies.extend(read.into_iter().map(Ok));
                }
                Err(error) => bodies.extend(some.iter().map(|_| Err(error.clone()))),
            }
            // As many as have room, if the next are as long as those before.
            let average = bytes / bodies.len().max(1) + 1;
            most = (bytes_max.saturating_sub(bytes) / average).clamp(1, MOST);
        }
        bodies
    }

    async fn read_in_time(&self, wanted: &[(CallId, u64)]) -> Answer<Vec<Body>> {
        let read = tokio::time::timeout(self.patience, self.read_some(wanted)).await;
        read.unwrap_or_else(|_| {
            let reason = format!("PostgreSQL did not answer within {:?}", self.patience);
            Err(StoreError::Unreachable { reason })
        })
    }

    async fn read_some(&self, wanted: &[(CallId, u64)]) -> Answer<Vec<Body>> {
        let ids: Vec<i64> = wanted.iter().map(|(id, _)| number(id.0)).collect();
        let session = self.pool.session().await.map_err(fault::while_open)?;
        let rows = session.client().query_typed(&self.sql, &[(&ids, Type::INT8_ARRAY)]).await;
        let rows = rows.map_err(|error| fault::while_open(fault::of(error)))?;
        session.keep();
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let payload: &[u8] = row.try_get(1).map_err(fault::of)?;
            let changed = || Body::Damaged("its row in PostgreSQL was changed".to_owned());
            let body = Payload::from_kept(payload).map_or_else(changed, Body::There);
            found.insert(row.try_get::<_, i64>(0).map_err(fault::of)?, body);
        }
        Ok(ids.iter().map(|id| found.remove(id).unwrap_or(Body::Gone)).collect())
    }
}

/// Does something within the home's runtime, whoever waits for it: who drives a store may have none.
pub(super) async fn within_runtime<T>(runtime: &Handle, doing: impl Future<Output = T>) -> T {
    let mut doing = pin!(doing);
    poll_fn(|context| {
        let _entered = runtime.enter();
        doing.as_mut().poll(context)
    })
    .await
}
