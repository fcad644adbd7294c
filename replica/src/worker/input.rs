//! What the coordinator tells a worker, beside the deltas that the store sends it.

use super::{BindingId, Fault, QueryId, gauges::QueryGauges};
use crate::{
    pipeline::{OperatorProfile, Pipeline},
    query::Shape,
    worker::Change,
};
use std::sync::{Arc, atomic::AtomicBool};
use tidegate_wire::model::Value;
use tokio::sync::oneshot;

/// Sent over a worker's bounded queue, in order.
pub enum WorkerInput {
    /// A family lives here from now on.
    Register {
        /// The family.
        query: QueryId,
        /// What it maintains. The indexes it reads are in every delta sent before this message.
        shape: Arc<Shape>,
        /// Where the worker tells of it.
        gauges: Arc<QueryGauges>,
    },
    /// A binding is wanted; answered by `Hydrated` or `Faulted`.
    Bind {
        /// The family.
        query: QueryId,
        /// The binding.
        binding: BindingId,
        /// One value per slot.
        values: Arc<[Value]>,
        /// Set once it is hydrated.
        hydrated: Arc<AtomicBool>,
    },
    /// A binding is no longer wanted; if it is still being hydrated, that ends.
    Unbind {
        /// The family.
        query: QueryId,
        /// The binding.
        binding: BindingId,
    },
    /// A family is no longer wanted.
    Remove {
        /// The family.
        query: QueryId,
    },
    /// What a family's operators hold and did is asked for; a family that is not here gives no answer.
    Profile {
        /// The family.
        query: QueryId,
        /// Takes the answer.
        answer: oneshot::Sender<Vec<OperatorProfile>>,
    },
    /// A hydration that was done aside, at the snapshot the worker stood at when it was asked for.
    Aside(Box<Aside>),
    /// The worker ends.
    Stop,
}

/// A binding hydrated on the side thread: its own pipeline and the rows it shows.
pub struct Aside {
    /// The family.
    pub(super) query: QueryId,
    /// The binding.
    pub(super) binding: BindingId,
    /// The result, or why there is none.
    pub(super) result: Result<(Pipeline, Vec<Change>), Fault>,
}
