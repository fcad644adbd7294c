//! A dataflow: the operators of one plan with what they hold, for all bindings of one shape.
//!
//! Rows flow as bags, with weights. An operator turns what its inputs change into what it changes; tables are read at the
//! snapshot before and the one after, so that joins hold nothing for them. What does not depend on the query's slots is
//! held once, from the first binding on; a binding coming is its slot values coming as a row, a binding going is that row
//! going. Whatever depends on the slots has their values in front of its rows, by which it is told whose it is.

mod accumulator;
mod aggregate;
mod bag;
mod completion;
mod decimal_sum;
mod exact_sum;
mod isolate;
mod join;
mod mark;
mod operators;
mod ordered;
mod recursive;
mod result;
mod set_operation;
mod single;
mod sorted;
mod spellings;
mod state;
mod top;
mod unit;
mod window;

#[cfg(test)]
mod tests;

use crate::{
    pipeline::{Budget, OperatorProfile, StepFault, read::Reader},
    plan::Plan,
    query::Shape,
    store::{Delta, KeyBytes, Snapshot, TableId},
    worker::{BindingId, Change},
};
pub(crate) use accumulator::Accumulator;
pub(crate) use aggregate::accumulate;
use bag::{Bag, KeyBuffer, consolidate};
use hashbrown::HashMap;
use isolate::Failure;
use operators::Operators;
use result::Results;
use std::sync::Arc;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};
pub use unit::Units;

/// See the module's description. Lives on one worker thread; nothing here blocks.
pub struct Dataflow {
    shape: Arc<Shape>,
    plan: Arc<Plan>,
    operators: Operators,
    /// Where operators are found that other dataflows have too, and where this one's are for others to find.
    units: Option<Arc<Units>>,
    bindings: HashMap<BindingId, Arc<[Value]>>,
    results: Results,
    is_hydrated: bool,
}

/// One step's surroundings.
struct Step<'a> {
    delta: &'a Delta,
    before: Reader<'a>,
    after: Reader<'a>,
    /// Whether there is nothing before: what depends on no slot is computed from the tables as they are after.
    is_first: bool,
    /// The slot values that come or go.
    parameters: Bag,
    /// Where keys are encoded that are looked up.
    key: KeyBuffer,
}

impl<'a> Step<'a> {
    fn new(delta: &'a Delta, is_first: bool, parameters: Bag, budget: &'a Budget) -> Self {
        Self {
            delta,
            before: Reader { snapshot: &delta.from, budget },
            after: Reader { snapshot: &delta.to, budget },
            is_first,
            parameters,
            key: KeyBuffer::default(),
        }
    }

    /// A table's changed rows, before and after, but for those that differ in none of the columns used.
    fn changed(&self, table: TableId, used: &[usize]) -> impl Iterator<Item = (Option<&Row>, Option<&Row>)> {
        let rows = self.delta.table(table).iter().map(|change| (change.old.as_ref(), change.new.as_ref()));
        rows.filter(|pair| !matches!(pair, (Some(old), Some(new)) if old.same_cells(new, used)))
    }

    fn snapshot_reader(&self, is_after: bool) -> &Reader<'a> {
        if is_after { &self.after } else { &self.before }
    }
}

impl Dataflow {
    /// A dataflow without bindings, which holds nothing.
    #[must_use]
    pub fn new(shape: Arc<Shape>, plan: Arc<Plan>) -> Self {
        Self {
            shape,
            operators: Operators::new(&plan.nodes),
            plan,
            units: None,
            bindings: HashMap::new(),
            results: Results::default(),
            is_hydrated: false,
        }
    }

    /// A dataflow without bindings that shares operators with others; all of them live on one thread, and stand at one
    /// snapshot.
    #[must_use]
    pub fn sharing(shape: Arc<Shape>, plan: Arc<Plan>, units: Arc<Units>) -> Self {
        Self { units: Some(units), ..Self::new(shape, plan) }
    }

    /// The shape it maintains.
    #[must_use]
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// How many bindings it serves.
    #[must_use]
    pub fn bindings(&self) -> usize {
        self.bindings.len()
    }

