//! One run of the statements of a transaction, each over what those before it wrote.

use super::{StatementAnswer, Table, refusal, show};
use crate::{
    algebra::Select,
    handle::{Inner, fresh::standing_rows},
    query::{Parameters, QueryError, QueryErrorKind, nest, resolve_select},
    sql::statement::{Bound, DefineError, Script, Statement},
    store::{CommitLimits, Snapshot, SnapshotEditor, TableId, Transaction},
};
use std::{collections::BTreeSet, sync::Arc, time::Instant};
use tidegate_wire::model::{Cv, Row};

/// See the module's description.
pub(super) struct Run<'r> {
    inner: &'r Inner,
    script: &'r Script,
    parameters: &'r Parameters<'r>,
    deadline: Instant,
    rows_left: usize,
    rows_max: usize,
    /// `None` once it is rolled back or finished.
    pub(super) editor: Option<SnapshotEditor>,
    from: Arc<Snapshot>,
    /// The tables that were read.
    read: BTreeSet<TableId>,
}

impl<'r> Run<'r> {
    pub(super) fn new(
        inner: &'r Inner,
        script: &'r Script,
        parameters: &'r Parameters<'r>,
        deadline: Instant,
        rows_left: usize,
        rows_max: usize,
    ) -> Self {
        let from = inner.store.snapshot();
        let editor = Some(SnapshotEditor::new(Arc::clone(&from)));
        Self { inner, script, parameters, deadline, rows_left, rows_max, editor, from, read: BTreeSet::new() }
    }

    /// The commit version that it runs at.
    pub(super) fn cv(&self) -> Cv {
        self.from.cv()
    }

    pub(super) fn limits(&self) -> CommitLimits {
        self.inner.limits()
    }

    pub(super) fn editor(&mut self) -> &mut SnapshotEditor {
        self.editor.as_mut().expect("nothing runs after rollback")
    }

