//! The store: the tables at a commit version, as immutable snapshots that share structure.

pub mod tree;
