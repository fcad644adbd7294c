//! Subqueries in expressions: `exists`, scalar subqueries, and `in`, `any`, `some` and `all` of subqueries and lists.

use super::{
    Binder,
    expression::{row, truth},
    parameters::{Meeting, Term, members, together},
    place::{Place, Result, start},
    predicate::{all, any, compare, negated_if},
    query::{Output, start_of},
    rewrite::Position,
    select::{Block, Clause},
};
use crate::{
    algebra::Subquery,
    expr::{
        Compare, Condition, Scalar,
        typing::{self, Operand, Typed},
    },
};
use sqlparser::ast::{Array, BinaryOperator, Expr, InTarget, Query};
use std::rc::Rc;

impl Binder<'_> {
    /// Binds a subquery that stands in an expression of a block.
    fn inner_query(&mut self, query: &Query, block: &Block<'_>) -> Result<(Subquery, Vec<Output>)> {
        if block.clause == Clause::Constant {
            return start_of(query).unsupported("a subquery here");
        }
        self.subquery(Rc::clone(&block.scope), query)
    }

    /// `exists (query)`.
    pub(super) fn exists(&mut self, query: &Query, negated: bool, block: &mut Block<'_>) -> Result<Typed> {
        let place = start_of(query);
        let (subquery, _) = self.inner_query(query, block)?;
        let mark = block.steps.mark(subquery, None, place);
        negated_if(negated, truth(Condition::Truth(mark)), place)
    }

    /// `(query)` as a value.
    pub(super) fn scalar_subquery(&mut self, query: &Query, block: &mut Block<'_>) -> Result<Typed> {
        let place = start_of(query);
        let (subquery, columns) = self.inner_query(query, block)?;
        let [column] = columns.as_slice() else {
            return place
                .bad(format_args!("a subquery that is a value has one column, not {}", columns.len()));
        };
        Ok(Typed { scalar: block.steps.lookup(subquery, place), ty: column.ty })
    }

    /// `in`, `any`, `some` and `all`.
    pub(super) fn membership<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Typed> {
        let place = start(expr);
        match expr {
            Expr::In { expr: value, target, negated, global } => {
                if *global {
                    return place.unsupported("global in");
                }
                let typed = match target {
                    InTarget::Subquery(query) => {
                        self.quantified(value, "=", query, Quantifier::Any, block)?
                    }
                    InTarget::List(list) => match list.as_slice() {
                        [Expr::Subquery(query)] => {
                            self.quantified(value, "=", query, Quantifier::Any, block)?
                        }
                        list => self.in_list(value, list, block)?,
                    },
                    InTarget::Unnest(_) | InTarget::Table { name: _, args: _ } => {
                        return place.unsupported("in of a table or unnest");
                    }
                };
                negated_if(*negated, typed, place)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } => {
                self.any_or_all(left, compare_op, right, Quantifier::Any, block)
            }
            Expr::AllOp { left, compare_op, right } => {
                self.any_or_all(left, compare_op, right, Quantifier::All, block)
            }
            _ => place.unsupported("this kind of membership"),
        }
    }

    fn in_list<'q>(&mut self, value: &'q Expr, list: &'q [Expr], block: &mut Block<'q>) -> Result<Typed> {
        let place = start(value);
        if let Some(members) = row(value) {
            let left = self.row_operands(members, block)?;
            let mut equal = Vec::with_capacity(list.len());
            for member in list {
                let Some(right) = row(member) else {
                    return start(member).bad("a row is compared with something that is no row");
                };
                let right = self.row_operands(right, block)?;
                let typed = self.compare_rows("=", left.clone(), right, place)?;
                equal.push(typed.condition().map_err(|error| place.typing(error))?);
            }
            return Ok(truth(any(equal)));
        }
        let mut terms = vec![self.term(value, block)?];
        for member in list {
            terms.push(self.term(member, block)?);
        }
        // One parameter that is a list stands for its members.
        if let [_, Term::Parameter(parameter)] = terms.as_slice()
            && let Some(members) = members(parameter)
        {
            terms.truncate(1);
            terms.extend(members);
        }
        listed(terms, place)
    }

    fn any_or_all<'q>(
        &mut self,
        left: &'q Expr,
        op: &BinaryOperator,
        right: &'q Expr,
        quantifier: Quantifier,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let place = start(left);
        let name = op.to_string().to_ascii_lowercase();
        if !matches!(name.as_str(), "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=") {
            return place.unsupported(format_args!("operator {name} with any or all"));
        }
        let mut right = right;
        while let Expr::Nested(inner) = right {
            right = inner;
        }
        let members = match right {
            Expr::Subquery(query) => return self.quantified(left, &name, query, quantifier, block),
            Expr::Array(Array { elem, named: _ }) => {
                elem.iter().map(|member| self.term(member, block)).collect::<Result<Vec<_>>>()?
            }
            other => match self.term(other, block)? {
                Term::Parameter(parameter) => match members(&parameter) {
                    Some(members) => members,
                    None => {
                        return start(other)
                            .mismatch(format_args!("parameter {} is no list", parameter.name));
                    }
                },
                Term::Operand(_) => {
                    return start(other)
                        .unsupported("any or all of what is no subquery, array[…] or parameter");
                }
            },
        };
        let mut terms = vec![self.term(left, block)?];
        terms.extend(members);
        match (name.as_str(), quantifier) {
            ("=", Quantifier::Any) => return listed(terms, place),
            ("<>" | "!=", Quantifier::All) => return negated_if(true, listed(terms, place)?, place),
            _ => {}
        }
        let mut operands = together(terms, Meeting::Same)?.into_iter();
        let value = operands.next().unwrap_or(Operand::Unknown(None));
        self.charge_copies(&value, operands.len(), place)?;
        let conditions = operands
            .map(|member| compare(&name, value.clone(), member, place))
            .collect::<Result<Vec<_>>>()?;
        Ok(truth(match quantifier {
            Quantifier::Any => any(conditions),
            Quantifier::All => all(conditions),
        }))
    }

    /// A comparison with any or all rows of a subquery.
    fn quantified<'q>(
        &mut self,
        left: &'q Expr,
        op: &str,
        query: &Query,
        quantifier: Quantifier,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let place = start(left);
        let left = match row(left) {
            Some(members) => self.row_operands(members, block)?,
            None => vec![self.term(left, block)?],
        };
        let (subquery, columns) = self.inner_query(query, block)?;
        if left.len() != columns.len() {
            return start_of(query).bad(format_args!(
                "the subquery has {} columns, but is compared with {}",
                columns.len(),
                left.len()
            ));
        }
        let right = columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                Term::Operand(Operand::typed(Position::Subquery(index).scalar(), column.ty))
            })
            .collect();
        let typed = self.compare_rows(op, left, right, place)?;
        let condition = typed.condition().map_err(|error| place.typing(error))?;
        Ok(truth(match quantifier {
            Quantifier::Any => Condition::Truth(block.steps.mark(subquery, Some(condition), place)),
            // True of all is: not false of any.
            Quantifier::All => {
                let mark = block.steps.mark(subquery, Some(opposite(condition)), place);
                Condition::Not(Box::new(Condition::Truth(mark)))
            }
        }))
    }
}

