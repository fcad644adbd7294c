//! Statements in SQL, run once: selects at the newest snapshot, writes and changes of tables as commits.
//!
//! Whatever is one commit is run over a snapshot, without anybody being held up, and then taken by the store if what it
//! depends on is still as it was; else it is run again. So transactions are serializable, and nobody sees half of one.

mod show;
mod transaction;
mod write;

use super::{Inner, not_ready, prepare::all_asked_for};
use crate::{
    query::{Parameters, QueryError, QueryErrorKind},
    sql::{
        has_parameter,
        statement::{Script, Statement, with_script},
    },
    store::{CommitError, CommitErrorKind, CommitProblem, TransactionOutcome},
};
use serde_json::{Map, Value as Json};
use std::{ops::Range, time::Instant};
use tidegate_wire::model::{ColumnType, Cv};
use transaction::Run;

/// How often a transaction is run before it is given back to whoever can decide.
const TRIES_MAX: usize = 20;

/// The answers to a text's statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The commit version of the last statement that wrote; of the rows shown where none did.
    pub cv: Cv,
    /// One for each statement.
    pub results: Vec<StatementAnswer>,
}

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementAnswer {
    /// What the statement does: `select`, `insert`, `create table`.
    pub command: &'static str,
    /// The rows it shows, where it shows any.
    pub rows: Option<Table>,
    /// How many rows it wrote, where it is not one that only shows.
    pub affected: Option<u64>,
}

/// One statement's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' names and types.
    pub columns: Vec<(String, ColumnType)>,
    /// The rows in order, cells in the JSON form of their types.
    pub rows: Vec<Vec<Json>>,
}

impl Inner {
    /// See [`super::Replica::sql`].
    pub(super) fn sql(
        &self,
        text: &str,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
        rows_max: usize,
    ) -> Result<Answer, QueryError> {
        let parameters = Parameters { args, claims, declared: None };
        with_script(text, |script| {
            all_asked_for(args, |argument| has_parameter(text, argument))?;
            let mut answer = Answer { cv: self.store.snapshot().cv(), results: Vec::new() };
            let mut rows_left = rows_max;
            for unit in units(&script.statements)? {
                let (cv, results) = self.unit(script, unit, &parameters, rows_left, rows_max)?;
                let rows = results.iter().filter_map(|result| result.rows.as_ref());
                rows_left -= rows.map(|table| table.rows.len()).sum::<usize>();
                answer.cv = cv;
                answer.results.extend(results);
            }
            Ok(answer)
        })
    }

    /// Runs statements that are one commit, until nobody comes in between.
    fn unit(
        &self,
        script: &Script,
        unit: Range<usize>,
        parameters: &Parameters<'_>,
        rows_left: usize,
        rows_max: usize,
    ) -> Result<(Cv, Vec<StatementAnswer>), QueryError> {
        if let [statement] = &script.statements[unit.clone()]
            && let Some(cv) = self.view_statement(statement)
        {
            let cv = cv.map_err(|error| named(error, unit.start, &script.statements, &unit))?;
            let answer = StatementAnswer { command: statement.command(), rows: None, affected: Some(0) };
            return Ok((cv, vec![answer]));
        }
        let deadline = Instant::now() + self.options.deadline;
        let mut turn = None;
        for _ in 0..TRIES_MAX {
            let mut run = Run::new(self, script, parameters, deadline, rows_left, rows_max);
            let mut results = Vec::with_capacity(unit.len());
            for number in unit.clone() {
                let result = run.statement(&script.statements[number]);
                results.push(result.map_err(|error| named(error, number, &script.statements, &unit))?);
            }
            let Some(transaction) = run.finish() else {
                return Ok((run.cv(), results));
            };
            match self.store.transact_blocking(transaction).map_err(not_ready)? {
                TransactionOutcome::Committed(cv) => return Ok((cv, results)),
                TransactionOutcome::Overtaken => {
                    turn.get_or_insert_with(|| self.sql_turn.lock());
                }
                TransactionOutcome::Refused(error) => return Err(refusal(&error)),
            }
        }
        Err(refusal(&CommitProblem::Contended { tries: TRIES_MAX }.into()))
    }
}

/// Which statements are run together: those of a transaction; those that only show, as long as no other comes between,
/// so that they stand at one commit version; every other by itself.
fn units(statements: &[Statement]) -> Result<Vec<Range<usize>>, QueryError> {
    let bad = |number: usize, message: &str| {
        let error = QueryError::new(QueryErrorKind::BadQuery, message);
        Err(named(error, number, statements, &(number..number + 1)))
    };
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut begun: Option<usize> = None;
    let mut shows = false;
    for (number, statement) in statements.iter().enumerate() {
        let only_shows = statement.only_shows();
        match (statement, begun) {
            (Statement::Begin, Some(_)) => {
                return bad(number, "a transaction has begun already; commit it first");
            }
            (Statement::Begin, None) => begun = Some(number),
            (Statement::Commit | Statement::Rollback, Some(first)) => {
                units.push(first..number + 1);
                begun = None;
            }
            (Statement::Commit | Statement::Rollback, None) => {
                return bad(number, "no transaction has begun; write begin before it");
            }
            (_, Some(_)) => {}
            (_, None) => match units.last_mut() {
                Some(last) if only_shows && shows => last.end = number + 1,
                _ => units.push(number..number + 1),
            },
        }
        shows = only_shows && begun.is_none();
    }
    match begun {
        Some(number) => bad(number, "the transaction does not end; write commit after it"),
        None => Ok(units),
    }
}

/// An error with the number of the statement that it is of, where there are several.
fn named(error: QueryError, number: usize, statements: &[Statement], unit: &Range<usize>) -> QueryError {
    if statements.len() < 2 {
        return error;
    }
    let undone =
        if matches!(statements[unit.start], Statement::Begin) { ", transaction rolled back" } else { "" };
    let message =
        format!("statement {} ({}){undone}: {}", number + 1, statements[number].command(), error.message);
    QueryError::new(error.kind, message)
}

/// What a write that is refused is to whoever asked for it in SQL.
pub(super) fn refusal(error: &CommitError) -> QueryError {
    let kind = match error.code() {
        CommitErrorKind::UnknownTable => QueryErrorKind::UnknownTable,
        CommitErrorKind::UnknownColumn => QueryErrorKind::UnknownColumn,
        CommitErrorKind::TypeMismatch => QueryErrorKind::TypeMismatch,
        CommitErrorKind::Conflict => QueryErrorKind::Conflict,
        CommitErrorKind::BadMessage | CommitErrorKind::MessageTooLarge => QueryErrorKind::BadQuery,
        CommitErrorKind::Forbidden => QueryErrorKind::Forbidden,
        CommitErrorKind::SchemaChanged => QueryErrorKind::SchemaChanged,
        CommitErrorKind::NotReady => QueryErrorKind::NotReady,
        CommitErrorKind::Internal => QueryErrorKind::Internal,
    };
    QueryError::new(kind, error.to_string())
}
