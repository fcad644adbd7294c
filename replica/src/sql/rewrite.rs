//! Positions that stand for columns which do not exist yet while expressions are bound, and the rewriting of scalars that
//! puts the real ones in their place.

use super::place::Result;
use crate::{
    algebra::{Aggregate, Bound, Column, Frame, Limit, WindowFunction, WindowKind, domain, domain_column},
    expr::{Condition, Scalar},
};
use tidegate_wire::model::Order;

const STEP: usize = 1 << 26;
const AGGREGATE: usize = 1 << 27;
const GROUPING: usize = 1 << 28;
const SUBQUERY: usize = 1 << 29;

/// What a scalar's column position refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// A column of the input.
    Input(usize),
    /// A column of the domain.
    Domain(usize),
    /// A result of the steps that stand between the input and this expression.
    Step(usize),
    /// An aggregate of the block.
    Aggregate(usize),
    /// A `grouping()` of the block.
    Grouping(usize),
    /// A column of the subquery that a condition of `in` or `any` is about.
    Subquery(usize),
}

impl Position {
    /// What a position refers to.
    pub(super) fn of(position: usize) -> Self {
        if let Some(column) = position.checked_sub(SUBQUERY) {
            Self::Subquery(column)
        } else if let Some(column) = position.checked_sub(GROUPING) {
            Self::Grouping(column)
        } else if let Some(column) = position.checked_sub(AGGREGATE) {
            Self::Aggregate(column)
        } else if let Some(column) = position.checked_sub(STEP) {
            Self::Step(column)
        } else if let Some(column) = domain_column(position) {
            Self::Domain(column)
        } else {
            Self::Input(position)
        }
    }

    /// The scalar that reads it.
    pub(super) fn scalar(self) -> Scalar {
        Scalar::Column(match self {
            Self::Input(column) => column,
            Self::Domain(column) => domain(column),
            Self::Step(column) => STEP + column,
            Self::Aggregate(column) => AGGREGATE + column,
            Self::Grouping(column) => GROUPING + column,
            Self::Subquery(column) => SUBQUERY + column,
        })
    }
}

/// Replaces scalars from the outside in: what gives another scalar is replaced as a whole, what gives `None` is looked
/// into.
pub(super) type Replace<'r> = dyn FnMut(&Scalar) -> Result<Option<Scalar>> + 'r;

/// What holds scalars.
pub(super) trait Rewrite: Sized {
    /// The same with its scalars replaced.
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self>;
}

impl<T: Rewrite> Rewrite for Vec<T> {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        self.iter().map(|item| item.rewrite(replace)).collect()
    }
}

impl<T: Rewrite> Rewrite for Option<T> {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        self.as_ref().map(|item| item.rewrite(replace)).transpose()
    }
}

impl<T: Rewrite> Rewrite for Box<T> {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        Ok(Self::new(T::rewrite(self, replace)?))
    }
}

impl Rewrite for (Scalar, Order) {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        Ok((self.0.rewrite(replace)?, self.1))
    }
}

impl Rewrite for (Condition, Scalar) {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        Ok((self.0.rewrite(replace)?, self.1.rewrite(replace)?))
    }
}

impl Rewrite for Scalar {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        if let Some(replaced) = replace(self)? {
            return Ok(replaced);
        }
        Ok(match self {
            Self::Constant(_) | Self::Column(_) => self.clone(),
            Self::Arithmetic(op, left, right) => {
                Self::Arithmetic(*op, left.rewrite(replace)?, right.rewrite(replace)?)
            }
            Self::Convert(ty, operand) => Self::Convert(*ty, operand.rewrite(replace)?),
            Self::Case(branches, otherwise) => {
                Self::Case(branches.rewrite(replace)?, otherwise.rewrite(replace)?)
            }
            Self::Coalesce(operands) => Self::Coalesce(operands.rewrite(replace)?),
            Self::Call(function, arguments) => Self::Call(*function, arguments.rewrite(replace)?),
            Self::Condition(condition) => Self::Condition(condition.rewrite(replace)?),
        })
    }
}

