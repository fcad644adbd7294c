//! Statements that change tables. Each is carried out on an editor step by step, so that what stands later in a
//! statement sees what stands before it.

mod alter;
mod column;
mod constraint;
mod create;
mod index;

use super::{
    Binder, bind,
    parse::Words,
    place::{Place, Result},
    scope::folded,
    statement::{DefineError, bare_name, place_of, written_table},
};
use crate::{
    query::{Parameters, QueryError, QueryErrorKind},
    store::{
        CellSource, CommitError, CommitProblem, KeyBytes, SchemaStep, Snapshot, SnapshotEditor, TableId,
        check_rules, constraint::check_table,
    },
    suggestion::{self, suggestion},
};
use serde_json::Map;
use sqlparser::ast::{self, Ident, ObjectName, ObjectType, Spanned, Statement};
use std::sync::Arc;
use tidegate_wire::model::TableSchema;

type Defined<T> = std::result::Result<T, DefineError>;

/// Whether a statement is one of those that change tables.
pub(super) fn defines(statement: &Statement) -> bool {
    !command(statement).is_empty()
}

/// What such a statement does, as its answer says; empty for others.
pub(super) fn command(statement: &Statement) -> &'static str {
    match statement {
        Statement::CreateTable(_) => "create table",
        Statement::AlterTable(_) => "alter table",
        Statement::CreateIndex(_) => "create index",
        Statement::Drop { object_type: ObjectType::Table, .. } => "drop table",
        Statement::Drop { object_type: ObjectType::Index, .. } => "drop index",
        Statement::Drop { object_type: ObjectType::MaterializedView, .. } => "drop materialized view",
        Statement::Truncate(_) => "truncate table",
        _ => "",
    }
}

/// Whether a change also takes away what depends on what goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dependents {
    /// It is refused when there is something.
    Kept,
    /// It does.
    Dropped,
}

/// Changes tables as a statement says.
pub(super) fn define(
    statement: &Statement,
    editor: &mut SnapshotEditor,
    parameters: &Parameters<'_>,
    words: &Words,
) -> Defined<()> {
    let place = place_of(statement, words);
    let numbers_itself =
        |(_, word): &&(Place, String)| matches!(word.as_str(), "autoincrement" | "auto_increment");
    if let Some((place, word)) = words.iter().find(numbers_itself) {
        place.unsupported(word)?;
    }
    let before = editor.snapshot().clone();
    let mut definer = Definer { editor, parameters, words };
    definer.carry_out(statement, place)?;
    // Of a table or view, or of a column.
    let text = statement.to_string().to_lowercase();
    let dependents = if text.ends_with(" cascade") { Dependents::Dropped } else { Dependents::Kept };
    definer.settle_views(&before, dependents)
}

