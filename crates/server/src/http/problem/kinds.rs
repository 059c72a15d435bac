//! The kinds of problems: status, code and title of each, in one table.
//!
//! The codes of the engine's errors are the names of its variants; an error inside another adds its
//! name behind, as in `limit_zero`.

use axum::http::StatusCode;

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    position: Position,
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) title: &'static str,
}

macro_rules! kinds {
    ($($name:ident = $status:ident, $code:literal, $title:literal;)*) => {
        $(pub(in crate::http) const $name: Kind = Kind {
            position: Position::$name,
            status: StatusCode::$status,
            code: $code,
            title: $title,
        };)*

        /// Where each is in [`ALL`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "they are named as the kinds are"
        )]
        enum Position { $($name),* }

        /// All kinds.
        pub(in crate::http) const ALL: &[Kind] = &[$($name),*];
    };
}

kinds! {
    // What a request looks like.
    MALFORMED_JSON = BAD_REQUEST, "malformed_json", "The body is not JSON";
    INVALID_BODY = BAD_REQUEST, "invalid_body", "The body is not what this route takes";
    INVALID_PATH = BAD_REQUEST, "invalid_path", "The path cannot be read";
    INVALID_QUERY = BAD_REQUEST, "invalid_query", "The query is not what this route takes";
    INVALID_HEADER = BAD_REQUEST, "invalid_header", "A header is not what this route takes";
    INVALID_ACTOR = BAD_REQUEST, "invalid_actor", "The actor's name cannot be kept";
    UNAUTHORIZED = UNAUTHORIZED, "unauthorized", "The token is missing or wrong";
    FORBIDDEN = FORBIDDEN, "forbidden", "The token does not have the role";
    NAMESPACE_BOUND = FORBIDDEN, "namespace_bound", "The token is bound to a namespace";
    FOREIGN_ORIGIN = FORBIDDEN, "foreign_origin", "A page from elsewhere may not ask this";
    UNKNOWN_ROUTE = NOT_FOUND, "unknown_route", "There is nothing here";
    METHOD_NOT_ALLOWED = METHOD_NOT_ALLOWED, "method_not_allowed", "Not with this method";
    BODY_TOO_SLOW = REQUEST_TIMEOUT, "body_too_slow", "The body did not arrive in time";
    BODY_TOO_LARGE = PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large";
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body is not declared as JSON";

    // What the engine answers.
    REFUSED = TOO_MANY_REQUESTS, "refused", "A limit refuses for now";
    UNKNOWN_LIMIT = NOT_FOUND, "unknown_limit", "There is no such limit";
    WEIGHT_OVER_CAPACITY = UNPROCESSABLE_ENTITY, "weight_over_capacity", "The weight can never pass";
    WEIGHT_ZERO = UNPROCESSABLE_ENTITY, "weight_zero", "The weight is below 1";
    NO_TOLL = UNPROCESSABLE_ENTITY, "no_toll", "There is no toll";
    TOO_MANY_TOLLS = UNPROCESSABLE_ENTITY, "too_many_tolls", "There are too many tolls";
    DELAY_WITH_SLOTS = UNPROCESSABLE_ENTITY, "delay_with_slots", "Slots cannot be promised for later";
    NAME_EMPTY = UNPROCESSABLE_ENTITY, "name_empty", "The name is empty";
    NAME_TOO_LONG = UNPROCESSABLE_ENTITY, "name_too_long", "The name is too long";
    LIMIT_NO_RULE = UNPROCESSABLE_ENTITY, "limit_no_rule", "The limit has no rule";
    LIMIT_TOO_MANY_RULES = UNPROCESSABLE_ENTITY, "limit_too_many_rules", "The limit has too many rules";
    LIMIT_TWO_CONCURRENCIES = UNPROCESSABLE_ENTITY, "limit_two_concurrencies", "The limit counts slots twice";
    LIMIT_ZERO = UNPROCESSABLE_ENTITY, "limit_zero", "Nothing would ever pass";
    LIMIT_TOO_LARGE = UNPROCESSABLE_ENTITY, "limit_too_large", "The number is too large";
    LIMIT_PERIOD = UNPROCESSABLE_ENTITY, "limit_period", "The period does not do";
    LIMIT_GUARD_TOO_LONG = UNPROCESSABLE_ENTITY, "limit_guard_too_long", "The guard is too long";
    LIMIT_GUARD_TAKES_THE_BURST = UNPROCESSABLE_ENTITY, "limit_guard_takes_the_burst", "The guard takes all of the burst";
    LIMIT_GUARD_ON_CALENDAR = UNPROCESSABLE_ENTITY, "limit_guard_on_calendar", "A calendar takes no guard";
    LIMIT_AHEAD_ON_CALENDAR = UNPROCESSABLE_ENTITY, "limit_ahead_on_calendar", "A calendar lends nothing ahead";
    LIMIT_AHEAD_WITH_SLOTS = UNPROCESSABLE_ENTITY, "limit_ahead_with_slots", "Slots are not lent ahead";
    LIMIT_SPREAD_COMBINED = UNPROCESSABLE_ENTITY, "limit_spread_combined", "A limit that is spread is asked alone";
    LIMIT_SPREAD_STAYS = CONFLICT, "limit_spread_stays", "Whether a limit is spread stays";
    LIMIT_BURST_FILLS_TOO_SLOWLY = UNPROCESSABLE_ENTITY, "limit_burst_fills_too_slowly", "The burst takes years to fill";
    LIMIT_UNKNOWN_ZONE = UNPROCESSABLE_ENTITY, "limit_unknown_zone", "There is no such time zone";
    LIMIT_NOT_A_CALENDAR_PERIOD = UNPROCESSABLE_ENTITY, "limit_not_a_calendar_period", "No calendar has such a period";
    LIMIT_MISPLACED = UNPROCESSABLE_ENTITY, "limit_misplaced", "The rule has no such setting";
    ACTUAL_TOO_LARGE = UNPROCESSABLE_ENTITY, "actual_too_large", "The true cost is too large";
    NOT_PAID = UNPROCESSABLE_ENTITY, "not_paid", "Nothing was paid there";
    TOO_MANY_OVERRIDES = UNPROCESSABLE_ENTITY, "too_many_overrides", "Too many partitions have rules of their own";
    NOTHING_HELD = UNPROCESSABLE_ENTITY, "nothing_held", "The receipt holds no slots";
    INVALID_ASK = UNPROCESSABLE_ENTITY, "invalid_ask", "This can never pass as it is";
    UNKNOWN_QUEUE = NOT_FOUND, "unknown_queue", "There is no such queue";
    UNKNOWN_CALL = NOT_FOUND, "unknown_call", "There is no such call";
    UNKNOWN_SCHEDULE = NOT_FOUND, "unknown_schedule", "There is no such schedule";
    UNKNOWN_WORKFLOW = NOT_FOUND, "unknown_workflow", "There is no such workflow";
    UNKNOWN_RUN = NOT_FOUND, "unknown_run", "There is no such run";
    WORKFLOW_INVALID = UNPROCESSABLE_ENTITY, "workflow_invalid", "No workflow can be so";
    WORKFLOW_DISAGREES = CONFLICT, "workflow_disagrees", "Another workflow says otherwise of a type";
    RUN_INPUT = UNPROCESSABLE_ENTITY, "run_input", "No run can begin with this input";
    RUN_WORKFLOW = UNPROCESSABLE_ENTITY, "run_workflow", "The run cannot go on so";
    RUN_HAS_ENDED = CONFLICT, "run_has_ended", "The run has ended";
    RUN_HAS_NOT_ENDED = CONFLICT, "run_has_not_ended", "The run has not ended";
    RUN_OF_WORKFLOW = CONFLICT, "run_of_workflow", "The run is that of a workflow";
    RUN_NOT_RERUN = CONFLICT, "run_not_rerun", "The run cannot go on so";
    INBOX_FULL = TOO_MANY_REQUESTS, "inbox_full", "The run has not asked for what it was told";
    RUN_BUSY = SERVICE_UNAVAILABLE, "run_busy", "Others change the run all the time";
    RESERVED_NAME = UNPROCESSABLE_ENTITY, "reserved_name", "The name is Tollgate's own";
    QUEUE_OF_RUNS = CONFLICT, "queue_of_runs", "The calls of this queue are those of runs";
    CALL_OF_RUN = CONFLICT, "call_of_run", "A run stands on this call";
    QUEUE_PUSHED = CONFLICT, "queue_pushed", "Tollgate delivers the calls of this queue itself";
    QUEUE_NOT_PUSHED = UNPROCESSABLE_ENTITY, "queue_not_pushed", "The queue hands its calls to workers";
    FORECAST_TOO_LARGE = CONFLICT, "forecast_too_large", "There are too many calls for a forecast";
    DESTINATION_MISSING = UNPROCESSABLE_ENTITY, "destination_missing", "Nobody knows where the call goes";
    DESTINATION_INVALID = UNPROCESSABLE_ENTITY, "destination_invalid", "Nothing can be delivered so";
    ENVELOPE_TOO_LONG = UNPROCESSABLE_ENTITY, "envelope_too_long", "Too much goes with the body of a call";
    QUEUE_FULL = TOO_MANY_REQUESTS, "queue_full", "The queue holds as many calls as it may";
    QUEUE_PARALLEL = UNPROCESSABLE_ENTITY, "queue_parallel", "A lane cannot have so many calls in flight";
    QUEUE_LEASE = UNPROCESSABLE_ENTITY, "queue_lease", "The lease does not do";
    QUEUE_NO_ATTEMPTS = UNPROCESSABLE_ENTITY, "queue_no_attempts", "Calls would be dead before they start";
    QUEUE_JITTER = UNPROCESSABLE_ENTITY, "queue_jitter", "No wait is shorter by more than all of it";
    QUEUE_DELIVERY = UNPROCESSABLE_ENTITY, "queue_delivery", "The destination is too long to be kept with the queue";
    QUEUE_NO_DEPTH = UNPROCESSABLE_ENTITY, "queue_no_depth", "Nothing could ever be enqueued";
    QUEUE_TOO_MANY_TOLLS = UNPROCESSABLE_ENTITY, "queue_too_many_tolls", "The queue asks for too many tolls";
    QUEUE_TOLL_WEIGHT = UNPROCESSABLE_ENTITY, "queue_toll_weight", "A toll of the queue could weigh nothing";
    QUEUE_TOLL_LIKE = UNPROCESSABLE_ENTITY, "queue_toll_like", "A toll that is like another has none of its own";
    QUEUE_TOLL_WHEN = UNPROCESSABLE_ENTITY, "queue_toll_when", "A toll compares bodies with too long a text";
    QUEUE_NOT_EMPTY = CONFLICT, "queue_not_empty", "The queue has calls";
    BODY_NOT_JSON = UNPROCESSABLE_ENTITY, "body_not_json", "The queue reads the body, and it is not JSON";
    NO_PARTITION = UNPROCESSABLE_ENTITY, "no_partition", "The body does not say which partition it is";
    NO_WEIGHT = UNPROCESSABLE_ENTITY, "no_weight", "The body does not say how much it weighs";
    LEASE_UNKNOWN = NOT_FOUND, "lease_unknown", "There is no such lease";
    LEASE_LOST = CONFLICT, "lease_lost", "The lease is lost";
    CALL_BODY_TOO_LONG = UNPROCESSABLE_ENTITY, "call_body_too_long", "The body of a call is too long";
    REPORT_TOO_LONG = UNPROCESSABLE_ENTITY, "report_too_long", "The report is too long";
    TOO_MANY_CHANGES = UNPROCESSABLE_ENTITY, "too_many_changes", "This is too much at once";
    INSTANT_IN_SCHEDULE = UNPROCESSABLE_ENTITY, "instant_in_schedule", "A schedule's call counts from its tick";
    LIMITS_ONLY = CONFLICT, "limits_only", "This server keeps limits alone";
    METERS_NOT_LISTED = CONFLICT, "meters_not_listed", "This server does not know which meters there are";
    RECEIPT_UNKNOWN = NOT_FOUND, "receipt_unknown", "There is no such receipt";
    RECEIPT_SPENT = CONFLICT, "receipt_spent", "The receipt is spent";
    LIMITS_FULL = SERVICE_UNAVAILABLE, "limits_full", "There is no room for another limit";
    METERS_FULL = SERVICE_UNAVAILABLE, "meters_full", "There is no room for another meter";
    WAITING_FULL = SERVICE_UNAVAILABLE, "waiting_full", "Too many calls are waiting";
    RECEIPTS_FULL = SERVICE_UNAVAILABLE, "receipts_full", "There is no room for another settled receipt";
    TOO_BUSY = SERVICE_UNAVAILABLE, "too_busy", "Too many large bodies arrive at once";
    STORE_FULL = SERVICE_UNAVAILABLE, "store_full", "There is no room in the store";
    STORE_UNREACHABLE = SERVICE_UNAVAILABLE, "store_unreachable", "The store is out of reach";
    STORE_FAILED = SERVICE_UNAVAILABLE, "store_failed", "The store could not decide";
    SHUTTING_DOWN = SERVICE_UNAVAILABLE, "shutting_down", "The server is shutting down";
}

impl Kind {
    /// Where it is in [`ALL`].
    pub(in crate::http) fn position(self) -> usize {
        self.position as usize
    }

    pub(in crate::http) fn status(self) -> u16 {
        self.status.as_u16()
    }

    pub(in crate::http) fn code(self) -> &'static str {
        self.code
    }
}

/// Every code with its status: what `openapi.json` must list.
pub fn codes() -> impl Iterator<Item = (&'static str, u16)> {
    ALL.iter().map(|kind| (kind.code, kind.status.as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_where_it_says() {
        let positions: Vec<usize> = ALL.iter().map(|kind| kind.position()).collect();
        assert_eq!(positions, (0..ALL.len()).collect::<Vec<_>>());
    }
}
