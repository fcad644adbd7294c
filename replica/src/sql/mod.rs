//! From the text of a `select` to relational algebra: names resolved, types checked, everything else refused with its
//! place in the text. Called when a query is registered, on the caller's thread; reads of the snapshot only which tables
//! there are.
//!
//! Expressions are bound over the row of the from clause. What they need beside it (subqueries, window functions,
//! aggregates) is collected while they are bound and referred to by stand-in positions (`rewrite`); the select block then
//! stacks these relations in SQL's order of evaluation and puts the real positions in.

mod aggregate;
mod check;
mod common;
mod definition;
mod expression;
mod from;
mod function;
mod grouping;
mod name;
mod parameters;
mod parse;
mod place;
mod predicate;
mod query;
mod recursive;
mod rewrite;
mod scope;
mod select;
mod select_list;
mod series;
mod set_operation;
pub mod statement;
mod steps;
mod subquery;
mod tokens;
mod type_name;
mod window;
pub mod write;

#[cfg(test)]
mod tests;

pub use check::check_condition;
pub use parse::{TEXT_BYTES_MAX, TOKENS_MAX, has_parameter};
pub use statement::{Bound, Script, Statement};

use crate::{
    algebra::{Column, Select, Subquery, domain},
    expr::{
        Scalar,
        typing::{Operand, Type, Typed},
    },
    query::{Parameters, QueryError, QueryErrorKind},
    store::Snapshot,
    suggestion::suggestion,
};
use common::Common;
use parse::Words;
use place::{Place, Result};
use scope::{Found, Name, Scope};
use sqlparser::ast;
use std::{collections::HashSet, rc::Rc};
use tidegate_wire::model::{ColumnType, Value, query::EXPRESSION_DEPTH_MAX};

/// Most levels that subqueries, derived tables and common table expressions nest.
pub const SUBQUERY_DEPTH_MAX: usize = 64;

/// Most tables, derived tables, subqueries, set operations and windows of a query together: relations nest as deep as
/// there are of them.
pub const RELATIONS_MAX: usize = 1_000;

/// Most steps that binding a query takes, of which each visited expression is one. What is written once may be needed
/// many times: a named window, an operand of `between`, a grouping set.
pub const STEPS_MAX: usize = 1_000_000;

/// How many columns are looked at or copied in one step.
const COLUMNS_PER_STEP: usize = 32;

/// Bytes of stack that parsing and binding run on. The tree of a long chain of operators is that deep.
const STACK_BYTES: usize = 128 << 20;

/// Binds a text of one query to what it means.
///
/// # Errors
/// When the text is not one `select`, uses what is not supported, names what does not exist, or its types do not go
/// together; the message says where.
pub fn bind(
    text: &str,
    snapshot: &Snapshot,
    parameters: &Parameters<'_>,
) -> std::result::Result<Select, QueryError> {
    stacker::grow(STACK_BYTES, || {
        let parsed = parse::parse(text)?;
        match parsed.statements.as_slice() {
            [] => Place::UNKNOWN.bad("the text has no query"),
            [ast::Statement::Query(query)] => Binder::new(snapshot, parameters, &parsed.words).whole(query),
            [_] => parse::first(&parsed.words).bad("only select is a query"),
            _ => Place { line: 1, column: 1 }.bad("the text has more than one statement"),
        }
    })
}

/// Whether equalities with constants become slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lift {
    /// Yes: an outermost select block.
    Yes,
    /// No: a subquery, derived table or common table expression.
    No,
}

/// A subquery that is being bound.
struct Frame {
    /// The names around it.
    outer: Rc<Scope>,
    /// What of the outer row it reads so far.
    domain: Vec<(Scalar, Type)>,
    /// How often it read something of the outer row.
    reads: usize,
}

