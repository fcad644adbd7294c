//! The store: versioned relations. A [`Snapshot`] is all tables at one commit version, immutable and O(1) to take;
//! a [`Delta`] is what leads from one snapshot to a later one; a [`Store`] makes them from commits, durably.

mod apply;
mod catalog;
pub mod commit_error;
mod committer;
pub mod constraint;
pub mod delta;
pub mod draft;
pub mod handle;
pub mod idempotency;
pub mod index;
pub mod indexes;
mod journal;
pub mod key;
pub mod limits;
mod published;
mod record;
mod refusals;
pub mod relation;
mod replay;
mod rules;
mod schema_step;
pub mod snapshot;
mod statistics;
pub mod system_tables;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod view;

pub(crate) use apply::{check_rules, numbered};
pub use catalog::Reference;
pub use commit_error::{CommitError, CommitErrorKind, CommitPlace, CommitProblem};
pub use committer::{Materialization, MaterializationOutcome, Transaction, TransactionOutcome};
pub use delta::{Delta, RowChange, TableChanges};
pub use draft::{CommitLimits, Draft, DraftOp, KeyValues};
pub use handle::{
    Commits, CommitsOutcome, Mutation, MutationEffect, MutationOutcome, OpenError, Store, StoreClosed,
    StoreOptions, TablesOutcome,
};
pub use idempotency::{IdempotencyEntry, IdempotencyTag};
pub use index::{IndexId, IndexSpec};
pub use indexes::IndexError;
pub use key::KeyBytes;
pub use record::RecordError;
pub use relation::{Relation, TableId};
pub use replay::ReplayError;
pub use rules::{CheckRule, Rules, UniqueRule};
pub use schema_step::{CellSource, SchemaStep};
pub use snapshot::{Snapshot, SnapshotEditor};
pub use view::{View, ViewDefinition, ViewEntry};
