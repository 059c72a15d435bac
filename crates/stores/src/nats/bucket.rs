//! The bucket: values under keys, each with the revision it has, and changed only if it still has it.

use super::{fault, value};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{
    Config, DirectGetError, DirectGetErrorKind, DiscardPolicy, LastRawMessageError,
    LastRawMessageErrorKind, StorageType, Stream,
};
use async_nats::jetstream::{Context, ContextBuilder, kv};
use futures_util::StreamExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tollgate_core::Timestamp;
use tollgate_core::contract::Answer;

/// The revision of a key that is not there.
pub(super) const ABSENT: u64 = 0;

/// How much of the deadline a question that may get lost is waited for at first.
const PATIENCE_PART: u32 = 16;

/// A bucket.
pub(super) struct Bucket {
    context: Context,
    stream: Stream,
    name: String,
    /// It was found that there is no such bucket.
    is_gone: AtomicBool,
    /// Held by whoever finds that out.
    looking: Mutex<()>,
    /// What comes before a key to make it a subject.
    prefix: String,
    /// Whether a server may be asked that is not the leader.
    has_direct: bool,
    /// Whether what it says is sure to be the last, which of several copies only the leader's is.
    is_direct_exact: bool,
    /// How long a question that may get lost is waited for at first.
    patience: Duration,
}

/// Somebody else was faster.
#[derive(Debug)]
pub(super) struct Conflict;

/// What is under a key.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) revision: u64,
    /// When the server wrote it.
    pub(super) written: Timestamp,
    /// Its own value and when that expires, if it is a cell's.
    pub(super) cell: Option<(Timestamp, Vec<u8>)>,
}

impl Entry {
    /// The value, if it has not expired.
    pub(super) fn live(&self, now: Timestamp) -> Option<&[u8]> {
        let (expires, value) = self.cell.as_ref()?;
        (*expires > now || *expires == Timestamp::MAX).then_some(value)
    }
}

impl Bucket {
    /// Opens a bucket, and makes it if it is missing.
    pub(super) async fn open(
        client: async_nats::Client,
        name: &str,
        deadline: Duration,
    ) -> Answer<Self> {
        let context = ContextBuilder::new().timeout(deadline).ack_timeout(deadline).build(client);
        let store = match context.get_key_value(name).await {
            Ok(store) => store,
            // If two make it at once, one of them fails and finds that of the other.
            Err(_) => make(&context, name).await?,
        };
        let config = &store.stream.cached_info().config;
        if config.max_messages_per_subject != 1 || !config.max_age.is_zero() {
            return Err(fault::of_settings(name));
        }
        let has_direct = config.allow_direct;
        let is_direct_exact = has_direct && config.num_replicas <= 1;
        let (prefix, stream) = (store.prefix, store.stream);
        let patience = (deadline / PATIENCE_PART).max(Duration::from_millis(1));
        let (name, is_gone, looking) = (name.to_owned(), AtomicBool::new(false), Mutex::default());
        let bucket = Self {
            context,
            stream,
            name,
            is_gone,
            looking,
            prefix,
            has_direct,
            is_direct_exact,
            patience,
        };
        // One that another process is just making may be shown before it takes anything.
        bucket.oldest(ABSENT).await?;
        Ok(bucket)
    }

    /// Makes the bucket again if it was found that it is gone; says whether it was.
    pub(super) async fn make_again(&self) -> Answer<bool> {
        if !self.is_gone.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        tracing::warn!(bucket = self.name, "the bucket is gone: it is made again");
        make(&self.context, &self.name).await?;
        self.oldest(ABSENT).await?;
        Ok(true)
    }

    /// Whether the server says that there is no such bucket. One asks at a time: the server may be slow
    /// because it has much to do.
    async fn is_missing(&self) -> bool {
        let Ok(_looking) = self.looking.try_lock() else { return false };
        let looked = self.context.get_stream(format!("KV_{}", self.name)).await;
        looked.is_err_and(|error| fault::is_no_bucket(&error))
    }

    fn note_gone<E>(&self, error: E, is_gone: impl Fn(&E) -> bool) -> E {
        if is_gone(&error) {
            self.is_gone.store(true, Ordering::Relaxed);
        }
        error
    }

    /// What is under a key.
    pub(super) async fn read(&self, key: &str) -> Answer<Option<Entry>> {
        let subject = self.subject(key);
        if self.is_direct_exact {
            let ask = || self.stream.direct_get_last_for_subject(subject.as_str());
            shown(self.until_answered(ask).await?)
        } else {
            let answer = self.stream.get_last_raw_message_by_subject(&subject).await;
            shown_by_leader(answer.map_err(|error| self.note_gone(error, fault::is_no_stream)))
        }
        .map(|message| message.as_ref().map(entry))
    }

