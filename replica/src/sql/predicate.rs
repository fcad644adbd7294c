//! Predicates: `is …`, `between`, `like`, and comparisons of rows.

use super::{
    Binder,
    expression::{BOOL, truth, two},
    parameters::{Meeting, Term, together},
    place::{Place, Result, start},
    select::Block,
};
use crate::expr::{
    Condition,
    typing::{self, Operand, Type, Typed},
};
use sqlparser::ast::Expr;
use tidegate_wire::model::ColumnType;

/// Most members of rows that are compared: the condition grows with their square.
const ROW_MAX: usize = 64;

impl Binder<'_> {
    /// A predicate with a syntax of its own.
    pub(super) fn predicate<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Typed> {
        let place = start(expr);
        match expr {
            Expr::IsTrue(inner) => self.is("is true", inner, block),
            Expr::IsNotTrue(inner) => self.is("is not true", inner, block),
            Expr::IsFalse(inner) => self.is("is false", inner, block),
            Expr::IsNotFalse(inner) => self.is("is not false", inner, block),
            Expr::IsUnknown(inner) => self.is("is unknown", inner, block),
            Expr::IsNotUnknown(inner) => self.is("is not unknown", inner, block),
            Expr::IsDistinctFrom(left, right) => self.distinct("is distinct from", left, right, block),
            Expr::IsNotDistinctFrom(left, right) => self.distinct("is not distinct from", left, right, block),
            Expr::Between { expr, negated, low, high } => {
                let terms = vec![self.term(expr, block)?, self.term(low, block)?, self.term(high, block)?];
                let mut operands = together(terms, Meeting::Same)?.into_iter();
                let (Some(value), Some(low), Some(high)) =
                    (operands.next(), operands.next(), operands.next())
                else {
                    return place.bad("between takes three operands");
                };
                self.charge_copies(&value, 2, place)?;
                let between = typing::between(value, low, high).map_err(|error| place.typing(error))?;
                negated_if(*negated, between, place)
            }
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                self.like(*negated, *any, expr, pattern, escape_char.as_deref(), false, block)
            }
            Expr::ILike { negated, any, expr, pattern, escape_char } => {
                self.like(*negated, *any, expr, pattern, escape_char.as_deref(), true, block)
            }
            _ => place.unsupported("this kind of predicate"),
        }
    }

    fn is<'q>(&mut self, op: &str, expr: &'q Expr, block: &mut Block<'q>) -> Result<Typed> {
        let operand = self.term(expr, block)?.beside(Some(BOOL), Meeting::Same)?;
        typing::unary(op, operand).map_err(|error| start(expr).typing(error))
    }

    fn distinct<'q>(
        &mut self,
        op: &str,
        left: &'q Expr,
        right: &'q Expr,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let place = start(left);
        let terms = vec![self.term(left, block)?, self.term(right, block)?];
        let [left, right] = two(together(terms, Meeting::Same)?);
        typing::binary(op, left, right).map_err(|error| place.typing(error))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one node")]
    fn like<'q>(
        &mut self,
        negated: bool,
        any: bool,
        value: &'q Expr,
        pattern: &'q Expr,
        escape: Option<&'q Expr>,
        fold_case: bool,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let place = start(value);
        if any {
            return place.unsupported("like any");
        }
        let text = Some(Type::Column(ColumnType::Text));
        let value = self.term(value, block)?.beside(text, Meeting::Same)?;
        let pattern = self.term(pattern, block)?.beside(text, Meeting::Same)?;
        let escape = match escape {
            Some(escape) => Some(self.term(escape, block)?.beside(text, Meeting::Same)?),
            None => None,
        };
        let like = typing::like(value, pattern, escape, fold_case).map_err(|error| place.typing(error))?;
        negated_if(negated, like, place)
    }
}

/// The predicate, or with `not` before it.
pub(super) fn negated_if(negated: bool, typed: Typed, place: Place) -> Result<Typed> {
    if !negated {
        return Ok(typed);
    }
    let condition = typed.condition().map_err(|error| place.typing(error))?;
    Ok(truth(match condition {
        Condition::Not(inner) => *inner,
        other => Condition::Not(Box::new(other)),
    }))
}

/// A comparison of two values.
pub(super) fn compare(op: &str, left: Operand, right: Operand, place: Place) -> Result<Condition> {
    let typed = typing::binary(op, left, right).map_err(|error| place.typing(error))?;
    typed.condition().map_err(|error| place.typing(error))
}

impl Binder<'_> {
    /// A comparison of two rows, member by member.
    pub(super) fn compare_rows(
        &mut self,
        op: &str,
        left: Vec<Term>,
        right: Vec<Term>,
        place: Place,
    ) -> Result<Typed> {
        if left.len() != right.len() || left.is_empty() {
            return place.bad(format_args!(
                "rows of {} and {} members are compared",
                left.len(),
                right.len()
            ));
        }
        if left.len() > ROW_MAX {
            return place.bad(format_args!("a row has more than the limit of {ROW_MAX} members"));
        }
        let copies = left.len();
        let mut pairs = Vec::with_capacity(copies);
        for (left, right) in left.into_iter().zip(right) {
            let pair = two(together(vec![left, right], Meeting::Same)?);
            for operand in &pair {
                self.charge_copies(operand, copies, place)?;
            }
            pairs.push(pair);
        }
        let each = |op: &str| -> Result<Vec<Condition>> {
            pairs.iter().map(|[left, right]| compare(op, left.clone(), right.clone(), place)).collect()
        };
        let strict = match op {
            "=" => return Ok(truth(all(each("=")?))),
            "<>" | "!=" => return Ok(truth(any(each("<>")?))),
            "<" | "<=" => "<",
            _ => ">",
        };
        // The first members that differ decide; where a member is NULL before that, it is unknown.
        let mut decided = Vec::with_capacity(pairs.len());
        for (index, [left, right]) in pairs.iter().enumerate() {
            let last = index + 1 == pairs.len();
            let mut conditions = Vec::with_capacity(index + 1);
            for [left, right] in &pairs[..index] {
                conditions.push(compare("=", left.clone(), right.clone(), place)?);
            }
            conditions.push(compare(if last { op } else { strict }, left.clone(), right.clone(), place)?);
            decided.push(all(conditions));
        }
        Ok(truth(any(decided)))
    }
}

/// All of the conditions.
pub(super) fn all(mut conditions: Vec<Condition>) -> Condition {
    if conditions.len() == 1 { conditions.remove(0) } else { Condition::And(conditions) }
}

/// One of the conditions.
pub(super) fn any(mut conditions: Vec<Condition>) -> Condition {
    if conditions.len() == 1 { conditions.remove(0) } else { Condition::Or(conditions) }
}
