//! The drain: one thread that folds the workers' events into batches per subscriber and decides each connection's
//! progress frames.

pub mod control;
pub mod sink;

pub use control::{ConnId, Control};
pub use sink::{BatchOps, Recipient, RowOp, Sink};
