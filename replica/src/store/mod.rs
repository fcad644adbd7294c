//! The store: versioned relations. A [`Snapshot`] is all tables at one commit version, immutable and O(1) to take;
//! a [`Delta`] is what leads from one snapshot to a later one.

pub mod delta;
pub mod index;
pub mod key;
pub mod relation;
pub mod snapshot;
pub mod tree;

pub use delta::{Delta, RowChange, TableChanges};
pub use index::{IndexId, IndexSpec};
pub use key::KeyBytes;
pub use relation::{Relation, TableId};
pub use snapshot::{Snapshot, SnapshotEditor};