impl Rewrite for Condition {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        // A condition can be what is replaced, as a value.
        let is_leaf = matches!(self, Self::Constant(_) | Self::Truth(_) | Self::Exists(_));
        if !is_leaf && let Some(replaced) = replace(&Scalar::Condition(Box::new(self.clone())))? {
            return Ok(match replaced {
                Scalar::Condition(condition) => *condition,
                scalar => Self::Truth(scalar),
            });
        }
        Ok(match self {
            Self::Constant(_) | Self::Exists(_) => self.clone(),
            Self::And(operands) => Self::And(operands.rewrite(replace)?),
            Self::Or(operands) => Self::Or(operands.rewrite(replace)?),
            Self::Not(operand) => Self::Not(operand.rewrite(replace)?),
            Self::Is(operand, truth) => Self::Is(operand.rewrite(replace)?, *truth),
            Self::Compare(op, left, right) => {
                Self::Compare(*op, left.rewrite(replace)?, right.rewrite(replace)?)
            }
            Self::In(value, members) => Self::In(value.rewrite(replace)?, members.rewrite(replace)?),
            Self::IsNull(value) => Self::IsNull(value.rewrite(replace)?),
            Self::IsDistinct(left, right) => {
                Self::IsDistinct(left.rewrite(replace)?, right.rewrite(replace)?)
            }
            Self::Matches(value, pattern) => Self::Matches(value.rewrite(replace)?, pattern.clone()),
            Self::MatchesComputed(value, pattern, fold_case) => {
                Self::MatchesComputed(value.rewrite(replace)?, pattern.rewrite(replace)?, *fold_case)
            }
            Self::Regex(value, regex) => Self::Regex(value.rewrite(replace)?, regex.clone()),
            Self::RegexComputed(value, regex, fold_case) => {
                Self::RegexComputed(value.rewrite(replace)?, regex.rewrite(replace)?, *fold_case)
            }
            Self::Truth(value) => Self::Truth(value.rewrite(replace)?),
        })
    }
}

impl Rewrite for Column {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        Ok(Self { scalar: self.scalar.rewrite(replace)?, ty: self.ty })
    }
}

impl Rewrite for Aggregate {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        Ok(Self {
            function: self.function,
            arguments: self.arguments.rewrite(replace)?,
            distinct: self.distinct,
            filter: self.filter.rewrite(replace)?,
            order: self.order.rewrite(replace)?,
            ty: self.ty,
        })
    }
}

impl Rewrite for WindowFunction {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        let kind = match &self.kind {
            kind @ (WindowKind::RowNumber
            | WindowKind::Rank
            | WindowKind::DenseRank
            | WindowKind::PercentRank
            | WindowKind::CumeDist
            | WindowKind::Ntile(_)) => kind.clone(),
            WindowKind::Lag { value, offset, default } => {
                WindowKind::Lag { value: value.rewrite(replace)?, offset: *offset, default: default.clone() }
            }
            WindowKind::FirstValue(value, frame) => {
                WindowKind::FirstValue(value.rewrite(replace)?, frame.rewrite(replace)?)
            }
            WindowKind::LastValue(value, frame) => {
                WindowKind::LastValue(value.rewrite(replace)?, frame.rewrite(replace)?)
            }
            WindowKind::NthValue(value, number, frame) => {
                WindowKind::NthValue(value.rewrite(replace)?, *number, frame.rewrite(replace)?)
            }
            WindowKind::Aggregate(aggregate, frame) => {
                WindowKind::Aggregate(aggregate.rewrite(replace)?, frame.rewrite(replace)?)
            }
        };
        Ok(Self { kind, ty: self.ty })
    }
}

impl Rewrite for Frame {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        let mut bound = |bound: &Bound| -> Result<Bound> {
            Ok(match bound {
                Bound::Limit(limit) => Bound::Limit(Box::new(Limit {
                    value: limit.value.rewrite(replace)?,
                    ..Limit::clone(limit)
                })),
                other => other.clone(),
            })
        };
        Ok(Self { unit: self.unit, start: bound(&self.start)?, end: bound(&self.end)? })
    }
}

/// Calls `visit` with every position that the scalars of something read.
pub(super) fn positions(of: &impl Rewrite, visit: &mut dyn FnMut(Position)) {
    let visited = of.rewrite(&mut |scalar| {
        if let Scalar::Column(position) = scalar {
            visit(Position::of(*position));
        }
        Ok(None)
    });
    debug_assert!(visited.is_ok(), "a visit does not fail");
}

/// How many scalars a scalar consists of.
pub(super) fn nodes(of: &impl Rewrite) -> usize {
    let mut count = 0;
    let visited = of.rewrite(&mut |_| {
        count += 1;
        Ok(None)
    });
    debug_assert!(visited.is_ok(), "a visit does not fail");
    count
}

/// A scalar over rows that have `by` more columns before.
pub(super) fn shifted(scalar: &Scalar, by: usize) -> Scalar {
    scalar.map_columns(&mut |position| match Position::of(position) {
        Position::Input(column) => Scalar::Column(column + by),
        _ => Scalar::Column(position),
    })
}