impl Definer<'_> {
    fn carry_out(&mut self, statement: &Statement, place: Place) -> Defined<()> {
        match statement {
            Statement::CreateTable(create) => self.create_table(create, place),
            Statement::AlterTable(alter) => self.alter_table(alter, place),
            Statement::CreateIndex(create) => self.create_index(create, place),
            Statement::Drop { object_type: ObjectType::Table, if_exists, names, cascade, .. } => self
                .drop_tables(
                    names,
                    *if_exists,
                    if *cascade { Dependents::Dropped } else { Dependents::Kept },
                ),
            Statement::Drop { object_type: ObjectType::Index, if_exists, names, .. } => {
                names.iter().try_for_each(|name| self.drop_index(name, *if_exists))
            }
            Statement::Drop { object_type: ObjectType::MaterializedView, if_exists, names, .. } => {
                names.iter().try_for_each(|name| self.drop_view(name, *if_exists))
            }
            Statement::Truncate(truncate) => self.truncate(truncate, place),
            _ => Ok(place.unsupported("this statement")?),
        }
    }

    fn drop_view(&mut self, name: &ObjectName, if_exists: bool) -> Defined<()> {
        let bare = bare_name(name).filter(|name| self.snapshot().view(name).is_some());
        let Some(bare) = bare else {
            if if_exists {
                return Ok(());
            }
            let views = self.snapshot().views().map(|view| view.definition.name.as_str());
            let instead = suggestion(&name.to_string(), views);
            let message = format_args!("unknown materialized view {name}{instead}");
            return Err(Place::from(name.span()).error(QueryErrorKind::UnknownTable, message).into());
        };
        self.editor.step(SchemaStep::DropView { name: bare })?;
        Ok(())
    }

    /// Views that can no longer be computed over the tables as they are now: they go, or the change is refused.
    fn settle_views(&mut self, before: &Snapshot, dependents: Dependents) -> Defined<()> {
        let (args, claims) = (Map::new(), Map::new());
        let parameters = Parameters { args: &args, claims: &claims, declared: None };
        // Those that go may take others along, which come after them.
        let names: Vec<_> = self.snapshot().views().map(|view| Arc::clone(&view.definition)).collect();
        for view in names {
            let now = self.snapshot().with_views_by_definition();
            let Err(error) = bind(&view.sql, &now, &parameters) else { continue };
            if bind(&view.sql, &before.with_views_by_definition(), &parameters).is_err() {
                continue;
            }
            if dependents == Dependents::Kept {
                let message = format!(
                    "materialized view {} depends on it, whose select would be refused with \"{error}\"; drop the view \
                     first, or cascade the drop",
                    view.name
                );
                return Err(QueryError::new(QueryErrorKind::Conflict, message).into());
            }
            self.editor.step(SchemaStep::DropView { name: view.name.clone() })?;
        }
        Ok(())
    }
}

/// Carries a statement out.
struct Definer<'d> {
    editor: &'d mut SnapshotEditor,
    parameters: &'d Parameters<'d>,
    words: &'d Words,
}

