//! What workflows and runs refuse, as problems.

use super::kinds::{self, Kind};
use super::{HeaderValue, Problem};
use axum::http::header::RETRY_AFTER;
use tollgate::flows::FlowError;

/// The problem that this is.
pub(super) fn of_flow(error: &FlowError) -> Problem {
    let problem = Problem::new(kind_of(error), error.to_string());
    match error {
        // Nobody knows when the run asks, or others are done; one who tries every second is no burden.
        FlowError::Signal(_) | FlowError::Busy { .. } => {
            problem.header(RETRY_AFTER, HeaderValue::from(1))
        }
        _ => problem,
    }
}

fn kind_of(error: &FlowError) -> Kind {
    match error {
        FlowError::UnknownRun { .. } => kinds::UNKNOWN_RUN,
        FlowError::UnknownWorkflow { .. } => kinds::UNKNOWN_WORKFLOW,
        FlowError::HasEnded { .. } => kinds::RUN_HAS_ENDED,
        FlowError::HasNotEnded { .. } => kinds::RUN_HAS_NOT_ENDED,
        FlowError::NotOfWorkflow { .. }
        | FlowError::DidNotFail { .. }
        | FlowError::StateNotKept { .. }
        | FlowError::StepUnderWay { .. }
        | FlowError::ParentLives { .. }
        | FlowError::ChildGone { .. }
        | FlowError::NoPlace { .. }
        | FlowError::KeyTaken { .. } => kinds::RUN_NOT_RERUN,
        FlowError::OfWorkflow { .. } => kinds::RUN_OF_WORKFLOW,
        FlowError::Workflow { .. } => kinds::RUN_WORKFLOW,
        FlowError::Signal(_) => kinds::INBOX_FULL,
        FlowError::Busy { .. } => kinds::RUN_BUSY,
        FlowError::Definition(_) => kinds::WORKFLOW_INVALID,
        FlowError::Disagrees { .. } => kinds::WORKFLOW_DISAGREES,
        FlowError::Input(_) => kinds::RUN_INPUT,
        _ => kinds::INVALID_ASK,
    }
}
