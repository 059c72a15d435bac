//! Definitions of limits and queues in the API's form, for files that hold them.

use super::caller::Caller;
use super::wire::limit::{DefinitionWire, LimitWire};
use super::wire::object::Object;
use super::wire::queue::QueueWire;
use serde_json::Value;
use tollgate::Limit;
use tollgate::lanes::{Definition, QueueSpec};

/// Reads a limit as `PUT /v1/limits/{name}` takes it, and checks it.
pub(crate) fn limit(value: Value) -> Result<Limit, String> {
    let LimitWire(limit) = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Definition::new(limit.clone()).map_err(|error| error.to_string())?;
    Ok(limit)
}

/// Reads a queue as `PUT /v1/queues/{queue}` takes it, and checks it.
pub(crate) fn queue(value: Value) -> Result<QueueSpec, String> {
    let read: Result<Object<QueueWire>, _> = serde_json::from_value(value);
    let Object(wire) = read.map_err(|error| error.to_string())?;
    let spec = wire.spec(&Caller::ANYONE).map_err(|error| error.to_string())?;
    spec.check().map_err(|error| error.to_string())?;
    Ok(spec)
}

/// A limit as the API shows it.
pub(crate) fn shown_limit(limit: &Limit) -> Value {
    // Our wire types have text keys and no maps that fail.
    serde_json::to_value(DefinitionWire::from(limit)).unwrap_or_default()
}

/// A queue as the API shows it, with every setting.
pub(crate) fn shown_queue(spec: &QueueSpec) -> Value {
    serde_json::to_value(QueueWire::new(spec, &Caller::ANYONE)).unwrap_or_default()
}

/// A queue as the API takes it, with every setting, and with what is not shown.
pub(crate) fn sent_queue(spec: &QueueSpec) -> Value {
    serde_json::to_value(QueueWire::whole(spec)).unwrap_or_default()
}