/// What binding a text carries along.
struct Binder<'a> {
    snapshot: &'a Snapshot,
    parameters: &'a Parameters<'a>,
    words: &'a Words,
    /// The subqueries around what is being bound, outermost first.
    frames: Vec<Frame>,
    /// The common table expressions in scope, innermost last.
    common: Vec<Rc<Common>>,
    slots: Vec<(ColumnType, Value)>,
    /// Recursions so far in this query.
    workings: usize,
    query_depth: usize,
    expression_depth: usize,
    /// Relations so far, at most [`RELATIONS_MAX`].
    relations: usize,
    /// Steps so far, at most [`STEPS_MAX`].
    steps: usize,
}

impl<'a> Binder<'a> {
    fn new(snapshot: &'a Snapshot, parameters: &'a Parameters<'a>, words: &'a Words) -> Self {
        Self {
            snapshot,
            parameters,
            words,
            frames: Vec::new(),
            common: Vec::new(),
            slots: Vec::new(),
            workings: 0,
            query_depth: 0,
            expression_depth: 0,
            relations: 0,
            steps: 0,
        }
    }
}

impl Binder<'_> {
    /// Binds a query whose columns are told apart by their names.
    fn whole(&mut self, query: &ast::Query) -> Result<Select> {
        let (select, columns) = self.whole_by_position(query)?;
        let mut seen = HashSet::new();
        for column in &columns {
            if !seen.insert(column.name.as_str()) {
                return column
                    .place
                    .bad(format_args!("two columns of the result are named {}; alias one", column.name));
            }
        }
        Ok(select)
    }

    /// Binds a query whose columns are told apart by their positions.
    fn whole_by_position(&mut self, query: &ast::Query) -> Result<(Select, Vec<query::Output>)> {
        let bound = self.query(query, Lift::Yes, query::Ordering::Kept)?;
        if bound.columns.is_empty() {
            return Place::UNKNOWN.bad("the result has no columns");
        }
        let select = Select {
            rel: bound.rel,
            names: bound.columns.iter().map(|column| column.name.clone()).collect(),
            order: bound.order,
            slots: std::mem::take(&mut self.slots),
        };
        Ok((select, bound.columns))
    }

    /// Goes on from where another has counted.
    fn count_on(&mut self, other: &Binder<'_>) {
        (self.workings, self.relations, self.steps) = (other.workings, other.relations, other.steps);
    }

    /// Counts steps of binding.
    fn charge(&mut self, steps: usize, place: Place) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX {
            return place
                .bad(format_args!("the query takes more than the limit of {STEPS_MAX} steps to bind"));
        }
        Ok(())
    }

    /// Counts that an operand is used so many times.
    fn charge_copies(&mut self, operand: &Operand, copies: usize, place: Place) -> Result<()> {
        let Operand::Typed(typed) = operand else { return Ok(()) };
        self.charge(rewrite::nodes(&typed.scalar).saturating_mul(copies), place)
    }

    /// Counts one more relation.
    fn relation(&mut self, place: Place) -> Result<()> {
        self.relations += 1;
        if self.relations > RELATIONS_MAX {
            return place.bad(format_args!(
                "more than the limit of {RELATIONS_MAX} tables, subqueries, set operations and windows"
            ));
        }
        Ok(())
    }

    /// The column that a name means in a scope or those around it.
    fn resolve(&mut self, scope: &Scope, name: Name<'_>, place: Place) -> Result<Typed> {
        let outer: usize = self.frames.iter().map(|frame| frame.outer.columns.len()).sum();
        self.charge((scope.columns.len() + outer) / COLUMNS_PER_STEP, place)?;
        if let Some(typed) = found(scope, name, place)? {
            return Ok(typed);
        }
        if let Some(typed) = self.resolve_outside(self.frames.len(), name, place)? {
            return Ok(typed);
        }
        let scopes = || std::iter::once(scope).chain(self.frames.iter().map(|frame| &*frame.outer));
        Err(match name.table {
            Some(table) => place.error(
                QueryErrorKind::UnknownTable,
                format_args!(
                    "no table {table} in the from clause, of which {} would be a column{}",
                    name.column,
                    suggestion(table, scopes().flat_map(Scope::table_names))
                ),
            ),
            None => {
                let columns = scopes().flat_map(|scope| &scope.columns).map(|column| column.name.as_str());
                let instead = suggestion(name.column, columns);
                let message = format_args!("unknown column {}{instead}", name.column);
                place.error(QueryErrorKind::UnknownColumn, message)
            }
        })
    }

    /// The column that a name means outside the subquery at `level` (from 1), as the subquery's domain has it.
    fn resolve_outside(&mut self, level: usize, name: Name<'_>, place: Place) -> Result<Option<Typed>> {
        let Some(index) = level.checked_sub(1) else { return Ok(None) };
        let outer = Rc::clone(&self.frames[index].outer);
        let typed = match found(&outer, name, place)? {
            Some(typed) => typed,
            None => match self.resolve_outside(index, name, place)? {
                Some(typed) => typed,
                None => return Ok(None),
            },
        };
        let frame = &mut self.frames[index];
        frame.reads += 1;
        let column = match frame.domain.iter().position(|(scalar, _)| *scalar == typed.scalar) {
            Some(column) => column,
            None => {
                frame.domain.push((typed.scalar, typed.ty));
                frame.domain.len() - 1
            }
        };
        Ok(Some(Typed { scalar: Scalar::Column(domain(column)), ty: typed.ty }))
    }

    /// Binds something inside a subquery that sees `outer`.
    fn inside<T>(
        &mut self,
        outer: Rc<Scope>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Column>)> {
        self.frames.push(Frame { outer, domain: Vec::new(), reads: 0 });
        let bound = bind(self);
        let frame = self.frames.pop();
        let mut domain = Vec::new();
        for (scalar, ty) in frame.map(|frame| frame.domain).unwrap_or_default() {
            let ty = Typed { scalar: scalar.clone(), ty }
                .column_type()
                .map_err(|error| Place::UNKNOWN.typing(error))?;
            domain.push(Column { scalar, ty });
        }
        Ok((bound?, domain))
    }

    /// Binds a query inside one that sees `outer`.
    fn subquery(
        &mut self,
        outer: Rc<Scope>,
        query: &sqlparser::ast::Query,
    ) -> Result<(Subquery, Vec<query::Output>)> {
        let (bound, domain) =
            self.inside(outer, |binder| binder.query(query, Lift::No, query::Ordering::Dropped))?;
        Ok((Subquery { rel: bound.rel, domain }, bound.columns))
    }

    /// Goes one level down in an expression.
    fn deeper<T>(
        &mut self,
        place: impl FnOnce() -> Place,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.expression_depth >= EXPRESSION_DEPTH_MAX {
            return place().bad(format_args!(
                "an expression nests deeper than the limit of {EXPRESSION_DEPTH_MAX} operators"
            ));
        }
        self.charge(1, Place::UNKNOWN)?;
        let depth = self.expression_depth;
        self.expression_depth += 1;
        let bound = bind(self);
        self.expression_depth = depth;
        bound
    }

    /// The place of a clause's first word, at or after another place.
    fn word(&self, word: &str, after: Place) -> Place {
        let mut words = self.words.iter();
        words
            .find(|(place, candidate)| *place >= after && candidate == word)
            .map_or(after, |(place, _)| *place)
    }
}

fn found(scope: &Scope, name: Name<'_>, place: Place) -> Result<Option<Typed>> {
    match scope.find(name) {
        Found::Column(typed) => Ok(Some(typed.clone())),
        Found::Nothing => Ok(None),
        Found::Ambiguous => place.bad(format_args!("column {} is ambiguous; name its table", name.column)),
        Found::NoColumn => {
            let table = name.table.unwrap_or_default();
            let columns = scope.table(table).into_iter().flat_map(|table| &table.columns);
            let instead = suggestion(name.column, columns.map(|column| column.name.as_str()));
            let message = format_args!("table {table} has no column {}{instead}", name.column);
            Err(place.error(QueryErrorKind::UnknownColumn, message))
        }
    }
}
