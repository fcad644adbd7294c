//! Inserts, updates and deletes: from the rows they are about to edits.

use super::{StatementAnswer, Table, refusal, transaction::Run};
use crate::{
    expr::{Condition, EvalError, NoExists, Scalar},
    query::{QueryError, QueryErrorKind},
    sql::write::{Arbiter, ConflictAction, NewRows, OnConflict, Returning, Write, WriteKind},
    store::{
        CommitError, CommitLimits, CommitProblem, KeyBytes, Snapshot, TableId,
        constraint::{self, Moved, key_taken, null_in, settle},
        key::{correlation_key, row_key},
        numbered,
    },
};
use std::{collections::HashSet, sync::Arc};
use tidegate_wire::model::{
    DOCUMENT_LEVELS_MAX, Row, TableSchema, Value, ValueRef, json_levels, value::ValueError,
};

/// How many rows are written between two looks at the limits.
const ROWS_PER_LOOK: usize = 1_024;

type Result<T> = std::result::Result<T, QueryError>;

/// What a write has done so far.
struct Written<'w> {
    table: TableId,
    schema: Arc<TableSchema>,
    limits: CommitLimits,
    mark: usize,
    moved: Moved,
    affected: u64,
    returning: Option<&'w Returning>,
    shown: Vec<Row>,
}

