//! What a request says outside its body: names in the path, a page in the query, who is asking.

use super::App;
use super::caller::Caller;
use super::problem::{Problem, kinds};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Things on a page unless the caller says how many.
const PAGE_DEFAULT: usize = 100;
/// Most things on a page.
const PAGE_MAX: usize = 1000;
/// Names the person or program that changes something; goes into the limit's history.
const ACTOR: &str = "tollgate-actor";
/// Longest name of an actor.
const ACTOR_BYTES_MAX: usize = 128;
/// Who changes something when no one says who.
const ACTOR_UNSAID: &str = "http";

/// The names in the path, percent-decoded.
pub(super) struct InPath<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        let Path(names) = path.map_err(|rejection| {
            let why = rejection.body_text();
            let detail =
                format!("{why}: names in a path are UTF-8, percent-encoded (a slash is %2F)");
            Problem::new(kinds::INVALID_PATH, detail)
        })?;
        Ok(Self(names))
    }
}

/// Which part of a list is asked for.
pub(super) struct Page {
    /// Starts behind this name.
    pub(super) after: Option<String>,
    /// How many at most.
    pub(super) limit: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    after: Option<String>,
    limit: Option<usize>,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let invalid = |detail: String| Problem::new(kinds::INVALID_QUERY, detail);
        let query = Query::<PageQuery>::from_request_parts(parts, state).await;
        let Query(PageQuery { after, limit }) = query.map_err(|rejection| {
            invalid(format!("{}: a page takes `after` and `limit`", rejection.body_text()))
        })?;
        Ok(Self { after, limit: page_size(limit)? })
    }
}

/// Which part of a list is asked for, by name or the first in another order.
pub(super) struct Ordered {
    page: Page,
    order: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderedQuery {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
}

/// How a list is asked for.
pub(super) enum Listed {
    /// A page by name.
    ByName(Page),
    /// So many that come first in the other order.
    First(usize),
}

impl Ordered {
    /// How the list is asked for, which has this other order.
    pub(super) fn or_by(self, order: &str) -> Result<Listed, Problem> {
        let Self { page, order: asked } = self;
        match asked {
            None => Ok(Listed::ByName(page)),
            Some(asked) if asked == order && page.after.is_none() => Ok(Listed::First(page.limit)),
            Some(asked) if asked == order => {
                let detail = format!("`order={order}` has no pages: leave out `after`");
                Err(Problem::new(kinds::INVALID_QUERY, detail))
            }
            Some(asked) => {
                let asked: String = asked.chars().take(128).collect();
                let detail =
                    format!("there is no order {asked:?} here: `{order}`, or none by name");
                Err(Problem::new(kinds::INVALID_QUERY, detail))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Ordered {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<OrderedQuery>::from_request_parts(parts, state).await;
        let Query(OrderedQuery { after, limit, order }) = query.map_err(|rejection| {
            let why = rejection.body_text();
            let detail = format!("{why}: a page takes `after` and `limit`, or `order` and `limit`");
            Problem::new(kinds::INVALID_QUERY, detail)
        })?;
        Ok(Self { page: Page { after, limit: page_size(limit)? }, order })
    }
}

/// What a list can be narrowed to, besides the size of a page.
pub(super) trait Filter: DeserializeOwned + Send {
    /// The fields, for one who sent another.
    const FIELDS: &'static str;

    /// How many at most, if the caller says.
    fn limit(&self) -> Option<usize>;
}

/// A filter from the query, and how many things are asked for.
pub(super) struct Listing<F>(pub(super) F, pub(super) usize);

impl<S: Send + Sync, F: Filter> FromRequestParts<S> for Listing<F> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<F>::from_request_parts(parts, state).await;
        let Query(filter) = query.map_err(|rejection| {
            let detail = format!("{}: this takes {}", rejection.body_text(), F::FIELDS);
            Problem::new(kinds::INVALID_QUERY, detail)
        })?;
        let most = page_size(filter.limit())?;
        Ok(Self(filter, most))
    }
}

/// How many to ask a store for, that gives up to [`PAGE_MAX`]: one more tells whether there are more.
pub(super) fn wanted(limit: usize) -> usize {
    (limit + 1).min(PAGE_MAX)
}

/// Cuts what a store gave to a page, and says whether there may be more.
pub(super) fn cut<T>(found: &mut Vec<T>, limit: usize) -> bool {
    let has_more = found.len() > limit || limit >= PAGE_MAX && found.len() >= PAGE_MAX;
    found.truncate(limit);
    has_more
}

fn page_size(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(PAGE_DEFAULT) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => {
            let detail = format!("`limit` is {limit}: a page has 1 to {PAGE_MAX} entries");
            Err(Problem::new(kinds::INVALID_QUERY, detail))
        }
    }
}

/// Who changes something: the token's name, and in front of it who they say they are.
pub(super) struct Actor(pub(super) String);

impl FromRequestParts<Arc<App>> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let said = parts.headers.get(ACTOR).map(said).transpose()?;
        Ok(Self(match (said, caller.token_name()) {
            (Some(who), Some(token)) => format!("{who} via {token}"),
            (Some(who), None) => who.to_owned(),
            (None, token) => token.unwrap_or(ACTOR_UNSAID).to_owned(),
        }))
    }
}

fn said(value: &HeaderValue) -> Result<&str, Problem> {
    let who = value.to_str().ok().filter(|who| (1..=ACTOR_BYTES_MAX).contains(&who.len()));
    who.ok_or_else(|| {
        let detail = format!(
            "`Tollgate-Actor` has 1 to {ACTOR_BYTES_MAX} printable ASCII characters: a name, an address"
        );
        Problem::new(kinds::INVALID_ACTOR, detail)
    })
}
