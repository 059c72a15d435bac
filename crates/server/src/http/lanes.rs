//! `/v1/queues/{queue}/lanes`: lanes of a queue; hold back, let go, weigh.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::{Actor, InPath, Listed, Ordered, cut, wanted};
use super::problem::{Problem, invalid_field};
use super::queues::{known, unknown};
use super::wire::lane::{LanePageWire, LaneWire, WeightWire};
use super::wire::meter::NothingWire;
use super::wire::queue::PausedWire;
use super::wire::units::Units;
use axum::extract::State;
use tollgate::lanes::queue::LANE_WEIGHT_MAX;
use tollgate::lanes::{Among, LaneName, QueueName, Scope};
use tollgate::{Error, Operation};

/// The order in which those come first with most calls that wait.
const WAITING: &str = "waiting";

type Answer<T> = Result<Json<T>, Problem>;
type Nothing = JsonIfAny<NothingWire>;
type Names = InPath<(String, String)>;

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    InPath(queue): InPath<String>,
    ordered: Ordered,
) -> Answer<LanePageWire> {
    let name = caller.inner(&queue);
    let page = match ordered.or_by(WAITING)? {
        Listed::ByName(page) => page,
        Listed::First(most) => {
            let among = Among::One(name.into_owned());
            let found = app.gate.busiest_lanes(&among, most).await?;
            if found.queues.is_empty() {
                return Err(unknown(&queue));
            }
            // The heads are named.
            app.gate.lasting().await?;
            let lanes = found.lanes.into_iter().map(|lane| LaneWire::from(lane.state)).collect();
            return Ok(Json(LanePageWire { lanes, next: None }));
        }
    };
    let found = app.gate.lanes(&name, page.after.as_deref(), wanted(page.limit)).await?;
    let mut found = found.ok_or_else(|| unknown(&queue))?;
    let has_more = cut(&mut found, page.limit);
    let lanes: Vec<_> = found.into_iter().map(LaneWire::from).collect();
    let last = lanes.last().map(|lane| lane.name.clone());
    Ok(Json(LanePageWire { lanes, next: last.filter(|_| has_more) }))
}

pub(super) async fn pause(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((queue, lane)): Names,
    _: Nothing,
) -> Answer<PausedWire> {
    known(&app.gate, &caller, &queue).await?;
    app.gate.operate(&who, Operation::Pause(scope(&caller, &queue, &lane)?)).await?;
    Ok(Json(PausedWire { paused: true }))
}

pub(super) async fn resume(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((queue, lane)): Names,
    _: Nothing,
) -> Answer<PausedWire> {
    known(&app.gate, &caller, &queue).await?;
    app.gate.operate(&who, Operation::Resume(scope(&caller, &queue, &lane)?)).await?;
    Ok(Json(PausedWire { paused: false }))
}

pub(super) async fn weigh(
    State(app): Shared,
    caller: Caller,
    InPath((queue, lane)): Names,
    Json(WeightWire { weight: Units(weight) }): Json<WeightWire>,
) -> Answer<WeightWire> {
    known(&app.gate, &caller, &queue).await?;
    let wanted = u32::try_from(weight).ok().filter(|weight| (1..=LANE_WEIGHT_MAX).contains(weight));
    let wanted = wanted.ok_or_else(|| {
        invalid_field("weight", &format!("a lane weighs 1 to {LANE_WEIGHT_MAX}, not {weight}"))
    })?;
    app.gate.weigh(&caller.inner(&queue), &lane, wanted).await?;
    Ok(Json(WeightWire { weight: Units(weight) }))
}

fn scope(caller: &Caller, queue: &str, lane: &str) -> Result<Scope, Error> {
    Ok(Scope::Lane(QueueName::new(&caller.inner(queue))?, LaneName::new(lane)?))
}
