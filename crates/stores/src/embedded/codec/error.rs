//! Why a record cannot be read, by what can be done about it.

use tollgate_core::lanes::QueueError;
use tollgate_core::{LimitError, LimitName, NameError, QueueName};

/// Why a record says nothing that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A later release wrote it: use that one.
    #[error(
        "a newer release wrote this record, its {what} {number} is not known: open the journal with the release that wrote it, or a later one"
    )]
    Newer {
        /// What is not known.
        what: &'static str,
        /// Which one it is.
        number: u8,
    },
    /// It defines a limit that this release does not take.
    #[error(
        "the journal defines limit {name} in a way that is not taken any more ({source}): open it with the release that wrote it and define the limit anew"
    )]
    Limit {
        /// Which limit.
        name: LimitName,
        /// What is wrong with it.
        source: LimitError,
    },
    /// It defines a queue that this release does not take.
    #[error(
        "the journal defines queue {name} in a way that is not taken any more ({source}): open it with the release that wrote it and define the queue anew"
    )]
    Queue {
        /// Which queue.
        name: QueueName,
        /// What is wrong with it.
        source: QueueError,
    },
    /// It has a name that is none.
    #[error("the record is damaged before byte {offset}: {source}; restore the folder from a copy")]
    Name {
        /// Up to where it was read.
        offset: usize,
        /// What is wrong with the name.
        source: NameError,
    },
    /// It is not what was written.
    #[error("the record is damaged at byte {offset}: {found}; restore the folder from a copy")]
    Damaged {
        /// Where in it.
        offset: usize,
        /// What is there.
        found: &'static str,
    },
}