impl Run<'_> {
    /// Runs a write over the tables as they are in `snapshot`, which is now.
    pub(super) fn write(
        &mut self,
        write: &Write,
        snapshot: &Arc<Snapshot>,
        command: &'static str,
    ) -> Result<StatementAnswer> {
        let relation = snapshot.table(write.table).expect("a write is bound to a table that is there");
        let mut written = Written {
            table: write.table,
            schema: Arc::clone(relation.schema()),
            limits: self.limits(),
            mark: self.editor().len(),
            moved: Moved::new(),
            affected: 0,
            returning: write.returning.as_ref(),
            shown: Vec::new(),
        };
        match &write.kind {
            WriteKind::Insert { rows, on_conflict } => {
                self.insert(&mut written, rows, on_conflict.as_ref(), snapshot)?;
            }
            WriteKind::Update { rows, set } => {
                let first_value = rows.names.len() - set.len();
                let rows = self.rows(rows, snapshot)?;
                self.update(&mut written, &rows, set, first_value)?;
            }
            WriteKind::Delete { rows } => {
                let rows = self.rows(rows, snapshot)?;
                let mut seen = HashSet::new();
                for row in rows {
                    let key = row_key(&row, &written.schema.primary_key);
                    if seen.insert(key.clone()) {
                        self.editor().set(written.table, &key, None);
                        written.note(row);
                        self.look(&written)?;
                    }
                }
            }
        }
        self.check_size(written.mark)?;
        let Written { moved, mark, limits, affected, returning, shown, .. } = written;
        settle(self.editor(), mark, &moved, &limits).map_err(|violation| refusal(&violation.error))?;
        let rows = returning.map(|returning| table(returning, &shown)).transpose()?;
        Ok(StatementAnswer { command, rows, affected: Some(affected) })
    }

    fn insert(
        &mut self,
        written: &mut Written<'_>,
        sources: &[NewRows],
        on_conflict: Option<&OnConflict>,
        snapshot: &Arc<Snapshot>,
    ) -> Result<()> {
        let width = written.schema.columns.len();
        let mut rows = Vec::with_capacity(sources.len());
        let nothing = Row::from_values(&[]);
        for source in sources {
            match source {
                NewRows::Values(scalars) => rows.push(evaluated(scalars, &nothing)?),
                NewRows::Select(select) => {
                    let selected = self.rows(select, snapshot)?;
                    rows.extend(selected.iter().map(|row| cells(row, 0..width)));
                }
            }
        }
        // The rows that the statement has inserted or updated.
        let mut own: HashSet<KeyBytes> = HashSet::new();
        for row in rows {
            // What a row has to satisfy by itself it has to also where another one is there already.
            self.check_alone(written, &row)?;
            if let Some(OnConflict { arbiters, action }) = on_conflict
                && let Some(existing) = self.existing(written, arbiters, &row)
            {
                if let ConflictAction::Update { set, filter } = action {
                    self.update_existing(written, &existing, &row, set, filter.as_ref(), &mut own)?;
                }
                continue;
            }
            let relation = self.editor().snapshot().table(written.table).expect("the table is there");
            let row = numbered(relation, row);
            let key = written.checked_key(&row)?;
            if self.editor().set(written.table, &key, Some(row.clone())).is_some() {
                return Err(refusal(&key_taken(&written.schema, &row)));
            }
            own.insert(key);
            written.note(row);
            self.look(written)?;
        }
        Ok(())
    }

    /// Checks what a new row has to satisfy by itself.
    fn check_alone(&mut self, written: &Written<'_>, row: &Row) -> Result<()> {
        let table = self.editor().snapshot().table(written.table).expect("the table is there");
        let shown = 0..written.schema.shown().len();
        written.check_nulls(row, shown)?;
        for check in &table.rules().checks {
            if let Some(fault) = check.fault(row) {
                let error = CommitError::new(CommitProblem::CheckFailed(fault));
                return Err(refusal(&error.in_table(&written.schema.name)));
            }
        }
        Ok(())
    }

    /// The row that has values which a new row has too.
    fn existing(&mut self, written: &Written<'_>, arbiters: &[Arbiter], row: &Row) -> Option<Row> {
        let snapshot = self.editor().snapshot();
        arbiters.iter().find_map(|arbiter| {
            let key = correlation_key(row, &arbiter.columns)?;
            constraint::first(snapshot, written.table, &arbiter.access, &key).cloned()
        })
    }

    fn update_existing(
        &mut self,
        written: &mut Written<'_>,
        existing: &Row,
        row: &Row,
        set: &[(usize, Scalar)],
        filter: Option<&Condition>,
        own: &mut HashSet<KeyBytes>,
    ) -> Result<()> {
        let old_key = row_key(existing, &written.schema.primary_key);
        let both = Row::encode(existing.cells().chain(row.cells()));
        if own.contains(&old_key) {
            let message =
                "on conflict do update cannot affect a row a second time; two of the new rows are alike";
            return Err(QueryError::new(QueryErrorKind::QueryFaulted, message));
        }
        if let Some(filter) = filter
            && filter.test(&both, &NoExists).map_err(failed)? != Some(true)
        {
            return Ok(());
        }
        let mut values: Vec<(usize, Value)> = Vec::with_capacity(set.len());
        for (column, scalar) in set {
            values.push((*column, scalar.value(&both, &NoExists).map_err(failed)?.as_ref().to_value()));
        }
        let new = with(existing, values);
        let key = written.checked_key(&new)?;
        if key != old_key {
            self.editor().set(written.table, &old_key, None);
            written.moved.insert((written.table, old_key.clone()), new.clone());
        }
        if self.editor().set(written.table, &key, Some(new.clone())).is_some() && key != old_key {
            return Err(refusal(&key_taken(&written.schema, &new)));
        }
        own.insert(key);
        written.note(new);
        self.look(written)
    }

    /// Updates rows: those that keep their keys first, then those that get others, so that keys may be exchanged.
    fn update(
        &mut self,
        written: &mut Written<'_>,
        rows: &[Row],
        set: &[usize],
        first_value: usize,
    ) -> Result<()> {
        let width = written.schema.columns.len();
        let mut seen = HashSet::new();
        let mut arriving: Vec<(KeyBytes, Row)> = Vec::new();
        for row in rows {
            let old_key = row_key(row, &written.schema.primary_key);
            // Joined with several rows of other tables, a row is updated once.
            if !seen.insert(old_key.clone()) {
                continue;
            }
            let values =
                set.iter().enumerate().map(|(at, column)| (*column, row.cell(first_value + at).to_value()));
            let new = with(&cells(row, 0..width), values.collect());
            let key = written.checked_key(&new)?;
            if written.returning.is_some() {
                written
                    .shown
                    .push(Row::encode(new.cells().chain((width..first_value).map(|at| row.cell(at)))));
            }
            written.affected += 1;
            if key == old_key {
                self.editor().set(written.table, &key, Some(new));
            } else {
                self.editor().set(written.table, &old_key, None);
                written.moved.insert((written.table, old_key), new.clone());
                arriving.push((key, new));
            }
            self.look(written)?;
        }
        for (key, new) in arriving {
            if self.editor().set(written.table, &key, Some(new.clone())).is_some() {
                return Err(refusal(&key_taken(&written.schema, &new)));
            }
        }
        Ok(())
    }

    /// Looks at the limits now and then.
    fn look(&mut self, written: &Written<'_>) -> Result<()> {
        if self.editor().len().is_multiple_of(ROWS_PER_LOOK) { self.check_size(written.mark) } else { Ok(()) }
    }
}