    /// Writes if the key has this revision, or none if that is [`ABSENT`]; says its new one.
    pub(super) async fn write(
        &self,
        key: &str,
        revision: u64,
        value: Vec<u8>,
    ) -> Answer<Result<u64, Conflict>> {
        let message = PublishMessage::build().payload(value.into());
        self.publish(key, message.expected_last_subject_sequence(revision)).await
    }

    /// Writes whatever is there.
    pub(super) async fn overwrite(&self, key: &str, value: Vec<u8>) -> Answer<()> {
        let message = PublishMessage::build().payload(value.into());
        self.publish(key, message).await.map(drop)
    }

    async fn publish(&self, key: &str, message: PublishMessage) -> Answer<Result<u64, Conflict>> {
        let sent = self.context.send_publish(self.subject(key), message).await;
        match sent.map_err(fault::of_publishing)?.await {
            Ok(kept) => Ok(Ok(kept.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(Err(Conflict)),
            Err(error) => Err(fault::of_publishing(self.note_gone(error, fault::is_no_writer))),
        }
    }

    /// Removes what is under a key if it has this revision, and leaves nothing behind.
    pub(super) async fn remove(&self, key: &str, revision: u64) -> Answer<Result<(), Conflict>> {
        // Whatever is newer than that stays.
        let purge = self.stream.purge().filter(self.subject(key)).sequence(revision + 1);
        let purged = purge.await.map_err(fault::of_removing)?.purged;
        Ok(if purged > 0 { Ok(()) } else { Err(Conflict) })
    }

    /// The key that was written longest ago, of this revision or later, with what is under it.
    pub(super) async fn oldest(&self, revision: u64) -> Answer<Option<(String, Entry)>> {
        let (subject, from) = (self.subject(">"), revision.max(1));
        let message = if self.has_direct {
            let ask = || self.stream.direct_get_next_for_subject(subject.as_str(), Some(from));
            shown(self.until_answered(ask).await?)?
        } else {
            shown_by_leader(self.stream.get_first_raw_message_by_subject(subject, from).await)?
        };
        Ok(message.map(|message| {
            let key = message.subject.strip_prefix(&self.prefix).unwrap_or_default();
            (key.to_owned(), entry(&message))
        }))
    }

    /// The keys that begin so, in no order.
    pub(super) async fn keys(&self, prefix: &str) -> Answer<Vec<String>> {
        let filter = self.subject(&format!("{prefix}>"));
        let mut listed = self.stream.info_with_subjects(filter).await.map_err(fault::of_listing)?;
        let mut keys = Vec::new();
        while let Some(next) = listed.next().await {
            let (subject, _) = next.map_err(fault::of_listing)?;
            keys.extend(subject.strip_prefix(&self.prefix).map(str::to_owned));
        }
        Ok(keys)
    }

    /// Asks again, with more patience each time, while there is no answer. A server that has just made
    /// the bucket, or was just chosen to lead, does not answer these questions at first, nor say so; and
    /// neither does one that has no such bucket, unless it is asked for it.
    async fn until_answered<F>(&self, ask: impl Fn() -> F) -> Answer<F::Output>
    where
        F: Future,
    {
        let mut patience = self.patience;
        loop {
            if let Ok(answer) = tokio::time::timeout(patience, ask()).await {
                return Ok(answer);
            }
            if self.is_missing().await {
                self.is_gone.store(true, Ordering::Relaxed);
                return Err(fault::gone(&self.name));
            }
            patience *= 2;
        }
    }

    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

/// Makes the bucket, as a stream with what a bucket's stream has: the client's own way asks for the
/// account first, and does not understand what servers before 2.10 say of it.
async fn make(context: &Context, name: &str) -> Answer<kv::Store> {
    let config = Config {
        name: format!("KV_{name}"),
        description: Some("Limits that processes share, of Tollgate".to_owned()),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: 1,
        allow_rollup: true,
        allow_direct: true,
        deny_delete: true,
        ..Config::default()
    };
    let made = context.create_stream(config).await;
    match context.get_key_value(name).await {
        Ok(store) => Ok(store),
        Err(missing) => Err(made.map_or_else(fault::of_making, |_| fault::of_opening(missing))),
    }
}

/// A message, or `None` if there is none.
fn shown(answer: Result<StreamMessage, DirectGetError>) -> Answer<Option<StreamMessage>> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault::of_reading(error)),
    }
}

/// As [`shown`], of the other way to ask.
fn shown_by_leader(
    answer: Result<StreamMessage, LastRawMessageError>,
) -> Answer<Option<StreamMessage>> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(fault::of_asking_the_leader(error)),
    }
}

fn entry(message: &StreamMessage) -> Entry {
    let written = SystemTime::from(message.time).duration_since(UNIX_EPOCH).unwrap_or_default();
    Entry {
        revision: message.sequence,
        written: Timestamp::from_nanos(u64::try_from(written.as_nanos()).unwrap_or(u64::MAX)),
        cell: value::decode(&message.payload).map(|(expires, value)| (expires, value.to_vec())),
    }
}
