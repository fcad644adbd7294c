//! A row that cannot be evaluated ends the bindings whose it is, and no other: the bindings' dataflows are made anew as they
//! were before the delta, half by half, until those that fail stand alone.

use super::Dataflow;
use crate::{
    pipeline::{Budget, StepFault},
    store::Delta,
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use std::sync::Arc;
use tidegate_wire::model::Value;

/// Why a step failed.
pub(super) struct Failure {
    pub(super) fault: StepFault,
    /// Whether it is for all bindings alike: it does not depend on the slots, or no row is at fault.
    pub(super) is_of_all: bool,
}

type Bindings = [(BindingId, Arc<[Value]>)];
type Faults = HashMap<BindingId, StepFault>;

impl Dataflow {
    /// What a delta changes for those bindings that it does not fail for, and why it fails for the others, which are gone.
    ///
    /// # Errors
    /// When no single binding is at fault.
    pub(super) fn isolate(
        &mut self,
        failure: Failure,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<Faults, StepFault> {
        if failure.is_of_all && failure.fault.is_of_step() {
            return Err(failure.fault);
        }
        let mut bindings: Vec<_> = self.bindings.drain().collect();
        bindings.sort_unstable_by_key(|(binding, _)| *binding);
        *self =
            Self { units: self.units.take(), ..Self::new(Arc::clone(&self.shape), Arc::clone(&self.plan)) };
        let mut faults = Faults::new();
        if failure.is_of_all || bindings.len() == 1 {
            faults.extend(bindings.into_iter().map(|(binding, _)| (binding, failure.fault.clone())));
            return Ok(faults);
        }
        let (first, second) = bindings.split_at(bindings.len() / 2);
        self.advance_again(first, delta, budget, out, &mut faults)?;
        self.advance_again(second, delta, budget, out, &mut faults)?;
        Ok(faults)
    }

    /// Takes over those of some bindings that the delta does not fail for.
    fn advance_again(
        &mut self,
        bindings: &Bindings,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
        faults: &mut Faults,
    ) -> Result<(), StepFault> {
        let mut part = Self::new(Arc::clone(&self.shape), Arc::clone(&self.plan));
        for (binding, values) in bindings {
            part.bind(*binding, Arc::clone(values), &delta.from, budget, &mut Vec::new())?;
        }
        faults.extend(part.advance(delta, budget, out)?);
        self.absorb(part);
        Ok(())
    }
}
