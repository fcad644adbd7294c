//! What the coordinator tells the drain.

use crate::{
    query::Output,
    worker::{BindingId, Fault, QueryId, WorkerId},
};
use crossbeam_channel::Sender;
use std::sync::Arc;
use tidegate_wire::model::{Cv, Epoch, PlaceMask, Row, SubId};

/// Names a connection for as long as the process lives; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// A row of a result with the places where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct StandingRow {
    /// Index into the output's tables.
    pub table: usize,
    /// Where it stands.
    pub places: PlaceMask,
    /// The store's row.
    pub row: Row,
}

/// One binding's maintained result, for [`Control::Inspect`].
#[derive(Clone, Debug)]
pub struct Inspected {
    /// The family.
    pub query: QueryId,
    /// The binding.
    pub binding: BindingId,
    /// The commit version of the result.
    pub cv: Cv,
    /// The result, each row once.
    pub rows: Vec<StandingRow>,
}

/// Sent by the coordinator over the drain's bounded queue, in order.
#[derive(Clone, Debug)]
pub enum Control {
    /// A family exists and lives on `worker`.
    Register {
        /// The family.
        query: QueryId,
        /// Where its pipeline lives.
        worker: WorkerId,
        /// What of its rows travels.
        output: Arc<Output>,
    },
    /// A binding was sent to the family's worker.
    Bind {
        /// The family.
        query: QueryId,
        /// The binding.
        binding: BindingId,
    },
    /// A binding is no longer wanted; subscribers it still has are faulted with `fault`.
    Unbind {
        /// The family.
        query: QueryId,
        /// The binding.
        binding: BindingId,
        /// What its subscribers are told.
        fault: Fault,
    },
    /// A family is gone; its subscribers are faulted with `fault`, and its owner is not told.
    Remove {
        /// The family.
        query: QueryId,
        /// What its subscribers are told.
        fault: Fault,
    },
    /// A connection exists; the sink knows it from before.
    Connect {
        /// The connection.
        conn: ConnId,
    },
    /// A connection is gone, and all its subscriptions.
    Disconnect {
        /// The connection.
        conn: ConnId,
    },
    /// A subscription starts.
    Attach {
        /// The connection.
        conn: ConnId,
        /// The client's number for it.
        sub: SubId,
        /// The family.
        query: QueryId,
        /// The binding, announced by an earlier [`Control::Bind`].
        binding: BindingId,
        /// The epoch its batches carry.
        epoch: Epoch,
        /// What the client still holds, when it resumes: seq 0 is then the difference from it.
        resume: Option<Vec<StandingRow>>,
    },
    /// One subscription is faulted and detached; its binding goes on.
    FaultSubscriber {
        /// The connection.
        conn: ConnId,
        /// The client's number for it.
        sub: SubId,
        /// What the client is told.
        fault: Fault,
    },
    /// Every hydrated binding's result is wanted for a comparison.
    Inspect {
        /// Where the results go; one message.
        reply: Sender<Vec<Inspected>>,
    },
    /// A subscription ends without a word to the client.
    Detach {
        /// The connection.
        conn: ConnId,
        /// The client's number for it.
        sub: SubId,
    },
    /// The newest commit version, for connections without subscriptions.
    Newest {
        /// The commit version.
        cv: Cv,
    },
    /// Nothing further comes; the drain ends.
    Shutdown,
}