impl Written<'_> {
    /// A row is written.
    fn note(&mut self, row: Row) {
        self.affected += 1;
        if self.returning.is_some() {
            self.shown.push(row);
        }
    }

    fn check_nulls(&self, row: &Row, mut columns: std::ops::Range<usize>) -> Result<()> {
        let is_null = |column: &usize| !self.schema.columns[*column].nullable && row.cell(*column).is_null();
        match columns.find(is_null) {
            Some(column) => Err(refusal(&null_in(&self.schema, row, column))),
            None => Ok(()),
        }
    }

    /// The key of a row that may be written, as far as it tells by itself.
    fn checked_key(&self, row: &Row) -> Result<KeyBytes> {
        self.check_nulls(row, 0..self.schema.columns.len())?;
        let key = row_key(row, &self.schema.primary_key);
        let refuse = |problem| Err(refusal(&CommitError::new(problem).in_table(&self.schema.name)));
        let (bytes, bytes_max) = (row.as_bytes().len(), self.limits.row_bytes_max);
        if bytes > bytes_max {
            return refuse(CommitProblem::RowTooLarge { bytes, bytes_max });
        }
        let (bytes, bytes_max) = (key.len(), self.limits.key_bytes_max);
        if bytes > bytes_max {
            return refuse(CommitProblem::KeyTooLarge { bytes, bytes_max });
        }
        // Documents that are given are bounded where they are read; these may be made by aggregates.
        for (column, cell) in self.schema.columns.iter().zip(row.cells()) {
            if let ValueRef::Json(text) = cell
                && json_levels(text.as_bytes()) > DOCUMENT_LEVELS_MAX
            {
                let ValueError { expected, found } = ValueError::too_deep(&text);
                let error = CommitError::new(CommitProblem::TypeMismatch { expected, found });
                return Err(refusal(&error.in_table(&self.schema.name).of_column(&column.name)));
            }
        }
        Ok(key)
    }
}

/// A row with other values in some columns.
fn with(row: &Row, values: Vec<(usize, Value)>) -> Row {
    let mut all: Vec<Value> = row.cells().map(|cell| cell.to_value()).collect();
    for (column, value) in values {
        all[column] = value;
    }
    Row::from_values(&all)
}

fn cells(row: &Row, columns: std::ops::Range<usize>) -> Row {
    Row::encode(columns.map(|column| row.cell(column)))
}

fn evaluated(scalars: &[Scalar], row: &Row) -> Result<Row> {
    let values = scalars
        .iter()
        .map(|scalar| scalar.value(row, &NoExists).map(|computed| computed.as_ref().to_value()))
        .collect::<std::result::Result<Vec<Value>, EvalError>>();
    Ok(Row::from_values(&values.map_err(failed)?))
}

fn failed(error: EvalError) -> QueryError {
    QueryError::new(QueryErrorKind::QueryFaulted, error.to_string())
}

/// What `returning` shows.
fn table(returning: &Returning, rows: &[Row]) -> Result<Table> {
    let rows = rows.iter().map(|row| {
        let shown = evaluated(&returning.scalars, row)?;
        Ok(shown.cells().map(|cell| cell.to_json()).collect())
    });
    Ok(Table { columns: returning.columns.clone(), rows: rows.collect::<Result<_>>()? })
}
