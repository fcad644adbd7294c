//! A dataflow: the operators of one plan with what they hold, for all bindings of one shape.
//!
//! Rows flow as bags, with weights. An operator turns what its inputs change into what it changes; tables are read at the
//! snapshot before and the one after, so that joins hold nothing for them. What does not depend on the query's slots is
//! held once, from the first binding on; a binding coming is its slot values coming as a row, a binding going is that row
//! going. Whatever depends on the slots has their values in front of its rows, by which it is told whose it is.

mod accumulator;
mod aggregate;
mod bag;
mod decimal_sum;
mod exact_sum;
mod join;
mod mark;
mod ordered;
mod result;
mod set_operation;
mod single;
mod top;
mod window;

#[cfg(test)]
mod tests;

use crate::{
    expr::EvalError,
    pipeline::{Budget, StepFault, read::Reader},
    plan::{Operator, Plan, Source},
    query::Shape,
    store::{Delta, KeyBytes, Snapshot, TableId},
    worker::{BindingId, Change},
};
use aggregate::Groups;
use bag::{Arrangement, Bag, KeyBuffer, NoExists, consolidate};
use hashbrown::HashMap;
use mark::Sides;
use ordered::Ordered;
use result::Results;
use set_operation::Counts;
use single::Singles;
use std::sync::Arc;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};

/// See the module's description. Lives on one worker thread; nothing here blocks.
pub struct Dataflow {
    shape: Arc<Shape>,
    plan: Arc<Plan>,
    /// Per operator.
    states: Vec<State>,
    bindings: HashMap<BindingId, Arc<[Value]>>,
    results: Results,
    is_hydrated: bool,
}

/// What an operator holds.
enum State {
    /// Nothing.
    None,
    /// Per input, its arrangements.
    Join(Vec<Vec<Arrangement>>),
    Mark(Sides),
    Single(Singles),
    Aggregate(Groups),
    SetOperation(Counts),
    Top(Ordered),
    Window(Ordered),
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

impl Step<'_> {
    /// A table's changed rows, before and after, but for those that differ in none of the columns used.
    fn changed(&self, table: TableId, used: &[usize]) -> impl Iterator<Item = (Option<&Row>, Option<&Row>)> {
        let rows = self.delta.table(table).iter().map(|change| (change.old.as_ref(), change.new.as_ref()));
        rows.filter(|pair| !matches!(pair, (Some(old), Some(new)) if old.same_cells(new, used)))
    }

    fn snapshot_reader(&self, is_after: bool) -> &Reader<'_> {
        if is_after { &self.after } else { &self.before }
    }
}

