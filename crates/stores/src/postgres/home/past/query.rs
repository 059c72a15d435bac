//! Looking into history.

use super::History;
use super::days::Day;
use super::rows;
use crate::embedded::codec;
use crate::postgres::fault;
use crate::postgres::home::link::{number, shown};
use crate::postgres::pool::Session;
use crate::postgres::row::system_time;
use crate::postgres::schema::SchemaName;
use crate::store::closed;
use std::time::Duration;
use tokio::sync::SemaphorePermit;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use tollgate_core::Timestamp;
use tollgate_core::contract::{
    Answer, EVENTS_MAX, HistoryCursor, HistoryPage, HistoryQuery, StoreError,
};
use tollgate_core::lanes::{CallId, Event};

/// How many events are looked at for one page.
const LOOKS_MAX: usize = 65_536;
/// How many of them in one statement.
const LOOKS_AT_ONCE: usize = 16_384;
/// How much of records is told on one page.
const PAGE_TOLD_MAX: usize = 16 << 20;

/// The statements.
pub(super) struct Sql {
    begin: String,
    find: String,
    page: String,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName, begin: String) -> Self {
        let find = "SELECT event FROM :\"schema\".history WHERE call = $1 \
                    ORDER BY place DESC LIMIT $2";
        let page = include_str!("page.sql");
        Self { begin, find: schema.put_into(find), page: schema.put_into(page) }
    }
}

type Argument<'a> = (&'a (dyn ToSql + Sync), Type);

impl History {
    async fn session(&self) -> Answer<(SemaphorePermit<'_>, Session<'_>)> {
        let turn = self.turns.acquire().await.map_err(|_| closed())?;
        Ok((turn, self.pool.session().await?))
    }

    /// The events of a call, oldest first; of one that has more than fit on a page, the last.
    pub(super) async fn find_all(&self, call: CallId) -> Answer<Vec<Event>> {
        let (_turn, session) = self.session().await?;
        let (call, most) = (number(call.0), number(EVENTS_MAX as u64));
        let arguments: [Argument<'_>; 2] = [(&call, Type::INT8), (&most, Type::INT8)];
        let rows = self.ask(&session, &self.sql.find, &arguments).await?;
        session.keep();
        let mut events = Vec::with_capacity(rows.len());
        for row in rows.iter().rev() {
            events.extend(told_by(row.try_get(0).map_err(fault::of)?).into_iter().flatten());
        }
        events.drain(..events.len().saturating_sub(EVENTS_MAX));
        Ok(events)
    }

    /// Some of the events that are asked for, newest first: as many as are asked for, or those among as
    /// many as are looked at for one page.
    pub(super) async fn look_for(&self, query: &HistoryQuery) -> Answer<HistoryPage> {
        let most = query.most.min(EVENTS_MAX);
        let mut page = HistoryPage::default();
        if most == 0 {
            return Ok(page);
        }
        let (_turn, session) = self.session().await?;
        let (mut looked, mut told) = (0, 0);
        let mut after = query.after.map_or(u64::MAX, |HistoryCursor(place)| place);
        // Most pages have what is looked at: then nothing is looked at for nothing.
        let mut looks = most;
        loop {
            let rows = self.look(&session, query, (after, looks, PAGE_TOLD_MAX - told)).await?;
            for row in &rows {
                if page.events.len() == most {
                    break;
                }
                let place: i64 = row.try_get(0).map_err(fault::of)?;
                let record: Option<&[u8]> = row.try_get(1).map_err(fault::of)?;
                told += record.map_or(0, <[u8]>::len);
                let [first, end] = record.map(told_by).unwrap_or_default();
                let first_at = place.unsigned_abs().saturating_mul(2);
                let newest_first = [(first_at.saturating_add(1), end), (first_at, first)];
                for (at, event) in newest_first {
                    if at >= after || page.events.len() == most {
                        continue;
                    }
                    after = at;
                    if let Some(event) = event.filter(|event| query.wants(event)) {
                        page.events.push(event);
                        page.places.push(HistoryCursor(at));
                    }
                }
            }
            looked += rows.len();
            let is_full = page.events.len() == most || told >= PAGE_TOLD_MAX || looked >= LOOKS_MAX;
            if is_full || rows.len() < looks {
                page.next = is_full.then_some(HistoryCursor(after));
                session.keep();
                return Ok(page);
            }
            looks = looks.saturating_mul(4).min(LOOKS_AT_ONCE);
        }
    }

    /// Looks at rows with something that is older than a place: so many, and so many bytes of them.
    async fn look(
        &self,
        session: &Session<'_>,
        query: &HistoryQuery,
        (after, looks, bytes): (u64, usize, usize),
    ) -> Answer<Vec<Row>> {
        let HistoryQuery { queue, lane, end, from, to, .. } = query;
        let queue = queue.as_ref().map(|queue| shown(queue.as_str()));
        let lane = lane.as_ref().map(|lane| shown(lane.as_str()));
        let end = end.map(rows::end);
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or(Timestamp::MAX));
        let (first, last) = (Day::of(from).begins(), Day::of(to).next().begins());
        let (from, to) = (system_time(from), system_time(to));
        // Each row has two places: that of its first event, and that of the end that came with it.
        let rows_before = number(after.div_ceil(2));
        let (looks, bytes) = (number(looks as u64), number(bytes as u64));
        let arguments: [Argument<'_>; 10] = [
            (&rows_before, Type::INT8),
            (&queue, Type::TEXT),
            (&lane, Type::TEXT),
            (&end, Type::TEXT),
            (&from, Type::TIMESTAMPTZ),
            (&to, Type::TIMESTAMPTZ),
            (&first, Type::TIMESTAMPTZ),
            (&last, Type::TIMESTAMPTZ),
            (&looks, Type::INT8),
            (&bytes, Type::INT8),
        ];
        self.ask(session, &self.sql.page, &arguments).await
    }

    /// Asks in a transaction, which has a deadline.
    async fn ask(
        &self,
        session: &Session<'_>,
        sql: &str,
        arguments: &[Argument<'_>],
    ) -> Answer<Vec<Row>> {
        let client = session.client();
        let (begun, rows, committed) = tokio::join!(
            biased;
            client.batch_execute(&self.sql.begin),
            client.query_typed(sql, arguments),
            client.batch_execute("COMMIT"),
        );
        begun.map_err(fault::of)?;
        let rows = rows.map_err(fault::of)?;
        committed.map_err(fault::of)?;
        Ok(rows)
    }

    /// The server ends what takes longer, if it can be reached.
    pub(super) async fn within_deadline<T>(
        &self,
        doing: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let patience = self.deadline.saturating_mul(2);
        let done = tokio::time::timeout(patience, doing).await;
        done.unwrap_or_else(|_| Err(Self::unanswered(patience)))
    }

    pub(super) fn unanswered(patience: Duration) -> StoreError {
        let reason = format!("PostgreSQL did not answer within {patience:?}");
        StoreError::Unreachable { reason }
    }
}

/// What a row tells: an event, and the end that came with it. One that cannot be read, as a newer node may
/// have written it, hides no other.
fn told_by(record: &[u8]) -> [Option<Event>; 2] {
    match codec::decode_events(record) {
        Ok((event, end)) => [Some(event), end],
        Err(error) => {
            tracing::warn!(%error, "an event of history cannot be read");
            [None, None]
        }
    }
}
