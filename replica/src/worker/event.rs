//! What a worker tells the drain.

use tidegate_wire::model::{Cv, Row};

/// Names a family (one pipeline) for as long as the process lives; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// Names one binding of a family for as long as the process lives; never reused, also not for equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BindingId(pub u64);

/// A worker thread's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

/// One row's change at one place of one binding's result: it enters (no old row), leaves (no new row), or stays
/// with other content. For one binding and place a row enters and leaves at most once more in one direction than
/// in the other per commit; the drain folds the changes of one key together in whatever order they come.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The binding whose result it is.
    pub binding: BindingId,
    /// The place in the query's tree.
    pub place: u8,
    /// The row before, when it stood there.
    pub old: Option<Row>,
    /// The row after, when it stands there.
    pub new: Option<Row>,
}

/// Why a query was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultCause {
    /// Evaluating it failed: division by zero, overflow, or a defect in its pipeline.
    Derive,
    /// One advance or hydration took longer than the deadline.
    Deadline,
    /// Its worker is gone.
    WorkerLost,
    /// Its owner removed it.
    Removed,
    /// Its owner gave its name to another query.
    Replaced,
    /// A table it reads changed its schema.
    SchemaChanged,
}

/// A cause with its message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub cause: FaultCause,
    /// What happened, naming the row or the limit at fault.
    pub message: String,
}

/// Sent by workers over a bounded channel; a full channel makes the worker wait.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerEvent {
    /// A binding's whole result, each change an entering one; once per binding.
    Hydrated {
        /// The family.
        query: QueryId,
        /// The binding.
        binding: BindingId,
        /// The commit version of the result: the worker's position.
        cv: Cv,
        /// The rows.
        changes: Vec<Change>,
    },
    /// What one commit (or several merged) changed in a family's results; any number of slices per commit version.
    Changed {
        /// The family.
        query: QueryId,
        /// The commit version the changes lead to.
        cv: Cv,
        /// The changes, of any of the family's bindings.
        changes: Vec<Change>,
    },
    /// After all of a commit version's changes: the worker's position.
    Progressed {
        /// The worker.
        worker: WorkerId,
        /// Its position; also that of every commit merged into this one.
        cv: Cv,
    },
    /// The family (or only one binding of it) stopped; nothing further comes of it.
    Faulted {
        /// The family.
        query: QueryId,
        /// The binding, when only that one stopped.
        binding: Option<BindingId>,
        /// Why.
        fault: Fault,
    },
}