    /// The tables as they are now.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.editor
            .as_ref()
            .filter(|editor| !editor.is_empty())
            // Views stand where they did before anything was written.
            .map_or_else(
                || Arc::clone(&self.from),
                |editor| Arc::new(editor.snapshot().with_views_by_definition()),
            )
    }

    /// What is to be committed; `None` when there is nothing.
    pub(super) fn finish(&mut self) -> Option<Transaction> {
        let editor = self.editor.take().filter(|editor| !editor.is_empty())?;
        let mut tables = std::mem::take(&mut self.read);
        for table in editor.written_tables() {
            tables.insert(table);
            for snapshot in [editor.origin(), editor.snapshot()] {
                tables.extend(snapshot.references(table).iter().map(|reference| reference.parent));
                tables.extend(snapshot.referrers(table).iter().map(|reference| reference.child));
            }
        }
        Some(Transaction { editor, tables: tables.into_iter().collect() })
    }

    /// Runs one statement.
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<StatementAnswer, QueryError> {
        let command = statement.command();
        let snapshot = self.snapshot();
        let shown = |rows: Table| StatementAnswer { command, rows: Some(rows), affected: None };
        match statement {
            Statement::Begin | Statement::Commit => {}
            Statement::Rollback => self.editor = None,
            Statement::CreateView(_) | Statement::RefreshView(_) => {
                let message = format!("{command} is not supported in a transaction");
                return Err(QueryError::new(QueryErrorKind::BadQuery, message));
            }
            Statement::ShowViews => return self.counted(shown(show::views(&snapshot))),
            Statement::ShowQueries => return self.counted(shown(show::queries(&self.inner.queries()))),
            Statement::ShowTables => return self.counted(shown(show::tables(&snapshot))),
            Statement::ShowColumns(name) => return self.counted(shown(show::columns(name, &snapshot)?)),
            Statement::Define(definition) => {
                let (script, parameters) = (self.script, self.parameters);
                let mark = self.editor().len();
                script.define(definition, self.editor(), parameters).map_err(|error| match error {
                    DefineError::Text(error) => error,
                    DefineError::Conflict(error) => refusal(&error),
                })?;
                self.check_size(mark)?;
            }
            Statement::Select(_) | Statement::Write(..) | Statement::Explain(..) => {
                match self.script.bind(statement, &snapshot, self.parameters)? {
                    Some(Bound::Select(select)) if matches!(statement, Statement::Explain(..)) => {
                        let resolved = resolve_select(&select, &snapshot)?;
                        let analyze = matches!(statement, Statement::Explain(_, true));
                        let lines = self.inner.explain(&resolved, &snapshot, analyze)?;
                        return self.counted(shown(show::lines("plan", lines)));
                    }
                    Some(Bound::Select(select)) => {
                        let table = self.select(&select, &snapshot)?;
                        return self.counted(shown(table));
                    }
                    Some(Bound::Write(write)) => {
                        let answer = self.write(&write, &snapshot, command)?;
                        return self.counted(answer);
                    }
                    None => {}
                }
            }
        }
        Ok(StatementAnswer { command, rows: None, affected: Some(0) })
    }

    fn select(&mut self, select: &Select, snapshot: &Arc<Snapshot>) -> Result<Table, QueryError> {
        let resolved = resolve_select(select, snapshot)?;
        self.read.extend(resolved.shape.tables());
        let standing = standing_rows(&resolved, snapshot, self.time_left()?)?;
        self.check_rows(standing.len())?;
        let output = &resolved.shape.output;
        let (layout, place) = (&output.layout.tables[0], &output.layout.places[0]);
        let columns = place.columns.iter().map(|&at| {
            let column = &layout.columns[at];
            (column.name.clone(), column.ty)
        });
        Ok(Table {
            columns: columns.collect(),
            rows: nest::flat(output, standing.iter().map(|row| &row.row)),
        })
    }

    /// The rows of a select, in order; what shows of them begins each.
    pub(super) fn rows(&mut self, select: &Select, snapshot: &Arc<Snapshot>) -> Result<Vec<Row>, QueryError> {
        let resolved = resolve_select(select, snapshot)?;
        self.read.extend(resolved.shape.tables());
        let standing = standing_rows(&resolved, snapshot, self.time_left()?)?;
        let rows = nest::ordered(&resolved.shape.output, standing.iter().map(|row| &row.row));
        Ok(rows.into_iter().cloned().collect())
    }

    /// Whether a statement may write as much as it has since a mark.
    pub(super) fn check_size(&mut self, mark: usize) -> Result<(), QueryError> {
        self.time_left()?;
        let (ops, ops_max) = (self.editor().len(), self.limits().ops_max);
        if ops > ops_max && ops > mark {
            return Err(refusal(&crate::store::CommitProblem::TooManyOps { ops, ops_max }.into()));
        }
        Ok(())
    }

    fn time_left(&self) -> Result<std::time::Duration, QueryError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let limit = self.inner.options.deadline.as_millis();
            let message =
                format!("it takes longer than {limit} ms (workers.deadline_ms); nothing of it is kept");
            return Err(QueryError::new(QueryErrorKind::QueryFaulted, message));
        }
        Ok(left)
    }

    fn check_rows(&self, rows: usize) -> Result<(), QueryError> {
        if rows <= self.rows_left {
            return Ok(());
        }
        let message = format!(
            "the answer has more than {} rows (limits.sql_rows_max); add a limit, or watch the query",
            self.rows_max
        );
        Err(QueryError::new(QueryErrorKind::BadQuery, message))
    }

    /// An answer whose rows count towards the limit.
    fn counted(&mut self, answer: StatementAnswer) -> Result<StatementAnswer, QueryError> {
        let rows = answer.rows.as_ref().map_or(0, |table| table.rows.len());
        self.check_rows(rows)?;
        self.rows_left -= rows;
        Ok(answer)
    }
}
