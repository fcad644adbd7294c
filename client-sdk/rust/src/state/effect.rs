//! What the state machine asks of its driver.

use super::{Rows, Violation, change::Changes};
use crate::error::Fault;
use tidegate_wire::{
    model::{Cv, SubId},
    protocol::{ClientMessage, ErrorCode},
};

/// One thing to do or to tell.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send a message.
    Send(ClientMessage),
    /// The server answered `hello`.
    Welcomed,
    /// The server took a subscription.
    Subscribed(SubId),
    /// A new visible state: all of it at once.
    Released(Release),
    /// A subscription ended.
    Ended {
        /// The subscription.
        sub: SubId,
        /// Why.
        fault: Fault,
    },
    /// A mutation is in the released state.
    Confirmed {
        /// The mutation's ticket.
        ticket: u64,
        /// The commit version of the release.
        cv: Cv,
    },
    /// A mutation was refused.
    Refused {
        /// The mutation's ticket.
        ticket: u64,
        /// Why.
        fault: Fault,
    },
    /// The server refused a message that concerns no subscription that can end by it.
    ServerError {
        /// What kind of error.
        code: ErrorCode,
        /// The error, for people.
        message: String,
    },
    /// Give this connection up and make another, after a wait of at least so long.
    Reconnect {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        message: String,
        /// The least wait, milliseconds.
        after_ms: u64,
    },
    /// The server broke the protocol: give this connection up and make another.
    Violation(Violation),
}

/// A step of the visible state.
#[derive(Debug)]
pub(crate) struct Release {
    /// The commit version that everything visible now stands at.
    pub(crate) cv: Cv,
    /// The results that are new or changed.
    pub(crate) results: Vec<ReleasedResult>,
}

/// One subscription's part of a release.
#[derive(Debug)]
pub(crate) struct ReleasedResult {
    /// The subscription.
    pub(crate) sub: SubId,
    /// Its result now.
    pub(crate) rows: Rows,
    /// What changed at its root.
    pub(crate) changes: Changes,
}
