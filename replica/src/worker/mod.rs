//! Workers: threads that host pipelines.

pub mod event;

pub use event::{BindingId, Change, Fault, FaultCause, QueryId, WorkerEvent, WorkerId};
