//! One step of a pipeline: a delta, or a binding that comes or goes, worked through the places in preorder.

use super::{
    Budget, Nested,
    flip::flipped_rows,
    group::{Group, GroupChange},
    read::{Reader, encode_converted},
};
use crate::{
    expr::EvalError,
    query::shape::{Place, Source},
    store::{Delta, KeyBytes, key::correlation_key},
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use smallvec::SmallVec;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};

/// Why a binding, or a whole pipeline, cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepFault {
    /// Evaluating the query failed on a row.
    #[error("{error}, on the row of table {table} with key {key}")]
    Row {
        /// What failed.
        error: EvalError,
        /// The row's table.
        table: String,
        /// The row's primary key, as JSON.
        key: String,
    },
    /// Evaluating it failed somewhere below a key.
    #[error("{0}")]
    Eval(EvalError),
}

impl StepFault {
    /// The fault of an evaluation error, with the row that was noted for it.
    pub(crate) fn of(error: EvalError, budget: &Budget) -> Self {
        match budget.take_failed() {
            Some((table, key)) => Self::Row { error, table, key },
            None => Self::Eval(error),
        }
    }

    /// Whether more rows were read than the step was given.
    #[must_use]
    pub fn is_row_limit(&self) -> bool {
        matches!(self, Self::Eval(EvalError::RowLimit))
    }

    /// Whether no row is at fault but the step as a whole.
    #[must_use]
    pub fn is_of_step(&self) -> bool {
        matches!(self, Self::Eval(error) if error.is_of_step())
    }

    /// Whether the time limit was passed.
    #[must_use]
    pub fn is_deadline(&self) -> bool {
        matches!(self, Self::Eval(EvalError::Deadline))
    }
}

/// Changes in the number of parent rows that bindings have under a child's keys.
type KeyCounts = HashMap<KeyBytes, SmallVec<[(BindingId, i32); 1]>>;

/// What a step gathers beside its output.
struct Pass<'p> {
    out: &'p mut Vec<Change>,
    asked: Vec<KeyCounts>,
    faults: HashMap<BindingId, StepFault>,
}