/// Of how many rows something is to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
}

/// The first term's membership among the others.
fn listed(terms: Vec<Term>, place: Place) -> Result<Typed> {
    let mut operands = together(terms, Meeting::Same)?.into_iter();
    let value = operands.next().unwrap_or(Operand::Unknown(None));
    typing::in_list(value, operands.collect()).map_err(|error| place.typing(error))
}

/// What is true where the condition is false, and unknown where it is.
fn opposite(condition: Condition) -> Condition {
    let compare = |op, left: Scalar, right: Scalar| Condition::Compare(op, left, right);
    match condition {
        Condition::Compare(Compare::Equal, left, right) => compare(Compare::NotEqual, left, right),
        Condition::Compare(Compare::NotEqual, left, right) => compare(Compare::Equal, left, right),
        Condition::Compare(Compare::Less, left, right) => compare(Compare::GreaterOrEqual, left, right),
        Condition::Compare(Compare::LessOrEqual, left, right) => compare(Compare::Greater, left, right),
        Condition::Compare(Compare::Greater, left, right) => compare(Compare::LessOrEqual, left, right),
        Condition::Compare(Compare::GreaterOrEqual, left, right) => compare(Compare::Less, left, right),
        Condition::Not(inner) => *inner,
        other => Condition::Not(Box::new(other)),
    }
}
