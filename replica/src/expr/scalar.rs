//! Scalars: what conditions compare.

use super::{Cells, Condition, EvalError, ExistsProbe, Function, arithmetic, cast, typing::Type};
use smallvec::SmallVec;
use std::fmt;
use tidegate_wire::model::{Value, ValueRef};

/// The arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; of integers it truncates
    Divide,
    /// `%`; takes the dividend's sign
    Remainder,
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}

/// An expression that yields a value. Equal ones yield the same: constants are only equal in one type and, where they show
/// it, one scale.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// A constant.
    Constant(Value),
    /// A column of the row.
    Column(usize),
    /// An arithmetic operation on two numbers of one type.
    Arithmetic(Arithmetic, Box<Scalar>, Box<Scalar>),
    /// A value as one of another type.
    Convert(Type, Box<Scalar>),
    /// The result of the first branch whose condition is true, else the last scalar.
    Case(Vec<(Condition, Scalar)>, Box<Scalar>),
    /// The first that is not NULL.
    Coalesce(Vec<Scalar>),
    /// A function's value.
    Call(Function, Vec<Scalar>),
    /// A condition's truth; unknown is NULL.
    Condition(Box<Condition>),
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b)) => a.as_ref().is_same(b.as_ref()),
            (Self::Column(a), Self::Column(b)) => a == b,
            (Self::Arithmetic(op, a, b), Self::Arithmetic(other, c, d)) => op == other && a == c && b == d,
            (Self::Convert(ty, a), Self::Convert(other, b)) => ty == other && a == b,
            (Self::Case(branches, a), Self::Case(others, b)) => branches == others && a == b,
            (Self::Coalesce(a), Self::Coalesce(b)) => a == b,
            (Self::Call(function, a), Self::Call(other, b)) => function == other && a == b,
            (Self::Condition(a), Self::Condition(b)) => a == b,
            _ => false,
        }
    }
}

/// A scalar's value: borrowed from the row or the expression where it can be.
pub enum Computed<'a> {
    /// Borrowed.
    Borrowed(ValueRef<'a>),
    /// Computed.
    Owned(Value),
}

impl Computed<'_> {
    /// The value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }
}

impl Scalar {
    /// The value for a row.
    ///
    /// # Errors
    /// When it cannot be computed.
    #[inline]
    pub fn value<'a, R: Cells>(
        &'a self,
        row: &'a R,
        probe: &dyn ExistsProbe<R>,
    ) -> Result<Computed<'a>, EvalError> {
        // Most are columns, which then cost no call.
        match self {
            Self::Column(column) => Ok(Computed::Borrowed(row.cell(*column))),
            _ => self.compute(row, probe),
        }
    }

    fn compute<'a, R: Cells>(
        &'a self,
        row: &'a R,
        probe: &dyn ExistsProbe<R>,
    ) -> Result<Computed<'a>, EvalError> {
        Ok(match self {
            Self::Constant(value) => Computed::Borrowed(value.as_ref()),
            Self::Column(column) => Computed::Borrowed(row.cell(*column)),
            Self::Arithmetic(op, left, right) => {
                let (left, right) = (left.value(row, probe)?, right.value(row, probe)?);
                Computed::Owned(arithmetic::compute(*op, left.as_ref(), right.as_ref())?)
            }
            Self::Convert(ty, operand) => {
                Computed::Owned(cast::convert(operand.value(row, probe)?.as_ref(), *ty)?)
            }
            Self::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if condition.test(row, probe)? == Some(true) {
                        return result.value(row, probe);
                    }
                }
                otherwise.value(row, probe)?
            }
            Self::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.value(row, probe)?;
                    if !value.as_ref().is_null() {
                        return Ok(value);
                    }
                }
                Computed::Owned(Value::Null)
            }
            Self::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.value(row, probe)).collect::<Result<
                    SmallVec<[_; 4]>,
                    _,
                >>(
                )?;
                let values: SmallVec<[_; 4]> = values.iter().map(Computed::as_ref).collect();
                Computed::Owned(function.call(&values)?)
            }
            Self::Condition(condition) => {
                Computed::Owned(condition.test(row, probe)?.map_or(Value::Null, Value::Bool))
            }
        })
    }

    /// Adds the columns the scalar reads to `columns`.
    pub fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Constant(_) => {}
            Self::Column(column) => columns.push(*column),
            Self::Arithmetic(_, left, right) => {
                left.columns(columns);
                right.columns(columns);
            }
            Self::Convert(_, operand) => operand.columns(columns),
            Self::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    condition.columns(columns);
                    result.columns(columns);
                }
                otherwise.columns(columns);
            }
            Self::Call(_, operands) | Self::Coalesce(operands) => {
                operands.iter().for_each(|operand| operand.columns(columns));
            }
            Self::Condition(condition) => condition.columns(columns),
        }
    }

    /// Whether the scalar reads nothing of a row.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Column(_) => false,
            Self::Arithmetic(_, left, right) => left.is_constant() && right.is_constant(),
            Self::Convert(_, operand) => operand.is_constant(),
            Self::Case(branches, otherwise) => {
                otherwise.is_constant()
                    && branches
                        .iter()
                        .all(|(condition, result)| condition.is_constant() && result.is_constant())
            }
            Self::Call(_, operands) | Self::Coalesce(operands) => operands.iter().all(Self::is_constant),
            Self::Condition(condition) => condition.is_constant(),
        }
    }

    /// The scalar with every column replaced by what `f` gives for its position.
    #[must_use]
    pub fn map_columns(&self, f: &mut impl FnMut(usize) -> Scalar) -> Scalar {
        match self {
            Self::Constant(value) => Self::Constant(value.clone()),
            Self::Column(column) => f(*column),
            Self::Arithmetic(op, left, right) => {
                Self::Arithmetic(*op, Box::new(left.map_columns(f)), Box::new(right.map_columns(f)))
            }
            Self::Convert(ty, operand) => Self::Convert(*ty, Box::new(operand.map_columns(f))),
            Self::Case(branches, otherwise) => {
                let branches = branches
                    .iter()
                    .map(|(condition, result)| (condition.map_columns(f), result.map_columns(f)))
                    .collect();
                Self::Case(branches, Box::new(otherwise.map_columns(f)))
            }
            Self::Coalesce(operands) => {
                Self::Coalesce(operands.iter().map(|operand| operand.map_columns(f)).collect())
            }
            Self::Call(function, arguments) => {
                Self::Call(*function, arguments.iter().map(|argument| argument.map_columns(f)).collect())
            }
            Self::Condition(condition) => Self::Condition(Box::new(condition.map_columns(f))),
        }
    }
}