impl Nested {
    /// Works a delta and at most one binding's coming (+1) or going (−1) through the places.
    pub(super) fn step(
        &mut self,
        delta: &Delta,
        root: Option<(KeyBytes, BindingId, i32)>,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<HashMap<BindingId, StepFault>, StepFault> {
        let before = Reader { snapshot: &delta.from, budget };
        let after = Reader { snapshot: &delta.to, budget };
        let start = out.len();
        let asked = self.shape.places().iter().map(|_| KeyCounts::new()).collect();
        let mut pass = Pass { out, asked, faults: HashMap::new() };
        if let Some((key, binding, by)) = root {
            pass.asked[0].entry(key).or_default().push((binding, by));
        }
        for place in 0..self.shape.places().len() {
            self.step_place(place, delta, &before, &after, &mut pass)?;
        }
        let faults = pass.faults;
        if !faults.is_empty() {
            let mut at = 0;
            out.retain(|change| {
                at += 1;
                at <= start || !faults.contains_key(&change.binding)
            });
            self.discard(|binding| faults.contains_key(&binding));
        }
        Ok(faults)
    }

    fn step_place(
        &mut self,
        number: usize,
        delta: &Delta,
        before: &Reader<'_>,
        after: &Reader<'_>,
        pass: &mut Pass<'_>,
    ) -> Result<(), StepFault> {
        let asked = std::mem::take(&mut pass.asked[number]);
        let mut changed = self.changes_by_group(number, delta, before, after, pass)?;
        for (key, counts) in asked {
            let changes = changed.remove(&key).unwrap_or_default();
            self.step_group(number, &key, &changes, &counts, before, after, pass)?;
        }
        for (key, changes) in changed {
            self.step_group(number, &key, &changes, &[], before, after, pass)?;
        }
        Ok(())
    }

    /// The delta's changes at a place, by the groups that exist, tested against the place's filter on both sides.
    fn changes_by_group(
        &self,
        number: usize,
        delta: &Delta,
        before: &Reader<'_>,
        after: &Reader<'_>,
        pass: &mut Pass<'_>,
    ) -> Result<HashMap<KeyBytes, Vec<GroupChange>>, StepFault> {
        let place = &self.shape.places()[number];
        let groups = &self.places[number];
        let mut changed: HashMap<KeyBytes, Vec<GroupChange>> = HashMap::new();
        if groups.is_empty() {
            return Ok(changed);
        }
        let columns: SmallVec<[usize; 4]> = place.group.iter().map(|column| column.column).collect();
        let group_of = |row: &Row| correlation_key(row, &columns).filter(|key| groups.contains_key(key));
        for change in delta.table(place.table) {
            // A row whose EXISTS may flip in the same commit is tested whatever changed in it.
            if let (Some(old), Some(new), true) =
                (&change.old, &change.new, place.condition.exists.is_empty())
                && old.same_cells(new, &place.used)
            {
                continue;
            }
            let mut old_key = change.old.as_ref().and_then(group_of);
            let mut new_key = change.new.as_ref().and_then(group_of);
            if old_key.is_some() {
                let row = change.old.as_ref().expect("its key was taken");
                // A row that could not be tested was never shown.
                if !unless_fatal(before.passes(&place.condition, row))?.unwrap_or(false) {
                    old_key = None;
                }
            }
            if let Some(key) = &new_key {
                let row = change.new.as_ref().expect("its key was taken");
                if !self.test(place, groups, key, row, after, pass)? {
                    new_key = None;
                }
            }
            match (old_key, new_key) {
                (None, None) => {}
                (Some(old_key), Some(new_key)) if old_key == new_key => {
                    changed.entry(old_key).or_default().push((change.old.clone(), change.new.clone()));
                }
                (old_key, new_key) => {
                    if let Some(key) = old_key {
                        changed.entry(key).or_default().push((change.old.clone(), None));
                    }
                    if let Some(key) = new_key {
                        changed.entry(key).or_default().push((None, change.new.clone()));
                    }
                }
            }
        }
        if !place.condition.exists.is_empty() && !delta.is_empty() {
            let rows =
                flipped_rows(place.table, &place.condition, delta, before, after).map_err(StepFault::Eval)?;
            for row in rows.into_values() {
                let Some(key) = group_of(&row) else { continue };
                let stood = unless_fatal(before.passes(&place.condition, &row))?.unwrap_or(false);
                let stands = self.test(place, groups, &key, &row, after, pass)?;
                if stood != stands {
                    let change = if stands { (None, Some(row)) } else { (Some(row), None) };
                    changed.entry(key).or_default().push(change);
                }
            }
        }
        Ok(changed)
    }

    /// Whether a row passes now; an error that is the row's own faults the group's subscribers.
    fn test(
        &self,
        place: &Place,
        groups: &HashMap<KeyBytes, Group>,
        key: &KeyBytes,
        row: &Row,
        after: &Reader<'_>,
        pass: &mut Pass<'_>,
    ) -> Result<bool, StepFault> {
        match after.passes(&place.condition, row) {
            Ok(passes) => Ok(passes),
            Err(error) if error.is_of_step() => Err(StepFault::Eval(error)),
            Err(error) => {
                after.note_failure(place.table, row);
                let fault = StepFault::of(error, after.budget);
                for binding in groups.get(key).into_iter().flat_map(|group| group.subscribers.iter()) {
                    pass.faults.entry(binding).or_insert_with(|| fault.clone());
                }
                Ok(false)
            }
        }
    }

    /// One group: its changes folded, its subscribers' coming and going, and what each of them is told.
    #[expect(
        clippy::too_many_arguments,
        reason = "one step's whole context; a struct of it would be used once"
    )]
    fn step_group(
        &mut self,
        number: usize,
        key: &KeyBytes,
        changes: &[GroupChange],
        counts: &[(BindingId, i32)],
        before: &Reader<'_>,
        after: &Reader<'_>,
        pass: &mut Pass<'_>,
    ) -> Result<(), StepFault> {
        let shape = std::sync::Arc::clone(&self.shape);
        let place = &shape.places()[number];
        let groups = &mut self.places[number];
        let is_new = !groups.contains_key(key);
        let group = groups.entry(key.clone()).or_insert_with(Group::new);

        // Net the counts per binding; a parent row that only changed its content asks for what it already had.
        let mut entering: SmallVec<[BindingId; 1]> = SmallVec::new();
        let mut leaving: SmallVec<[BindingId; 1]> = SmallVec::new();
        for (binding, by) in net(counts) {
            match group.subscribers.add(binding, by) {
                (0, 0) => {}
                (0, _) => entering.push(binding),
                (_, 0) => leaving.push(binding),
                _ => {}
            }
        }

        // What it showed, for those who leave.
        let mut shown_before: Vec<Row> = Vec::new();
        if !leaving.is_empty() && !is_new {
            let read = group.shown(place, key, before);
            shown_before = fault_all(read, leaving.iter().copied(), after.budget, pass)?.unwrap_or_default();
        }

        let shown: Vec<GroupChange> = if group.subscribers.is_empty() {
            Vec::new()
        } else {
            let advanced = group.advance(place, key, changes, after);
            fault_all(advanced, group.subscribers.iter(), after.budget, pass)?.unwrap_or_else(|| {
                entering.clear();
                Vec::new()
            })
        };

        let emit = Emit { place: number, shape: &shape, bindings: &self.bindings };
        if !shown.is_empty() {
            for binding in group.subscribers.iter().filter(|binding| !entering.contains(binding)) {
                for (old, new) in &shown {
                    emit.change(binding, old.as_ref(), new.as_ref(), pass);
                }
            }
        }
        if !entering.is_empty() {
            let read = group.shown(place, key, after);
            let rows = fault_all(read, entering.iter().copied(), after.budget, pass)?.unwrap_or_default();
            pass.out.reserve(rows.len() * entering.len());
            for &binding in &entering {
                for row in &rows {
                    emit.change(binding, None, Some(row), pass);
                }
            }
        }
        for &binding in &leaving {
            for row in &shown_before {
                emit.change(binding, Some(row), None, pass);
            }
        }
        if group.subscribers.is_empty() {
            groups.remove(key);
        }
        Ok(())
    }
}

