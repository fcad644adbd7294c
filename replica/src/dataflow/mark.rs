//! Marks: left rows with what the right rows say of them.

use super::{
    Step,
    bag::{Arrangement, Bag, encode_key},
    join::{arrange, is_true, look_up},
};
use crate::{
    expr::{Beside, Condition, EvalError, NoExists},
    plan::{LookupAccess, Mark, Source},
    query::shape::Access,
};
use hashbrown::HashSet;
use tidegate_wire::model::{Row, ValueRef};

/// The sides' arrangements, where they are not tables.
#[derive(Debug, Default)]
pub(super) struct Sides {
    left: Vec<Arrangement>,
    right: Vec<Arrangement>,
}

impl Sides {
    /// What the marked rows change.
    ///
    /// The right side's changes come first, for the left rows as they were: those whose mark flips. Then the left side's,
    /// with the marks as they are.
    pub(super) fn advance(
        &mut self,
        mark: &Mark,
        step: &Step<'_>,
        changes: &[Bag],
    ) -> Result<Bag, EvalError> {
        self.left.resize_with(mark.left.arrangements.len(), Arrangement::default);
        self.right.resize_with(mark.right.arrangements.len(), Arrangement::default);
        let mut out = Bag::new();
        if step.is_first {
            if let Source::Node(node) = mark.right.source {
                arrange(&mut self.right, &mark.right, &changes[node])?;
            }
            match &mark.left.source {
                Source::Node(node) => {
                    for (row, weight) in &changes[*node] {
                        self.emit(mark, step, row, *weight, &mut out)?;
                    }
                    arrange(&mut self.left, &mark.left, &changes[*node])?;
                }
                Source::Table { table, .. } => {
                    let Some(tree) = step.after.tree(*table, &Access::Primary)? else { return Ok(out) };
                    for (_, row) in tree.iter() {
                        step.after.budget.spend()?;
                        if is_true(&mark.left.filter, row)? {
                            self.emit(mark, step, row, 1, &mut out)?;
                        }
                    }
                }
            }
            return Ok(out);
        }
        let touched = self.touched(mark, step, changes)?;
        let mut flipped = Vec::new();
        for row in &touched {
            look_up(
                step,
                false,
                (&mark.left, &self.left),
                &mark.find_left,
                None,
                row,
                &mut |left, weight| {
                    flipped.push((left.clone(), weight));
                    Ok(true)
                },
            )?;
        }
        let mut before = Vec::with_capacity(flipped.len());
        for (row, _) in &flipped {
            before.push(self.mark(mark, step, false, row)?);
        }
        if let Source::Node(node) = mark.right.source {
            arrange(&mut self.right, &mark.right, &changes[node])?;
        }
        for ((row, weight), before) in flipped.into_iter().zip(before) {
            let after = self.mark(mark, step, true, &row)?;
            if before != after {
                out.push((marked(&row, before), -weight));
                out.push((marked(&row, after), weight));
            }
        }
        match &mark.left.source {
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    self.emit(mark, step, row, *weight, &mut out)?;
                }
                arrange(&mut self.left, &mark.left, &changes[*node])?;
            }
            Source::Table { table, used } => {
                for (old, new) in step.changed(*table, used) {
                    for (row, weight) in [(old, -1), (new, 1)] {
                        if let Some(row) = row
                            && is_true(&mark.left.filter, row)?
                        {
                            self.emit(mark, step, row, weight, &mut out)?;
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    /// One right row for each key under which some came or went.
    fn touched(&self, mark: &Mark, step: &Step<'_>, changes: &[Bag]) -> Result<Vec<Row>, EvalError> {
        let (mut keys, mut rows) = (HashSet::new(), Vec::new());
        let mut touch = |row: &Row| -> Result<(), EvalError> {
            let mut key = Vec::new();
            let finds = encode_key(&mark.find_left.keys, &mark.find_left.null_agrees, row, &mut key)?;
            if finds && is_true(&mark.right.filter, row)? && keys.insert(key) {
                rows.push(row.clone());
            }
            Ok(())
        };
        match &mark.right.source {
            Source::Node(node) => {
                for (row, _) in &changes[*node] {
                    touch(row)?;
                }
            }
            Source::Table { table, used } => {
                for (old, new) in step.changed(*table, used) {
                    for row in [old, new].into_iter().flatten() {
                        touch(row)?;
                    }
                }
            }
        }
        Ok(rows)
    }

    fn emit(
        &self,
        mark: &Mark,
        step: &Step<'_>,
        row: &Row,
        weight: i64,
        out: &mut Bag,
    ) -> Result<(), EvalError> {
        let value = self.mark(mark, step, true, row)?;
        step.after.budget.pass()?;
        out.push((marked(row, value), weight));
        Ok(())
    }

    /// A row's mark, with the right side as a snapshot and the arrangements have it.
    fn mark(
        &self,
        mark: &Mark,
        step: &Step<'_>,
        is_after: bool,
        row: &Row,
    ) -> Result<Option<bool>, EvalError> {
        let mut result = Some(false);
        let is_tested = !matches!(mark.condition, Condition::Constant(Some(true)));
        if let (false, LookupAccess::Arrangement(number)) = (is_tested, &mark.find_right.access) {
            let by = &mark.find_right;
            return step.key.with(|key| {
                let finds = encode_key(&by.keys, &by.null_agrees, row, key)?;
                Ok(Some(finds && self.right[*number].contains(key)))
            });
        }
        look_up(step, is_after, (&mark.right, &self.right), &mark.find_right, None, row, &mut |found, _| {
            let truth = if is_tested {
                mark.condition.test(&Beside::one(row).and(found), &NoExists)?
            } else {
                Some(true)
            };
            match truth {
                Some(true) => result = Some(true),
                None if !mark.is_two_valued => result = None,
                _ => {}
            }
            Ok(truth != Some(true))
        })?;
        Ok(result)
    }

    /// How many keys are held.
    pub(super) fn len(&self) -> usize {
        self.left.iter().chain(&self.right).map(Arrangement::len).sum()
    }

    /// Takes over what another holds of the sides that depend on the slots.
    pub(super) fn absorb(&mut self, other: Self, left: bool, right: bool) {
        for (is_taken, own, other) in
            [(left, &mut self.left, other.left), (right, &mut self.right, other.right)]
        {
            if is_taken {
                own.resize_with(other.len(), Arrangement::default);
                own.iter_mut().zip(other).for_each(|(own, other)| own.absorb(other));
            }
        }
    }

    /// Keeps only some rows.
    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.left.iter_mut().chain(&mut self.right).for_each(|arrangement| arrangement.retain(keep));
    }
}

fn marked(row: &Row, mark: Option<bool>) -> Row {
    let mark = mark.map_or(ValueRef::Null, ValueRef::Bool);
    Row::encode(row.cells().chain([mark]))
}