    /// How many keys its operators hold.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.operators.held().sum()
    }

    /// What its operators hold and did.
    #[must_use]
    pub fn profiles(&self) -> Vec<OperatorProfile> {
        self.operators.profiles()
    }

    /// Adds a binding; the changes appended to `out` are its whole result at the snapshot.
    ///
    /// # Errors
    /// When evaluating the query fails; the binding is then not there.
    ///
    /// # Panics
    /// When the binding is there already.
    pub fn bind(
        &mut self,
        binding: BindingId,
        values: Arc<[Value]>,
        at: &Arc<Snapshot>,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<(), StepFault> {
        let start = out.len();
        let row = Row::from_values(&values);
        let previous = self.bindings.insert(binding, values);
        assert!(previous.is_none(), "a binding is bound once");
        self.results.bind(binding, &row);
        let done = self.come(row, at, budget, out);
        if done.is_err() {
            out.truncate(start);
            self.discard(binding);
        }
        done
    }

    fn come(
        &mut self,
        row: Row,
        at: &Arc<Snapshot>,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<(), StepFault> {
        let delta = Delta::empty(Arc::clone(at));
        if !self.is_hydrated {
            if let Some(units) = &self.units {
                self.operators.share(units, false, false);
            }
            let changes = self.step(&delta, true, Vec::new(), budget).map_err(|failure| failure.fault)?;
            self.is_hydrated = true;
            self.results.tell(&self.plan, changes, out);
        }
        if self.plan.slots > 0 {
            let changes =
                self.step(&delta, false, vec![(row, 1)], budget).map_err(|failure| failure.fault)?;
            self.results.tell(&self.plan, changes, out);
        }
        Ok(())
    }

    /// Removes a binding and what only it needs; how many rows its result had.
    pub fn unbind(&mut self, binding: BindingId, at: &Arc<Snapshot>, budget: &Budget) -> usize {
        let Some(values) = self.bindings.get(&binding) else { return 0 };
        let row = Row::from_values(values);
        let rows = self.results.rows(binding);
        let delta = Delta::empty(Arc::clone(at));
        if self.bindings.len() > 1 && self.step(&delta, false, vec![(row.clone(), -1)], budget).is_ok() {
            self.bindings.remove(&binding);
            self.results.unbind(binding, &row);
        } else {
            // The last one, or one whose state cannot be walked and is searched for instead.
            self.discard(binding);
        }
        rows
    }

    /// What a delta changes, appended to `out`. Bindings that evaluating the query fails for are gone, and returned with
    /// the reason.
    ///
    /// # Errors
    /// When no single binding is at fault; the dataflow is then of no further use.
    pub fn advance(
        &mut self,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<HashMap<BindingId, StepFault>, StepFault> {
        if !self.is_hydrated {
            return Ok(HashMap::new());
        }
        match self.step(delta, false, Vec::new(), budget) {
            Ok(changes) => self.results.tell(&self.plan, changes, out),
            Err(failure) => return self.isolate(failure, delta, budget, out),
        }
        Ok(HashMap::new())
    }

    /// Takes over the bindings of another dataflow of the same shape that stands at the same snapshot.
    pub fn absorb(&mut self, other: Self) {
        debug_assert_eq!(self.shape.key, other.shape.key);
        self.bindings.extend(other.bindings);
        self.results.absorb(other.results);
        if !self.is_hydrated {
            self.operators = other.operators;
            self.is_hydrated = other.is_hydrated;
            if let Some(units) = self.units.as_ref().filter(|_| other.is_hydrated) {
                self.operators.share(units, true, false);
            }
            return;
        }
        self.operators.absorb(other.operators);
    }

    /// Forgets a binding wherever it is: for one whose state cannot be walked, and for the last.
    fn discard(&mut self, binding: BindingId) {
        let Some(values) = self.bindings.remove(&binding) else { return };
        self.results.unbind(binding, &Row::from_values(&values));
        if self.bindings.is_empty() {
            self.operators = Operators::new(&self.plan.nodes);
            self.results = Results::default();
            self.is_hydrated = false;
            return;
        }
        let mut prefix = Vec::new();
        values.iter().for_each(|value| encode_cell(value.as_ref(), Order::ASC, &mut prefix));
        let slots = self.plan.slots;
        let is_gone = |row: &Row| slot_key(row, slots)[..] == prefix[..];
        self.operators.retain(&|row| !is_gone(row));
    }

    /// Works a step through the operators; what the last one changes.
    fn step(
        &mut self,
        delta: &Delta,
        is_first: bool,
        parameters: Bag,
        budget: &Budget,
    ) -> Result<Bag, Failure> {
        let mut last = self.operators.step(&Step::new(delta, is_first, parameters, budget))?;
        consolidate(&mut last);
        Ok(last)
    }
}

/// The key of the slot values in front of a row.
fn slot_key(row: &Row, slots: usize) -> KeyBytes {
    let mut out = Vec::with_capacity(9 * slots);
    for slot in 0..slots {
        encode_cell(row.cell(slot), Order::ASC, &mut out);
    }
    KeyBytes::from_slice(&out)
}
