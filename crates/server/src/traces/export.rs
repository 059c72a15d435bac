//! Spans on their way out: in batches, over OTLP, and never in anyone's way.

use super::collector::{Collector, TraceSettings, TracesError};
use super::{Attribute, FinishedSpan, SpanKind, Traces};
use crate::shutdown::Shutdown;
use opentelemetry::trace::{self, SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate::Timestamp;

/// Spans that wait to be exported: a few seconds of a busy server, in a few megabytes.
const WAITING_MAX: usize = 8_192;
/// Spans of one request.
const BATCH_MAX: usize = 512;
/// How long a batch is gathered.
const GATHER: Duration = Duration::from_secs(1);
/// Longest time for one request.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// What a server is called unless `OTEL_SERVICE_NAME` says otherwise.
const SERVICE_NAME: &str = "tollgate";

/// Takes spans to a collector.
pub(crate) struct Exporter {
    spans: mpsc::Receiver<FinishedSpan>,
    exporter: SpanExporter,
    dropped: Arc<AtomicU64>,
    scope: InstrumentationScope,
    /// The last batch was not taken, and that was told.
    is_away: bool,
}

impl Exporter {
    /// An exporter, and where to hand it spans.
    pub(crate) fn new(settings: &TraceSettings) -> Result<(Traces, Self), TracesError> {
        // Tried once: between tries it would stop a thread of the runtime. The next batch is the next try.
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(settings)?)
            .with_endpoint(settings.endpoint().to_string())
            .with_timeout(EXPORT_TIMEOUT)
            .with_retry_policy(RetryPolicy::disabled())
            .build();
        let mut exporter =
            exporter.map_err(|error| TracesError::Exporter { reason: error.to_string() })?;
        exporter.set_resource(&resource());
        let (out, spans) = mpsc::channel(WAITING_MAX);
        let traces = Traces::to(out);
        let dropped = traces.dropped.clone();
        let scope = InstrumentationScope::builder(SERVICE_NAME)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Ok((traces, Self { spans, exporter, dropped, scope, is_away: false }))
    }

    /// Exports until the end, and then what is left.
    pub(crate) async fn run(mut self, end: Shutdown) {
        loop {
            let batch = self.gather(&end).await;
            if batch.is_empty() {
                return;
            }
            self.export(batch).await;
        }
    }

    /// The spans of a second, or fewer if there are many or the end has come; then none once all are out.
    async fn gather(&mut self, end: &Shutdown) -> Vec<FinishedSpan> {
        let mut batch = Vec::new();
        tokio::select! {
            () = fill(&mut self.spans, &mut batch) => {}
            () = end.begun() => {
                self.spans.close();
                self.spans.recv_many(&mut batch, BATCH_MAX).await;
            }
        }
        batch
    }

    async fn export(&mut self, batch: Vec<FinishedSpan>) {
        let count = batch.len() as u64;
        let batch = batch.into_iter().map(|span| exported(span, &self.scope)).collect();
        let away = match timeout(EXPORT_TIMEOUT, self.exporter.export(batch)).await {
            Ok(Ok(())) => return self.has_taken(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it takes too long".to_owned(),
        };
        self.dropped.fetch_add(count, Ordering::Relaxed);
        // Once, until some are exported again.
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(error = away, "spans are dropped: the collector does not take them");
        }
    }

    fn has_taken(&mut self) {
        if std::mem::take(&mut self.is_away) {
            let dropped = self.dropped.load(Ordering::Relaxed);
            tracing::info!(dropped, "spans are exported again");
        }
    }
}

/// Gathers for a second from the first span on, or until the batch is full.
async fn fill(spans: &mut mpsc::Receiver<FinishedSpan>, batch: &mut Vec<FinishedSpan>) {
    let mut until = None;
    while batch.len() < BATCH_MAX {
        let room = BATCH_MAX - batch.len();
        let more = spans.recv_many(batch, room);
        let came = match until {
            None => more.await,
            Some(until) => timeout_at(until, more).await.unwrap_or(0),
        };
        if came == 0 {
            return;
        }
        until.get_or_insert_with(|| Instant::now() + GATHER);
    }
}

/// What spans are spans of, as OpenTelemetry's variables say.
fn resource() -> Resource {
    let resource = Resource::builder().build();
    let name = resource.get(&"service.name".into()).map(|name| name.to_string());
    if name.is_some_and(|name| !name.starts_with("unknown_service")) {
        return resource;
    }
    Resource::builder().with_service_name(SERVICE_NAME).build()
}

/// A span in the exporter's words.
fn exported(span: FinishedSpan, scope: &InstrumentationScope) -> SpanData {
    let FinishedSpan { context, parent, began, ended, attributes, .. } = span;
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(context.trace_id()),
            SpanId::from_bytes(context.span_id()),
            TraceFlags::new(context.flags()),
            false,
            TraceState::default(),
        ),
        parent_span_id: SpanId::from_bytes(parent),
        // The caller's, or one of a server that may have been another process.
        parent_span_is_remote: true,
        span_kind: match span.kind {
            SpanKind::Producer => trace::SpanKind::Producer,
            SpanKind::Internal => trace::SpanKind::Internal,
            SpanKind::Consumer => trace::SpanKind::Consumer,
        },
        name: span.name.into(),
        start_time: system_time(began),
        end_time: system_time(ended),
        attributes: attributes.into_iter().map(attribute).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if span.has_failed { Status::error("") } else { Status::Unset },
        instrumentation_scope: scope.clone(),
    }
}

fn attribute((name, value): (&'static str, Attribute)) -> KeyValue {
    match value {
        Attribute::Text(text) => KeyValue::new(name, text),
        Attribute::Count(count) => KeyValue::new(name, i64::from(count)),
    }
}

fn system_time(wall: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(wall.as_nanos())
}