impl Dataflow {
    /// A dataflow without bindings, which holds nothing.
    #[must_use]
    pub fn new(shape: Arc<Shape>, plan: Arc<Plan>) -> Self {
        let states = plan.nodes.iter().map(|node| State::of(&node.operator)).collect();
        Self {
            shape,
            plan,
            states,
            bindings: HashMap::new(),
            results: Results::default(),
            is_hydrated: false,
        }
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
        self.states.iter().map(State::keys).sum()
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
            let changes = self.step(&delta, true, Vec::new(), budget)?;
            self.is_hydrated = true;
            self.results.tell(&self.plan, changes, out);
        }
        if self.plan.slots > 0 {
            let changes = self.step(&delta, false, vec![(row, 1)], budget)?;
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

    /// What a delta changes, appended to `out`.
    ///
    /// # Errors
    /// When evaluating the query fails for a row; the dataflow is then of no further use.
    pub fn advance(
        &mut self,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<(), StepFault> {
        if !self.is_hydrated {
            return Ok(());
        }
        let changes = self.step(delta, false, Vec::new(), budget)?;
        self.results.tell(&self.plan, changes, out);
        Ok(())
    }

    /// Takes over the bindings of another dataflow of the same shape that stands at the same snapshot.
    pub fn absorb(&mut self, other: Self) {
        debug_assert_eq!(self.shape.key, other.shape.key);
        self.bindings.extend(other.bindings);
        self.results.absorb(other.results);
        if !self.is_hydrated {
            self.states = other.states;
            self.is_hydrated = other.is_hydrated;
            return;
        }
        let plan = Arc::clone(&self.plan);
        for ((own, other), node) in self.states.iter_mut().zip(other.states).zip(&plan.nodes) {
            if node.depends {
                own.absorb(other, |input| match &node.operator {
                    Operator::Join(join) => depends(&plan, &join.inputs[input].source),
                    Operator::Mark(mark) => {
                        depends(&plan, if input == 0 { &mark.left.source } else { &mark.right.source })
                    }
                    _ => true,
                });
            }
        }
    }

    /// Forgets a binding wherever it is: for one whose state cannot be walked, and for the last.
    fn discard(&mut self, binding: BindingId) {
        let Some(values) = self.bindings.remove(&binding) else { return };
        self.results.unbind(binding, &Row::from_values(&values));
        if self.bindings.is_empty() {
            self.states = self.plan.nodes.iter().map(|node| State::of(&node.operator)).collect();
            self.results = Results::default();
            self.is_hydrated = false;
            return;
        }
        let mut prefix = Vec::new();
        values.iter().for_each(|value| encode_cell(value.as_ref(), Order::ASC, &mut prefix));
        let slots = self.plan.slots;
        let is_gone = |row: &Row| slot_key(row, slots)[..] == prefix[..];
        for (state, node) in self.states.iter_mut().zip(&self.plan.nodes) {
            if node.depends {
                state.retain(&|row| !is_gone(row));
            }
        }
    }

    /// Works a step through the operators; what the last one changes.
    fn step(
        &mut self,
        delta: &Delta,
        is_first: bool,
        parameters: Bag,
        budget: &Budget,
    ) -> Result<Bag, StepFault> {
        let step = Step {
            delta,
            before: Reader { snapshot: &delta.from, budget },
            after: Reader { snapshot: &delta.to, budget },
            is_first,
            parameters,
            key: KeyBuffer::default(),
        };
        let mut changes: Vec<Bag> = Vec::with_capacity(self.states.len());
        for (state, node) in self.states.iter_mut().zip(&self.plan.nodes) {
            let bag = state
                .advance(&node.operator, &step, &changes, node.depends)
                .map_err(|error| StepFault::of(error, budget))?;
            changes.push(bag);
        }
        let mut last = changes.pop().unwrap_or_default();
        consolidate(&mut last);
        Ok(last)
    }
}

/// Whether rows from there depend on the slots.
fn depends(plan: &Plan, source: &Source) -> bool {
    matches!(source, Source::Node(node) if plan.nodes[*node].depends)
}

/// The key of the slot values in front of a row.
fn slot_key(row: &Row, slots: usize) -> KeyBytes {
    let mut out = Vec::with_capacity(9 * slots);
    for slot in 0..slots {
        encode_cell(row.cell(slot), Order::ASC, &mut out);
    }
    KeyBytes::from_slice(&out)
}

impl State {
    fn of(operator: &Operator) -> Self {
        match operator {
            Operator::Parameters | Operator::Values(_) | Operator::Concat(_) => Self::None,
            Operator::Join(join) => Self::Join(
                join.inputs
                    .iter()
                    .map(|input| input.arrangements.iter().map(|_| Arrangement::default()).collect())
                    .collect(),
            ),
            Operator::Mark(_) => Self::Mark(Sides::default()),
            Operator::Single { .. } => Self::Single(Singles::default()),
            Operator::Aggregate { .. } => Self::Aggregate(Groups::default()),
            Operator::SetOperation { .. } => Self::SetOperation(Counts::default()),
            Operator::Top { .. } => Self::Top(Ordered::default()),
            Operator::Window { .. } => Self::Window(Ordered::default()),
        }
    }

    /// What the operator changes, given what those before it change.
    fn advance(
        &mut self,
        operator: &Operator,
        step: &Step<'_>,
        changes: &[Bag],
        depends: bool,
    ) -> Result<Bag, EvalError> {
        match (self, operator) {
            (_, Operator::Parameters) => Ok(step.parameters.clone()),
            (_, Operator::Values(rows)) => {
                if !step.is_first {
                    return Ok(Bag::new());
                }
                let nothing = Row::from_values(&[]);
                rows.iter()
                    .map(|row| {
                        let values = row
                            .iter()
                            .map(|scalar| Ok(scalar.value(&nothing, &NoExists)?.as_ref().to_value()))
                            .collect::<Result<Vec<_>, EvalError>>()?;
                        Ok((Row::from_values(&values), 1))
                    })
                    .collect()
            }
            (_, Operator::Concat(inputs)) => {
                Ok(inputs.iter().flat_map(|&input| changes[input].iter().cloned()).collect())
            }
            (Self::Join(arrangements), Operator::Join(join)) => {
                join::advance(arrangements, join, step, changes, depends)
            }
            (Self::Mark(sides), Operator::Mark(mark)) => sides.advance(mark, step, changes),
            (Self::Single(singles), Operator::Single { input, keys }) => {
                singles.advance(*keys, &changes[*input])
            }
            (Self::Aggregate(groups), Operator::Aggregate { input, keys, aggregates }) => {
                let always = *keys == 0 && step.is_first;
                groups.advance(*keys, aggregates, &changes[*input], always)
            }
            (Self::SetOperation(counts), Operator::SetOperation { kind, all, left, right }) => {
                Ok(counts.advance(*kind, *all, &changes[*left], &changes[*right]))
            }
            (Self::Top(ordered), Operator::Top { input, partition, order, offset, limit }) => ordered
                .advance(partition, order, &changes[*input], |rows, sign, out| {
                    top::show(rows, *offset, *limit, sign, out);
                    Ok(())
                }),
            (Self::Window(ordered), Operator::Window { input, partition, order, functions }) => ordered
                .advance(partition, order, &changes[*input], |rows, sign, out| {
                    window::compute(rows, functions, sign, out)
                }),
            _ => unreachable!("a state is made for its operator"),
        }
    }

    fn keys(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Join(inputs) => inputs.iter().flatten().map(Arrangement::len).sum(),
            Self::Mark(sides) => sides.len(),
            Self::Single(singles) => singles.len(),
            Self::Aggregate(groups) => groups.len(),
            Self::SetOperation(counts) => counts.len(),
            Self::Top(ordered) | Self::Window(ordered) => ordered.len(),
        }
    }

    /// Takes over what another holds, of inputs only where they depend on the slots.
    fn absorb(&mut self, other: Self, depends: impl Fn(usize) -> bool) {
        match (self, other) {
            (Self::Join(own), Self::Join(other)) => {
                for (input, (own, other)) in own.iter_mut().zip(other).enumerate() {
                    if depends(input) {
                        own.iter_mut().zip(other).for_each(|(own, other)| own.absorb(other));
                    }
                }
            }
            (Self::Mark(own), Self::Mark(other)) => own.absorb(other, depends(0), depends(1)),
            (Self::Single(own), Self::Single(other)) => own.absorb(other),
            (Self::Aggregate(own), Self::Aggregate(other)) => own.absorb(other),
            (Self::SetOperation(own), Self::SetOperation(other)) => own.absorb(other),
            (Self::Top(own), Self::Top(other)) | (Self::Window(own), Self::Window(other)) => {
                own.absorb(other);
            }
            _ => {}
        }
    }

    /// Keeps only what belongs to some rows. Called for operators that depend on the slots.
    fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        match self {
            Self::None => {}
            Self::Join(inputs) => {
                inputs.iter_mut().flatten().for_each(|arrangement| arrangement.retain(keep));
            }
            Self::Mark(sides) => sides.retain(keep),
            Self::Single(singles) => singles.retain(keep),
            Self::Aggregate(groups) => groups.retain(keep),
            Self::SetOperation(counts) => counts.retain(keep),
            Self::Top(ordered) | Self::Window(ordered) => ordered.retain(keep),
        }
    }
}
