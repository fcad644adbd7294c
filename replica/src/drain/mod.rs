//! The drain: one thread that folds the workers' events into batches per subscriber and decides each connection's
//! progress frames. Modules stand in flow order.

pub mod control;
pub mod footprint;
pub mod limits;
pub mod sink;
pub mod state;
pub mod statistics;
pub mod thread;

mod attach;
mod batches;
mod connection;
mod early;
mod ended;
mod family;
mod fault;
mod position;

pub use control::{ConnId, Control, Inspected, StandingRow};
pub use footprint::{Emit, Folded, Footprint};
pub use sink::{BatchOps, Recipient, RowOp, Sink};
pub use state::Drain;
pub use statistics::Statistics;
pub use thread::{DrainGone, DrainHandle, DrainInput, DrainOptions, DrainThread};
