//! Workers: threads that host families' pipelines. On a delta each tells the drain what changed, then its position.

pub mod event;
mod family;
pub mod gauges;
pub mod input;
pub mod thread;

pub use event::{BindingId, Change, Fault, FaultCause, QueryId, WorkerEvent, WorkerId};
pub use gauges::QueryGauges;
pub use input::WorkerInput;
pub(crate) use thread::STACK_BYTES;
pub use thread::WorkerHandle;
