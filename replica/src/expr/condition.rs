//! Conditions with SQL's three-valued logic: true, false or unknown (`None`).

use super::{Cells, EvalError, Pattern, Regex, Scalar};
use std::{cmp::Ordering, fmt};
use tidegate_wire::model::{Row, ValueRef};

/// The comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Compare {
    /// Whether the comparison holds; unknown when a side is NULL.
    #[inline]
    fn test(self, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<bool> {
        match (left, right) {
            // Most comparisons are these, which then cost no call.
            (ValueRef::Int8(a), ValueRef::Int8(b)) | (ValueRef::Timestamptz(a), ValueRef::Timestamptz(b)) => {
                Some(self.holds(a.cmp(&b)))
            }
            _ => (!left.is_null() && !right.is_null()).then(|| self.holds(left.compare(right))),
        }
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// Answers the EXISTS conditions of an expression; they need tables, which an expression does not know.
pub trait ExistsProbe<R = Row> {
    /// Whether the EXISTS numbered `index` in its query holds for `row`.
    ///
    /// # Errors
    /// When evaluating the child query's condition fails.
    fn exists(&self, index: usize, row: &R) -> Result<bool, EvalError>;
}

/// Answers nothing: where an expression is over one row alone, it asks for no other.
pub struct NoExists;

impl<R> ExistsProbe<R> for NoExists {
    fn exists(&self, _: usize, _: &R) -> Result<bool, EvalError> {
        Err(EvalError::MissingIndex)
    }
}

/// A condition over one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A constant; `None` is unknown.
    Constant(Option<bool>),
    /// All hold.
    And(Vec<Condition>),
    /// One holds.
    Or(Vec<Condition>),
    /// The opposite; unknown stays unknown.
    Not(Box<Condition>),
    /// The truth is this one (`is true`, `is unknown`); never unknown.
    Is(Box<Condition>, Option<bool>),
    /// A comparison; unknown when a side is NULL.
    Compare(Compare, Scalar, Scalar),
    /// The value equals a member.
    In(Scalar, Vec<Scalar>),
    /// The value is NULL.
    IsNull(Scalar),
    /// The values differ, NULL being equal to NULL only.
    IsDistinct(Scalar, Scalar),
    /// The text matches a pattern known in advance.
    Matches(Scalar, Pattern),
    /// The text matches a computed pattern (with case folded for ILIKE).
    MatchesComputed(Scalar, Scalar, bool),
    /// A part of the text matches a regular expression known in advance.
    Regex(Scalar, Regex),
    /// A part of the text matches a computed regular expression (with case folded for `~*`).
    RegexComputed(Scalar, Scalar, bool),
    /// A boolean value.
    Truth(Scalar),
    /// The query's EXISTS of that number.
    Exists(usize),
}

impl Condition {
    /// That two values are equal; with `null_agrees` also that both are NULL.
    #[must_use]
    pub fn equal(left: Scalar, right: Scalar, null_agrees: bool) -> Self {
        if null_agrees {
            Self::Not(Box::new(Self::IsDistinct(left, right)))
        } else {
            Self::Compare(Compare::Equal, left, right)
        }
    }

    /// The values that it says are equal, and whether NULL agrees with NULL, as [`Self::equal`] is given them; `None` for
    /// other conditions.
    #[must_use]
    pub fn as_equality(&self) -> Option<(&Scalar, &Scalar, bool)> {
        match self {
            Self::Compare(Compare::Equal, left, right) => Some((left, right, false)),
            Self::Not(inner) => match &**inner {
                Self::IsDistinct(left, right) => Some((left, right, true)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The condition's truth for a row.
    ///
    /// # Errors
    /// When a value it needs cannot be computed. Operands are taken left to right, and those after the one that
    /// decides are not computed.
    pub fn test<R: Cells>(&self, row: &R, probe: &dyn ExistsProbe<R>) -> Result<Option<bool>, EvalError> {
        Ok(match self {
            Self::Constant(truth) => *truth,
            Self::And(operands) => {
                let mut result = Some(true);
                for operand in operands {
                    match operand.test(row, probe)? {
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                        Some(true) => {}
                    }
                }
                result
            }
            Self::Or(operands) => {
                let mut result = Some(false);
                for operand in operands {
                    match operand.test(row, probe)? {
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                        Some(false) => {}
                    }
                }
                result
            }
            Self::Not(operand) => operand.test(row, probe)?.map(|truth| !truth),
            Self::Compare(op, Scalar::Column(left), Scalar::Column(right)) => {
                op.test(row.cell(*left), row.cell(*right))
            }
            Self::Compare(op, left, right) => {
                let (left, right) = (left.value(row, probe)?, right.value(row, probe)?);
                op.test(left.as_ref(), right.as_ref())
            }
            Self::In(value, members) => {
                let value = value.value(row, probe)?;
                let mut result = Some(false);
                for member in members {
                    let member = member.value(row, probe)?;
                    // NULL among many members is compared with all, since one of them may fail.
                    if value.as_ref().is_null() || member.as_ref().is_null() {
                        result = None;
                    } else if value.as_ref().compare(member.as_ref()).is_eq() {
                        return Ok(Some(true));
                    }
                }
                result
            }
            Self::IsNull(value) => Some(value.value(row, probe)?.as_ref().is_null()),
            Self::IsDistinct(left, right) => {
                let (left, right) = (left.value(row, probe)?, right.value(row, probe)?);
                Some(left.as_ref().compare(right.as_ref()).is_ne())
            }
            Self::Matches(value, pattern) => match value.value(row, probe)?.as_ref() {
                ValueRef::Text(text) => Some(pattern.matches(text)),
                _ => None,
            },
            Self::MatchesComputed(value, pattern, fold_case) => {
                let (value, pattern) = (value.value(row, probe)?, pattern.value(row, probe)?);
                match (value.as_ref(), pattern.as_ref()) {
                    (ValueRef::Text(text), ValueRef::Text(pattern)) => {
                        Some(Pattern::compile(pattern, *fold_case)?.matches(text))
                    }
                    _ => None,
                }
            }
            Self::Is(operand, truth) => Some(operand.test(row, probe)? == *truth),
            Self::Regex(value, regex) => match value.value(row, probe)?.as_ref() {
                ValueRef::Text(text) => Some(regex.is_match(text)),
                _ => None,
            },
            Self::RegexComputed(value, pattern, fold_case) => {
                let (value, pattern) = (value.value(row, probe)?, pattern.value(row, probe)?);
                match (value.as_ref(), pattern.as_ref()) {
                    (ValueRef::Text(text), ValueRef::Text(pattern)) => {
                        Some(Regex::compile(pattern, *fold_case)?.is_match(text))
                    }
                    _ => None,
                }
            }
            Self::Truth(value) => match value.value(row, probe)?.as_ref() {
                ValueRef::Bool(truth) => Some(truth),
                _ => None,
            },
            Self::Exists(index) => Some(probe.exists(*index, row)?),
        })
    }

    /// Adds the columns the condition reads to `columns`.
    pub fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Constant(_) | Self::Exists(_) => {}
            Self::And(operands) | Self::Or(operands) => operands.iter().for_each(|o| o.columns(columns)),
            Self::Not(operand) | Self::Is(operand, _) => operand.columns(columns),
            Self::Compare(_, a, b)
            | Self::IsDistinct(a, b)
            | Self::MatchesComputed(a, b, _)
            | Self::RegexComputed(a, b, _) => {
                a.columns(columns);
                b.columns(columns);
            }
            Self::In(value, members) => {
                value.columns(columns);
                members.iter().for_each(|m| m.columns(columns));
            }
            Self::IsNull(value) | Self::Matches(value, _) | Self::Regex(value, _) | Self::Truth(value) => {
                value.columns(columns)
            }
        }
    }

    /// Whether the condition reads nothing of a row.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Exists(_) => false,
            Self::And(operands) | Self::Or(operands) => operands.iter().all(Self::is_constant),
            Self::Not(operand) | Self::Is(operand, _) => operand.is_constant(),
            Self::Compare(_, a, b)
            | Self::IsDistinct(a, b)
            | Self::MatchesComputed(a, b, _)
            | Self::RegexComputed(a, b, _) => a.is_constant() && b.is_constant(),
            Self::In(value, members) => value.is_constant() && members.iter().all(Scalar::is_constant),
            Self::IsNull(value) | Self::Matches(value, _) | Self::Regex(value, _) | Self::Truth(value) => {
                value.is_constant()
            }
        }
    }

    /// The condition with every column replaced by what `f` gives for its position.
    #[must_use]
    pub fn map_columns(&self, f: &mut impl FnMut(usize) -> Scalar) -> Condition {
        fn all(operands: &[Condition], f: &mut impl FnMut(usize) -> Scalar) -> Vec<Condition> {
            operands.iter().map(|operand| operand.map_columns(f)).collect()
        }
        match self {
            Self::Constant(_) | Self::Exists(_) => self.clone(),
            Self::And(operands) => Self::And(all(operands, f)),
            Self::Or(operands) => Self::Or(all(operands, f)),
            Self::Not(operand) => Self::Not(Box::new(operand.map_columns(f))),
            Self::Compare(op, a, b) => Self::Compare(*op, a.map_columns(f), b.map_columns(f)),
            Self::In(value, members) => {
                let value = value.map_columns(f);
                Self::In(value, members.iter().map(|member| member.map_columns(f)).collect())
            }
            Self::IsNull(value) => Self::IsNull(value.map_columns(f)),
            Self::IsDistinct(a, b) => Self::IsDistinct(a.map_columns(f), b.map_columns(f)),
            Self::Matches(value, pattern) => Self::Matches(value.map_columns(f), pattern.clone()),
            Self::MatchesComputed(value, pattern, fold_case) => {
                Self::MatchesComputed(value.map_columns(f), pattern.map_columns(f), *fold_case)
            }
            Self::Is(operand, truth) => Self::Is(Box::new(operand.map_columns(f)), *truth),
            Self::Regex(value, regex) => Self::Regex(value.map_columns(f), regex.clone()),
            Self::RegexComputed(value, pattern, fold_case) => {
                Self::RegexComputed(value.map_columns(f), pattern.map_columns(f), *fold_case)
            }
            Self::Truth(value) => match value.map_columns(f) {
                Scalar::Condition(condition) => *condition,
                value => Self::Truth(value),
            },
        }
    }
}
