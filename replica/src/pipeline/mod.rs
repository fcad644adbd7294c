//! Pipelines: the operators that maintain one shape for all its bindings, with what they hold.
//!
//! A nested query is a tree of places, each maintained by the same operator ([`Nested`]); a select is a graph of relational
//! operators ([`Dataflow`]). Both read the snapshots before and after a delta, cost what the bindings cost that it touches,
//! and live on one worker thread.

mod flip;
mod group;
mod nested;
mod profile;
pub(crate) mod read;
mod step;
mod total;

pub use nested::Nested;
pub use profile::OperatorProfile;
pub use read::Budget;
pub use step::StepFault;

use crate::{
    dataflow::{Dataflow, Units},
    query::{Shape, shape::Body},
    store::{Delta, Snapshot},
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use std::sync::Arc;
use tidegate_wire::model::Value;

/// See the module's description.
pub enum Pipeline {
    /// Of a nested query.
    Nested(Nested),
    /// Of a select.
    Flat(Box<Dataflow>),
}

impl Pipeline {
    /// A pipeline without bindings, which holds nothing.
    #[must_use]
    pub fn new(shape: Arc<Shape>) -> Self {
        match &shape.body {
            Body::Nested(_) => Self::Nested(Nested::new(shape)),
            Body::Flat(plan) => {
                let plan = Arc::clone(plan);
                Self::Flat(Box::new(Dataflow::new(shape, plan)))
            }
        }
    }

    /// A pipeline that shares operators with others of one thread, which all stand at one snapshot.
    #[must_use]
    pub fn sharing(shape: Arc<Shape>, units: &Arc<Units>) -> Self {
        match &shape.body {
            Body::Nested(_) => Self::new(shape),
            Body::Flat(plan) => {
                let plan = Arc::clone(plan);
                Self::Flat(Box::new(Dataflow::sharing(shape, plan, Arc::clone(units))))
            }
        }
    }

    /// The shape it maintains.
    #[must_use]
    pub fn shape(&self) -> &Arc<Shape> {
        match self {
            Self::Nested(nested) => nested.shape(),
            Self::Flat(dataflow) => dataflow.shape(),
        }
    }

    /// How many bindings it serves.
    #[must_use]
    pub fn bindings(&self) -> usize {
        match self {
            Self::Nested(nested) => nested.bindings(),
            Self::Flat(dataflow) => dataflow.bindings(),
        }
    }

    /// How many keys its operators hold: the size of its state.
    #[must_use]
    pub fn groups(&self) -> usize {
        match self {
            Self::Nested(nested) => nested.groups(),
            Self::Flat(dataflow) => dataflow.keys(),
        }
    }

    /// What its operators (a nested query's places) hold and did.
    #[must_use]
    pub fn profiles(&self) -> Vec<OperatorProfile> {
        match self {
            Self::Nested(nested) => nested.profiles(),
            Self::Flat(dataflow) => dataflow.profiles(),
        }
    }

    /// Adds a binding; the changes appended to `out` are its whole result at the snapshot.
    ///
    /// # Errors
    /// When evaluating the query fails; the binding is then not there.
    ///
    /// # Panics
    /// When the binding is there already, or has not one value per slot.
    pub fn bind(
        &mut self,
        binding: BindingId,
        values: Arc<[Value]>,
        at: &Arc<Snapshot>,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<(), StepFault> {
        assert_eq!(values.len(), self.shape().slots.len(), "a binding has one value per slot");
        match self {
            Self::Nested(nested) => nested.bind(binding, values, at, budget, out),
            Self::Flat(dataflow) => dataflow.bind(binding, values, at, budget, out),
        }
    }

    /// Removes a binding and what only it asked for; how many rows its result had.
    pub fn unbind(&mut self, binding: BindingId, at: &Arc<Snapshot>, budget: &Budget) -> usize {
        match self {
            Self::Nested(nested) => nested.unbind(binding, at, budget),
            Self::Flat(dataflow) => dataflow.unbind(binding, at, budget),
        }
    }

    /// What a delta changes, appended to `out`. Bindings whose evaluation failed are gone and returned with the reason;
    /// their changes are not in `out`.
    ///
    /// # Errors
    /// When the whole pipeline is to be discarded: the deadline passed, or no single binding is at fault.
    pub fn advance(
        &mut self,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<HashMap<BindingId, StepFault>, StepFault> {
        match self {
            Self::Nested(nested) => nested.advance(delta, budget, out),
            Self::Flat(dataflow) => dataflow.advance(delta, budget, out),
        }
    }

    /// Takes over the bindings of another pipeline of the same shape that stands at the same snapshot.
    pub fn absorb(&mut self, other: Self) {
        match (self, other) {
            (Self::Nested(own), Self::Nested(other)) => own.absorb(other),
            (Self::Flat(own), Self::Flat(other)) => own.absorb(*other),
            _ => unreachable!("pipelines of one shape are of one kind"),
        }
    }
}
