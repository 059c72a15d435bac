//! URL groups: several endpoints under one name, each of which gets every message.

use super::card::millis;
use super::destination::{Target, check_address, check_name, shown};
use super::draft::Pair;
use super::error::Fault;
use super::face::{ApiRequest, done, reply};
use super::names::Names;
use super::shape::group::{DefaultsAsked, EndpointWire, EndpointsAsked, GroupWire};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tollgate::push::address::AddressPolicy;

/// Where groups are kept.
const PREFIX: &str = "tollgate/qstash/group/";
/// Most endpoints of a group: a message to it is one act.
const ENDPOINTS_MAX: usize = 1_000;

/// A group as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GroupRecord {
    created: u64,
    updated: u64,
    /// Where its messages go.
    pub(super) endpoints: Vec<Endpoint>,
    /// What stands behind the headers of its messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) headers: Vec<Pair>,
}

/// An endpoint of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Endpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) url: String,
}

impl ApiRequest<'_> {
    /// A group, if there is one of that name.
    pub(super) async fn group_record(&self, name: &str) -> Result<Option<GroupRecord>, Fault> {
        self.kept(&self.group_key(name)).await
    }

    pub(super) async fn list_groups(&self) -> Result<Response, Fault> {
        let all = self.all_kept(&self.group_key("")).await?;
        let wires = all.into_iter().map(|(name, record)| wire(name, record));
        Ok(reply(StatusCode::OK, &wires.collect::<Vec<_>>()))
    }

    pub(super) async fn read_group(&self, name: &str) -> Result<Response, Fault> {
        let missing = || Fault::missing(format!("there is no URL group {name}"));
        let record = self.group_record(name).await?.ok_or_else(missing)?;
        Ok(reply(StatusCode::OK, &wire(name.to_owned(), record)))
    }

    pub(super) async fn remove_group(&self, name: &str) -> Result<Response, Fault> {
        self.change_kept(&self.group_key(name), |_: Option<GroupRecord>| Ok(None)).await?;
        Ok(done())
    }

    /// Adds endpoints, or changes those that are there by name or by url.
    pub(super) async fn add_endpoints(&self, name: &str) -> Result<Response, Fault> {
        check_name("URL group", name)?;
        let EndpointsAsked { endpoints } = self.json()?;
        let read = |endpoint| read_endpoint(endpoint, &self.shared.addresses);
        let added = endpoints.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let at = millis(self.now().await?.wall);
        let add = |before: Option<GroupRecord>| {
            let mut group = before.unwrap_or_else(|| GroupRecord::new(at));
            for endpoint in &added {
                group.endpoints.retain(|known| !endpoint.is_same(known));
                group.endpoints.push(endpoint.clone());
            }
            if group.endpoints.len() > ENDPOINTS_MAX {
                let why = format!("a URL group has up to {ENDPOINTS_MAX} endpoints");
                return Err(Fault::over_quota(why));
            }
            group.updated = at;
            Ok(Some(group))
        };
        self.change_kept(&self.group_key(name), add).await?;
        Ok(done())
    }

    /// Removes endpoints, by name or by url; with the last, the group.
    pub(super) async fn remove_endpoints(&self, name: &str) -> Result<Response, Fault> {
        let EndpointsAsked { endpoints } = self.json()?;
        let at = millis(self.now().await?.wall);
        let is_named = |known: &Endpoint, asked: &EndpointWire| {
            asked.name.as_ref().is_some_and(|name| known.name.as_ref() == Some(name))
                || asked
                    .url
                    .as_ref()
                    .is_some_and(|url| known.url == *url || shown(&known.url) == *url)
        };
        let remove = |before: Option<GroupRecord>| {
            let missing = || Fault::missing(format!("there is no URL group {name}"));
            let mut group = before.ok_or_else(missing)?;
            let is_left = |known: &Endpoint| !endpoints.iter().any(|asked| is_named(known, asked));
            group.endpoints.retain(is_left);
            group.updated = at;
            Ok(Some(group).filter(|group| !group.endpoints.is_empty()))
        };
        self.change_kept(&self.group_key(name), remove).await?;
        Ok(done())
    }

    /// Says what stands behind the headers of all messages to a group.
    pub(super) async fn patch_group(&self, name: &str) -> Result<Response, Fault> {
        let DefaultsAsked { headers } = self.json()?;
        let headers: Vec<Pair> = headers.into_iter().collect();
        // What is wrong with them is said now, and not to who publishes.
        super::draft::Draft::read(Target::Group(name.to_owned()), &headers)?;
        let at = millis(self.now().await?.wall);
        let patch = |before: Option<GroupRecord>| {
            let missing = || Fault::missing(format!("there is no URL group {name}"));
            let group = before.ok_or_else(missing)?;
            Ok(Some(GroupRecord { headers: headers.clone(), updated: at, ..group }))
        };
        self.change_kept(&self.group_key(name), patch).await?;
        Ok(done())
    }

    fn group_key(&self, name: &str) -> String {
        key(&self.names, name)
    }
}

/// Where a group is kept.
pub(super) fn key(names: &Names, name: &str) -> String {
    format!("{PREFIX}{}{name}", names.prefix())
}

impl GroupRecord {
    fn new(at: u64) -> Self {
        Self { created: at, updated: at, endpoints: Vec::new(), headers: Vec::new() }
    }
}

impl Endpoint {
    /// Whether another is meant by it.
    fn is_same(&self, other: &Self) -> bool {
        self.url == other.url || (self.name.is_some() && self.name == other.name)
    }
}

fn read_endpoint(asked: EndpointWire, policy: &AddressPolicy) -> Result<Endpoint, Fault> {
    let url = asked.url.ok_or_else(|| Fault::invalid("an endpoint needs a url"))?;
    match Target::read(&url)? {
        Target::Url(url) => {
            check_address(&url, policy)?;
            Ok(Endpoint { name: asked.name.filter(|it| !it.is_empty()), url })
        }
        Target::Group(_) => Err(super::destination::TargetError::Scheme.into()),
    }
}

fn wire(name: String, record: GroupRecord) -> GroupWire {
    let endpoints = record.endpoints.into_iter();
    let endpoints = endpoints.map(|it| EndpointWire { name: it.name, url: Some(shown(&it.url)) });
    let (created_at, updated_at) = (record.created, record.updated);
    GroupWire { name, created_at, updated_at, endpoints: endpoints.collect() }
}
