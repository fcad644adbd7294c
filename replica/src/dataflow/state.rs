//! What the operators of a plan hold.

use super::{
    Step,
    aggregate::Groups,
    bag::{Arrangement, Bag},
    join,
    mark::Sides,
    ordered::Ordered,
    recursive::Found,
    set_operation::Counts,
    single::Singles,
    top, window,
};
use crate::{
    expr::{EvalError, NoExists},
    plan::Operator,
};
use tidegate_wire::model::Row;

/// What an operator holds.
#[derive(Default)]
pub(super) enum State {
    /// Nothing.
    #[default]
    None,
    /// Per input, its arrangements.
    Join(Vec<Vec<Arrangement>>),
    Mark(Sides),
    Recursive(Found),
    Single(Singles),
    Aggregate(Groups),
    SetOperation(Counts),
    Top(Ordered),
    Window(Ordered),
}

impl State {
    /// What an operator holds that has no rows yet.
    pub(super) fn of(operator: &Operator) -> Self {
        match operator {
            Operator::Parameters | Operator::Working { .. } | Operator::Values(_) | Operator::Concat(_) => {
                Self::None
            }
            Operator::Recursive(_) => Self::Recursive(Found::default()),
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
    pub(super) fn advance(
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
                let mut out = Bag::new();
                join::advance(arrangements, join, step, changes, depends, &mut out)?;
                Ok(out)
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

    /// How many keys that is.
    pub(super) fn keys(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Join(inputs) => inputs.iter().flatten().map(Arrangement::len).sum(),
            Self::Mark(sides) => sides.len(),
            Self::Recursive(found) => found.len(),
            Self::Single(singles) => singles.len(),
            Self::Aggregate(groups) => groups.len(),
            Self::SetOperation(counts) => counts.len(),
            Self::Top(ordered) | Self::Window(ordered) => ordered.len(),
        }
    }

    /// The rows that the operator has passed on, where it holds them.
    ///
    /// # Errors
    /// As of [`State::advance`].
    pub(super) fn rows(&self, operator: &Operator) -> Result<Bag, EvalError> {
        let mut out = Bag::new();
        match (self, operator) {
            (Self::Aggregate(groups), _) => out.extend(groups.told().map(|row| (row.clone(), 1))),
            (Self::SetOperation(counts), Operator::SetOperation { kind, all, .. }) => {
                counts.tell(*kind, *all, &mut out);
            }
            (Self::Top(ordered), Operator::Top { offset, limit, .. }) => {
                ordered.partitions().for_each(|rows| top::show(rows, *offset, *limit, 1, &mut out));
            }
            (Self::Window(ordered), Operator::Window { functions, .. }) => {
                for rows in ordered.partitions() {
                    window::compute(rows, functions, 1, &mut out)?;
                }
            }
            (Self::Recursive(found), _) => out.extend(found.rows().map(|row| (row.clone(), 1))),
            _ => unreachable!("only operators that hold their rows are shared"),
        }
        Ok(out)
    }

    /// Takes over what another holds, of inputs only where they depend on the slots.
    pub(super) fn absorb(&mut self, other: Self, depends: impl Fn(usize) -> bool) {
        match (self, other) {
            (Self::Join(own), Self::Join(other)) => {
                for (input, (own, other)) in own.iter_mut().zip(other).enumerate() {
                    if depends(input) {
                        own.iter_mut().zip(other).for_each(|(own, other)| own.absorb(other));
                    }
                }
            }
            (Self::Mark(own), Self::Mark(other)) => own.absorb(other, depends(0), depends(1)),
            (Self::Recursive(own), Self::Recursive(other)) => own.absorb(other),
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
    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        match self {
            Self::None => {}
            Self::Join(inputs) => {
                inputs.iter_mut().flatten().for_each(|arrangement| arrangement.retain(keep));
            }
            Self::Mark(sides) => sides.retain(keep),
            Self::Recursive(found) => found.retain(keep),
            Self::Single(singles) => singles.retain(keep),
            Self::Aggregate(groups) => groups.retain(keep),
            Self::SetOperation(counts) => counts.retain(keep),
            Self::Top(ordered) | Self::Window(ordered) => ordered.retain(keep),
        }
    }
}
