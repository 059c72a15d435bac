//! What an error of NATS means for whoever asked.

use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamError, GetStreamErrorKind, KeyValueError,
    PublishError, PublishErrorKind, RequestErrorKind,
};
use async_nats::jetstream::stream::{
    DirectGetError, DirectGetErrorKind, InfoError, LastRawMessageError, LastRawMessageErrorKind,
    PurgeError, PurgeErrorKind,
};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};
use std::error::Error;
use tollgate_core::contract::StoreError;

/// Codes that say that there is no room.
const FULL: [ErrorCode; 6] = [
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ErrorCode::INSUFFICIENT_RESOURCES,
    ErrorCode::MEMORY_RESOURCES_EXCEEDED,
    ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ErrorCode::STREAM_LIMITS,
    ErrorCode::STREAM_STORE_FAILED,
];

pub(super) fn of_connecting(error: ConnectError) -> StoreError {
    // Neither user nor password is in what the client says.
    let reason = format!("NATS cannot be connected to: {error}");
    // To try again would be of no use.
    if reason.contains("certificate") {
        return StoreError::Failed {
            reason: format!(
                "{reason}: name the authority that signed it, or put it among those of the system"
            ),
        };
    }
    match error.kind() {
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Authentication
        | ConnectErrorKind::AuthorizationViolation
        | ConnectErrorKind::Tls => StoreError::Failed { reason },
        _ => StoreError::Unreachable { reason },
    }
}

pub(super) fn of_making(error: CreateStreamError) -> StoreError {
    let reason = format!("the bucket can neither be used nor made: {error}");
    match error.kind() {
        CreateStreamErrorKind::JetStreamUnavailable => without_jetstream(&reason),
        CreateStreamErrorKind::JetStream(cause) => by_code(cause.error_code(), reason),
        CreateStreamErrorKind::TimedOut => StoreError::Unreachable { reason },
        _ => by_cause(&error, reason),
    }
}

pub(super) fn of_opening(error: KeyValueError) -> StoreError {
    StoreError::Failed { reason: format!("the bucket cannot be used: {error}") }
}

/// A bucket's name that is not one.
pub(super) fn of_name(name: &str) -> StoreError {
    StoreError::Failed {
        reason: format!("{name:?} cannot be the bucket's name: choose letters, digits, - and _"),
    }
}

/// A bucket that keeps what was overwritten, or forgets what is needed.
pub(super) fn of_settings(name: &str) -> StoreError {
    StoreError::Failed {
        reason: format!(
            "the bucket {name} keeps more than the last value of a key, or forgets values by their \
             age: set its history to 1 and its ttl to 0, or name another"
        ),
    }
}

pub(super) fn of_publishing(error: PublishError) -> StoreError {
    let reason = format!("NATS did not keep a value: {error}");
    match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => {
            StoreError::Failed { reason: format!("{reason}: raise max_payload of the server") }
        }
        PublishErrorKind::Other => by_cause(&error, reason),
        _ => StoreError::Unreachable { reason },
    }
}

pub(super) fn of_reading(error: DirectGetError) -> StoreError {
    let reason = format!("NATS did not show a value: {error}");
    match error.kind() {
        DirectGetErrorKind::InvalidSubject => StoreError::Failed { reason },
        DirectGetErrorKind::Other => by_cause(&error, reason),
        _ => StoreError::Unreachable { reason },
    }
}

pub(super) fn of_asking_the_leader(error: LastRawMessageError) -> StoreError {
    let reason = format!("NATS did not show a value: {error}");
    match error.kind() {
        LastRawMessageErrorKind::JetStream(cause) => by_code(cause.error_code(), reason),
        LastRawMessageErrorKind::InvalidSubject => StoreError::Failed { reason },
        _ => StoreError::Unreachable { reason },
    }
}

pub(super) fn of_removing(error: PurgeError) -> StoreError {
    let reason = format!("NATS did not remove a value: {error}");
    match error.kind() {
        PurgeErrorKind::JetStream(cause) => by_code(cause.error_code(), reason),
        _ => StoreError::Unreachable { reason },
    }
}

pub(super) fn of_listing(error: InfoError) -> StoreError {
    let reason = format!("NATS did not list the keys: {error}");
    match error.kind() {
        RequestErrorKind::InvalidSubject | RequestErrorKind::Other => by_cause(&error, reason),
        _ => StoreError::Unreachable { reason },
    }
}

/// The server knows of no such bucket.
pub(super) fn is_no_bucket(error: &GetStreamError) -> bool {
    let gone = ErrorCode::STREAM_NOT_FOUND;
    matches!(error.kind(), GetStreamErrorKind::JetStream(cause) if cause.error_code() == gone)
}

/// What to tell of a bucket that is gone, if it is not made again.
pub(super) fn gone(name: &str) -> StoreError {
    StoreError::Unreachable { reason: format!("the bucket {name} is gone") }
}

/// Nobody answers for the bucket that was to be written.
pub(super) fn is_no_writer(error: &PublishError) -> bool {
    error.kind() == PublishErrorKind::StreamNotFound
}

/// The leader knows of no such bucket.
pub(super) fn is_no_stream(error: &LastRawMessageError) -> bool {
    let gone = ErrorCode::STREAM_NOT_FOUND;
    matches!(error.kind(), LastRawMessageErrorKind::JetStream(cause) if cause.error_code() == gone)
}

/// By the code of JetStream's that is somewhere below an error.
fn by_cause(error: &(dyn Error + 'static), reason: String) -> StoreError {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<jetstream::Error>() {
            return by_code(inner.error_code(), reason);
        }
        cause = inner.source();
    }
    StoreError::Failed { reason }
}

fn by_code(code: ErrorCode, reason: String) -> StoreError {
    if FULL.contains(&code) {
        return StoreError::Full { reason };
    }
    match code {
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            without_jetstream(&reason)
        }
        ErrorCode::CLUSTER_NOT_AVAILABLE | ErrorCode::CLUSTER_NOT_LEADER => {
            StoreError::Unreachable { reason }
        }
        _ => StoreError::Failed { reason },
    }
}

fn without_jetstream(reason: &str) -> StoreError {
    StoreError::Failed {
        reason: format!(
            "{reason}: JetStream is off: start nats-server with --jetstream, or turn it on for the \
             account"
        ),
    }
}