impl Definer<'_> {
    fn snapshot(&self) -> &Snapshot {
        self.editor.snapshot()
    }

    fn schema(&self, table: TableId) -> Arc<TableSchema> {
        Arc::clone(self.snapshot().table(table).expect("a table that is there").schema())
    }

    fn binder(&self) -> Binder<'_> {
        Binder::new(self.editor.snapshot(), self.parameters, self.words)
    }

    /// Does a step, and sees that the rows and the tables around fit it.
    fn step(&mut self, step: SchemaStep) -> Defined<Option<TableId>> {
        let table = self.editor.step(step)?;
        if let Some(table) = table {
            check_rules(self.snapshot(), table)?;
            check_table(self.snapshot(), table)?;
        }
        Ok(table)
    }

    /// A table goes on with other columns, or without a constraint or index that queries may read by.
    fn replace(&mut self, table: TableId, schema: TableSchema, cells: Vec<CellSource>) -> Defined<TableId> {
        let table = self.step(SchemaStep::Replace { table, schema, cells })?;
        Ok(table.expect("a replaced table goes on"))
    }

    /// A table goes on without a constraint or index.
    fn without(&mut self, table: TableId, schema: TableSchema) -> Defined<TableId> {
        let cells = same_cells(&schema);
        self.replace(table, schema, cells)
    }

    /// The foreign keys of other tables that refer to one and do not find what they refer to there: they go, or the
    /// change is refused.
    fn settle_referrers(&mut self, name: &str, dependents: Dependents) -> Defined<()> {
        let lost: Vec<(TableId, TableSchema)> = self
            .snapshot()
            .tables()
            .filter_map(|(child, relation)| {
                let schema = relation.schema();
                let found = self.snapshot().references(child);
                let mut left = TableSchema::clone(schema);
                left.rules.foreign_keys.retain(|key| {
                    key.references != name || found.iter().any(|reference| reference.name == key.name)
                });
                (left.rules != schema.rules).then_some((child, left))
            })
            .collect();
        for (child, left) in lost {
            if dependents == Dependents::Kept {
                let whole = self.schema(child);
                let is_lost = |name: &str| !left.rules.foreign_keys.iter().any(|key| key.name == *name);
                let mut keys = whole.rules.foreign_keys.iter().map(|key| key.name.as_str());
                let rule = keys.find(|name| is_lost(name)).unwrap_or_default();
                return Err(depends(format!(
                    "foreign key {rule} of table {} depends on it; drop that first, or use cascade",
                    whole.name
                ))
                .in_table(name)
                .into());
            }
            self.without(child, left)?;
        }
        Ok(())
    }

    fn drop_tables(&mut self, names: &[ObjectName], if_exists: bool, dependents: Dependents) -> Defined<()> {
        let mut dropped = Vec::with_capacity(names.len());
        for name in names {
            match written_table(name, self.snapshot()) {
                Ok(table) => {
                    let name = self.schema(table).name.clone();
                    self.step(SchemaStep::Drop { table })?;
                    dropped.push(name);
                }
                Err(error) if if_exists && error.kind == QueryErrorKind::UnknownTable => {}
                Err(error) => return Err(error.into()),
            }
        }
        dropped.iter().try_for_each(|name| self.settle_referrers(name, dependents))
    }

    fn truncate(&mut self, truncate: &ast::Truncate, place: Place) -> Defined<()> {
        let ast::Truncate { table_names, partitions, table: _, if_exists, identity: _, cascade, on_cluster } =
            truncate;
        if partitions.is_some() || on_cluster.is_some() {
            place.unsupported("partition or on cluster")?;
        }
        let mut tables = Vec::with_capacity(table_names.len());
        for target in table_names {
            match written_table(&target.name, self.snapshot()) {
                Err(error) if *if_exists && error.kind == QueryErrorKind::UnknownTable => {}
                table => tables.push(table?),
            }
        }
        let cascades = matches!(cascade, Some(ast::CascadeOption::Cascade));
        let mut at = 0;
        while let Some(&table) = tables.get(at) {
            for reference in self.snapshot().referrers(table) {
                if tables.contains(&reference.child) {
                    continue;
                }
                if !cascades {
                    let child = self.schema(reference.child).name.clone();
                    let problem = format!(
                        "foreign key {} of table {child} refers to it; truncate both, or use cascade",
                        reference.name
                    );
                    return Err(depends(problem).in_table(&self.schema(table).name).into());
                }
                tables.push(reference.child);
            }
            at += 1;
        }
        tables.sort_unstable();
        tables.dedup();
        for table in tables {
            let rows = self.snapshot().table(table).map(|relation| {
                relation.rows().iter().map(|(key, _)| KeyBytes::from_slice(key)).collect::<Vec<_>>()
            });
            for key in rows.unwrap_or_default() {
                self.editor.set(table, &key, None);
            }
        }
        Ok(())
    }
}

/// The refusal of a change that something else stands on.
fn depends(problem: String) -> CommitError {
    CommitError::new(CommitProblem::Depended(problem))
}

/// Columns as they are.
fn same_cells(schema: &TableSchema) -> Vec<CellSource> {
    (0..schema.columns.len()).map(CellSource::Column).collect()
}

/// The name of a table or index that is to be made.
fn new_name(name: &ObjectName) -> Result<String> {
    match bare_name(name) {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Place::from(name.span()).unsupported("a schema other than public"),
    }
}

/// The refusal of a name that is taken.
fn taken<T>(what: &str, name: &str, place: Place) -> Result<T> {
    Err(place.error(QueryErrorKind::Conflict, format_args!("{what} {name} exists already")))
}

/// The position of a column that a statement names.
fn column_at(schema: &TableSchema, name: &Ident) -> std::result::Result<usize, QueryError> {
    let wanted = folded(name);
    schema.shown().iter().position(|column| column.name == wanted).ok_or_else(|| {
        let instead = suggestion::of_column(&wanted, schema);
        let message = format_args!("table {} has no column {wanted}{instead}", schema.name);
        Place::from(name.span).error(QueryErrorKind::UnknownColumn, message)
    })
}
