//! A family on its worker: its pipeline, guarded so that a panic or a passed deadline costs nobody else.

use super::{BindingId, Change, Fault, FaultCause, gauges::QueryGauges};
use crate::{
    dataflow::Units,
    pipeline::{Budget, OperatorProfile, Pipeline, StepFault},
    query::Shape,
    store::{Delta, KeyBytes, Snapshot, key::row_key},
};
use hashbrown::HashMap;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tidegate_wire::model::{Row, Value};

/// See the module's description.
pub(super) struct Family {
    pipeline: Pipeline,
    gauges: Arc<QueryGauges>,
}

/// What an advance came to.
pub(super) struct Advanced {
    /// The changes of the bindings that go on.
    pub(super) changes: Vec<Change>,
    /// The bindings that do not.
    pub(super) faults: Vec<(BindingId, Fault)>,
}

impl Family {
    pub(super) fn new(shape: Arc<Shape>, gauges: Arc<QueryGauges>, units: &Arc<Units>) -> Self {
        Self { pipeline: Pipeline::sharing(shape, units), gauges }
    }

    pub(super) fn shape(&self) -> &Arc<Shape> {
        self.pipeline.shape()
    }

    /// # Errors
    /// When the family is to be discarded.
    pub(super) fn advance(&mut self, delta: &Delta, deadline: Duration) -> Result<Advanced, Fault> {
        let started = Instant::now();
        let mut changes = Vec::new();
        let budget = Budget::new(deadline);
        let faults = guarded(|| self.pipeline.advance(delta, &budget, &mut changes))?
            .map_err(|fault| fault_of(&fault, deadline))?;
        if !changes.is_empty() || !faults.is_empty() {
            self.gauges.advanced(started.elapsed());
            self.count(&changes);
        }
        let faults =
            faults.into_iter().map(|(binding, fault)| (binding, fault_of(&fault, deadline))).collect();
        Ok(Advanced { changes, faults })
    }

    /// Hydrates a binding unless that takes more than `rows_max` rows; it is then not there, and `None` is returned.
    /// The outer error discards the family, the inner one concerns the binding.
    pub(super) fn bind(
        &mut self,
        binding: BindingId,
        values: Arc<[Value]>,
        at: &Arc<Snapshot>,
        deadline: Duration,
        rows_max: u64,
    ) -> Result<Option<Result<Vec<Change>, Fault>>, Fault> {
        let started = Instant::now();
        let mut changes = Vec::new();
        let budget = Budget::with_rows(deadline, rows_max);
        let bound = guarded(|| self.pipeline.bind(binding, values, at, &budget, &mut changes))?;
        Ok(match bound {
            Ok(()) => {
                QueryGauges::hydrated(started.elapsed());
                self.count(&changes);
                Some(Ok(changes))
            }
            Err(fault) if fault.is_row_limit() => None,
            Err(fault) => Some(Err(fault_of(&fault, deadline))),
        })
    }

    /// # Errors
    /// When the family is to be discarded.
    pub(super) fn unbind(
        &mut self,
        binding: BindingId,
        at: &Arc<Snapshot>,
        deadline: Duration,
    ) -> Result<(), Fault> {
        let budget = Budget::new(deadline);
        let rows = guarded(|| self.pipeline.unbind(binding, at, &budget))?;
        self.gauges.rows.fetch_sub(rows as i64, Relaxed);
        Ok(())
    }

    /// Brings a binding that was hydrated aside up to the present by the deltas since, and makes it one of the
    /// family's; returns its result.
    ///
    /// # Errors
    /// When catching up fails; the binding is then not there.
    pub(super) fn take_over(
        &mut self,
        binding: BindingId,
        mut pipeline: Pipeline,
        changes: Vec<Change>,
        deltas: &[Arc<Delta>],
        deadline: Duration,
    ) -> Result<Vec<Change>, Fault> {
        let started = Instant::now();
        let mut since = Vec::new();
        if !deltas.is_empty() {
            let budget = Budget::new(deadline);
            let delta = Delta::merge(deltas);
            let faults = guarded(|| pipeline.advance(&delta, &budget, &mut since))?
                .map_err(|fault| fault_of(&fault, deadline))?;
            if let Some(fault) = faults.get(&binding) {
                return Err(fault_of(fault, deadline));
            }
        }
        let changes = if since.is_empty() { changes } else { self.fold(binding, changes, since) };
        self.pipeline.absorb(pipeline);
        QueryGauges::hydrated(started.elapsed());
        self.count(&changes);
        Ok(changes)
    }

    /// A result with later changes applied, as entering changes again.
    fn fold(&self, binding: BindingId, result: Vec<Change>, since: Vec<Change>) -> Vec<Change> {
        let output = &self.shape().output;
        let key_of = |place: u8, row: &Row| -> (u8, KeyBytes) {
            let table = output.layout.places[usize::from(place)].table;
            (place, row_key(row, &output.tables[table].key))
        };
        let mut rows: HashMap<(u8, KeyBytes), Row> = HashMap::with_capacity(result.len());
        for change in result {
            let row = change.new.expect("a result's rows enter");
            rows.insert(key_of(change.place, &row), row);
        }
        for change in &since {
            if let Some(old) = &change.old {
                rows.remove(&key_of(change.place, old));
            }
        }
        for change in since {
            if let Some(new) = change.new {
                rows.insert(key_of(change.place, &new), new);
            }
        }
        rows.into_iter()
            .map(|((place, _), row)| Change { binding, place, old: None, new: Some(row) })
            .collect()
    }

    /// What its operators hold and did.
    pub(super) fn profiles(&self) -> Vec<OperatorProfile> {
        self.pipeline.profiles()
    }

    fn count(&self, changes: &[Change]) {
        let rows: i64 = changes.iter().map(|c| i64::from(c.new.is_some()) - i64::from(c.old.is_some())).sum();
        self.gauges.rows.fetch_add(rows, Relaxed);
    }
}

/// Runs a step; a panic is a defect of the pipeline, which the caller then discards.
fn guarded<T>(step: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|panic| defect(&*panic))
}

/// The fault that a panic is.
pub(super) fn defect(panic: &(dyn Any + Send)) -> Fault {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Fault { cause: FaultCause::Derive, message: format!("the query's pipeline failed: {text}") }
}

/// The fault that a step's failure is.
pub(super) fn fault_of(fault: &StepFault, deadline: Duration) -> Fault {
    if fault.is_deadline() {
        let message = format!("the query took longer than the deadline of {} ms", deadline.as_millis());
        return Fault { cause: FaultCause::Deadline, message };
    }
    Fault { cause: FaultCause::Derive, message: fault.to_string() }
}