/// Tells one binding of one row's change, and asks for or releases the child keys it brings.
struct Emit<'a> {
    place: usize,
    shape: &'a crate::query::Shape,
    bindings: &'a HashMap<BindingId, std::sync::Arc<[Value]>>,
}

impl Emit<'_> {
    fn change(&self, binding: BindingId, old: Option<&Row>, new: Option<&Row>, pass: &mut Pass<'_>) {
        for &child in &self.shape.places()[self.place].children {
            let place = &self.shape.places()[child];
            let values =
                if place.reads_slots() { self.bindings.get(&binding).map(|v| &v[..]) } else { Some(&[][..]) };
            let Some(values) = values else { continue };
            let old_key = old.and_then(|row| child_key(place, row, values));
            let new_key = new.and_then(|row| child_key(place, row, values));
            if old_key == new_key {
                continue;
            }
            if let Some(key) = old_key {
                pass.asked[child].entry(key).or_default().push((binding, -1));
            }
            if let Some(key) = new_key {
                pass.asked[child].entry(key).or_default().push((binding, 1));
            }
        }
        pass.out.push(Change { binding, place: self.place as u8, old: old.cloned(), new: new.cloned() });
    }
}

/// The key under which a child place's rows stand for a parent row; `None` when none can.
fn child_key(place: &Place, parent: &Row, values: &[Value]) -> Option<KeyBytes> {
    let mut key = Vec::with_capacity(9 * place.group.len());
    for column in &place.group {
        match column.source {
            Source::Parent(own) => {
                let cell = parent.cell(own);
                let ty = cell.column_type()?;
                encode_converted(cell, ty, column.ty, &mut key)?;
            }
            Source::Slot(slot) => encode_cell(values[slot].as_ref(), Order::ASC, &mut key),
        }
    }
    Some(KeyBytes::from_slice(&key))
}

/// Sums the counts per binding.
fn net(counts: &[(BindingId, i32)]) -> SmallVec<[(BindingId, i32); 1]> {
    match counts {
        [] | [_] => SmallVec::from_slice(counts),
        _ => {
            let mut sorted: SmallVec<[(BindingId, i32); 1]> = SmallVec::from_slice(counts);
            sorted.sort_unstable_by_key(|(binding, _)| *binding);
            sorted.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 += later.1;
                }
                same
            });
            sorted
        }
    }
}

/// A result that faults `bindings` when it is an error of some row's own; errors of the whole step pass on.
fn fault_all<T>(
    result: Result<T, EvalError>,
    bindings: impl IntoIterator<Item = BindingId>,
    budget: &Budget,
    pass: &mut Pass<'_>,
) -> Result<Option<T>, StepFault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_of_step() => Err(StepFault::Eval(error)),
        Err(error) => {
            let fault = StepFault::of(error, budget);
            for binding in bindings {
                pass.faults.entry(binding).or_insert_with(|| fault.clone());
            }
            Ok(None)
        }
    }
}

/// An evaluation's result, `None` for an error that is the row's own.
fn unless_fatal(result: Result<bool, EvalError>) -> Result<Option<bool>, StepFault> {
    match result {
        Ok(passes) => Ok(Some(passes)),
        Err(error) if error.is_of_step() => Err(StepFault::Eval(error)),
        Err(_) => Ok(None),
    }
}
