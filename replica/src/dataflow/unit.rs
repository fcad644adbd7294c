//! Operators that several dataflows of one thread have in common: whichever comes first to a delta works it through, and
//! the others get what it found.

use super::{Step, bag::Bag, isolate::Failure, operators::Operators};
use crate::{pipeline::StepFault, plan::Node, store::Snapshot};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A unit, which lives as long as a dataflow needs it.
pub(super) type UnitHandle = Arc<Mutex<Unit>>;

/// A unit: some operators, the last of which holds the rows that it passes on. See the module's description.
pub(super) struct Unit {
    pub(super) operators: Operators,
    pub(super) is_hydrated: bool,
    /// What it found for the delta that led to this snapshot.
    last: Option<(Weak<Snapshot>, Bag)>,
    /// Why it is of no further use.
    fault: Option<StepFault>,
}

/// The units of one thread by what they compute.
#[derive(Default)]
pub struct Units {
    units: Mutex<HashMap<Arc<str>, Weak<Mutex<Unit>>>>,
}

impl Units {
    /// The unit of a key, made if there is none that is of use.
    pub(super) fn get_or_make(&self, key: &Arc<str>, make: impl FnOnce() -> Unit) -> UnitHandle {
        let mut units = self.units.lock();
        if let Some(unit) = units.get(key).and_then(Weak::upgrade)
            && unit.lock().fault.is_none()
        {
            return unit;
        }
        units.retain(|_, unit| unit.strong_count() > 0);
        let unit = Arc::new(Mutex::new(make()));
        units.insert(Arc::clone(key), Arc::downgrade(&unit));
        unit
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.lock().values().filter(|unit| unit.strong_count() > 0).count()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Unit {
    /// One that holds nothing.
    pub(super) fn new(nodes: &Arc<[Node]>) -> Self {
        Self { operators: Operators::new(nodes), is_hydrated: false, last: None, fault: None }
    }

    /// What a step changes of its rows; in a dataflow's first step, all of them.
    pub(super) fn step(unit: &UnitHandle, step: &Step<'_>) -> Result<Bag, Failure> {
        let is_shared = Arc::strong_count(unit) > 1;
        let mut unit = unit.lock();
        if let Some(fault) = &unit.fault {
            return Err(Failure { fault: fault.clone(), is_of_all: true });
        }
        let done = unit.changes(step, is_shared);
        if let Err(failure) = &done {
            unit.fault = Some(failure.fault.clone());
        }
        done
    }

    fn changes(&mut self, step: &Step<'_>, is_shared: bool) -> Result<Bag, Failure> {
        let of_all = |error| Failure { fault: StepFault::of(error, step.after.budget), is_of_all: true };
        if step.is_first {
            if !self.is_hydrated {
                let rows = self.operators.step(step)?;
                self.is_hydrated = true;
                return Ok(rows);
            }
            return self.operators.rows().map_err(of_all);
        }
        // Slot values that come or go are nothing to it.
        if !step.parameters.is_empty() {
            return Ok(Bag::new());
        }
        if let Some((to, bag)) = &self.last
            && std::ptr::eq(to.as_ptr(), Arc::as_ptr(&step.delta.to))
        {
            return Ok(bag.clone());
        }
        let bag = self.operators.step(step)?;
        self.last = is_shared.then(|| (Arc::downgrade(&step.delta.to), bag.clone()));
        Ok(bag)
    }
}
