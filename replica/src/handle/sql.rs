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

/// Why a text of statements was not run to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct StatementsError {
    /// What is wrong with the statement at fault.
    #[source]
    pub error: QueryError,
    /// What those before it did, without those of a transaction that was rolled back: that stands.
    pub before: Answer,
}

impl From<StatementsError> for QueryError {
    fn from(failed: StatementsError) -> Self {
        failed.error
    }
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
    ) -> Result<Answer, StatementsError> {
        let parameters = Parameters { args, claims, declared: None };
        let mut answer = Answer { cv: self.store.snapshot().cv(), results: Vec::new() };
        let ran = with_script(text, |script| {
            all_asked_for(args, |argument| has_parameter(text, argument))?;
            let mut rows_left = rows_max;
            for unit in units(&script.statements)? {
                let first = unit.start;
                answer.cv = self.unit(script, unit, &parameters, rows_left, rows_max, &mut answer.results)?;
                let rows = answer.results[first..].iter().filter_map(|result| result.rows.as_ref());
                rows_left -= rows.map(|table| table.rows.len()).sum::<usize>();
            }
            Ok::<_, QueryError>(())
        });
        match ran {
            Ok(()) => Ok(answer),
            Err(error) => Err(StatementsError { error, before: answer }),
        }
    }

    /// Runs statements that are one commit, until nobody comes in between, and adds their results: all of them, or when
    /// one fails those that stand.
    fn unit(
        &self,
        script: &Script,
        unit: Range<usize>,
        parameters: &Parameters<'_>,
        rows_left: usize,
        rows_max: usize,
        results: &mut Vec<StatementAnswer>,
    ) -> Result<Cv, QueryError> {
        if let [statement] = &script.statements[unit.clone()]
            && let Some(cv) = self.view_statement(statement)
        {
            let cv = cv.map_err(|error| named(error, unit.start, &script.statements, &unit))?;
            results.push(StatementAnswer { command: statement.command(), rows: None, affected: Some(0) });
            return Ok(cv);
        }
        let deadline = Instant::now() + self.options.deadline;
        let mut turn = None;
        for _ in 0..TRIES_MAX {
            let mut run = Run::new(self, script, parameters, deadline, rows_left, rows_max);
            results.truncate(unit.start);
            for number in unit.clone() {
                match run.statement(&script.statements[number]) {
                    Ok(result) => results.push(result),
                    Err(error) => {
                        if is_transaction(&script.statements[unit.start]) {
                            results.truncate(unit.start);
                        }
                        return Err(named(error, number, &script.statements, &unit));
                    }
                }
            }
            let Some(transaction) = run.finish() else {
                return Ok(run.cv());
            };
            let refused = match self.store.transact_blocking(transaction).map_err(not_ready) {
                Ok(TransactionOutcome::Committed(cv)) => return Ok(cv),
                Ok(TransactionOutcome::Overtaken) => {
                    turn.get_or_insert_with(|| self.sql_turn.lock());
                    continue;
                }
                Ok(TransactionOutcome::Refused(error)) => refusal(&error),
                Err(closed) => closed,
            };
            results.truncate(unit.start);
            return Err(named(refused, unit.end - 1, &script.statements, &unit));
        }
        results.truncate(unit.start);
        let contended = refusal(&CommitProblem::Contended { tries: TRIES_MAX }.into());
        Err(named(contended, unit.end - 1, &script.statements, &unit))
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

fn is_transaction(first: &Statement) -> bool {
    matches!(first, Statement::Begin)
}

/// An error with the number of the statement that it is of, where there are several.
fn named(error: QueryError, number: usize, statements: &[Statement], unit: &Range<usize>) -> QueryError {
    if statements.len() < 2 {
        return error;
    }
    let undone = if is_transaction(&statements[unit.start]) { ", transaction rolled back" } else { "" };
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
