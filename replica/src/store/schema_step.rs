//! Changes of tables: what the log holds of them, and what they do to a snapshot.
//!
//! A table's id stands for its columns as they are: a table whose columns or name change ends, and another begins that
//! has its rows. So whatever was resolved against the older columns names a table that is there no longer, and can
//! never be taken for being about the newer ones. Constraints and indexes are looked at when a row is written, and come
//! and go without the table ending.

use super::{
    CommitError, CommitProblem, Relation, Snapshot, TableId, ViewDefinition, apply::key_text, key::row_key,
    tree::Tree,
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_wire::model::{Row, TableSchema, Value};

/// One change. Everything in it is decided, so that a replay needs no rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaStep {
    /// A table begins, without rows.
    Create {
        /// Its schema.
        schema: TableSchema,
    },
    /// A table ends.
    Drop {
        /// The table.
        table: TableId,
    },
    /// A table ends, and another begins with its rows.
    Replace {
        /// The one that ends.
        table: TableId,
        /// The schema of the one that begins.
        schema: TableSchema,
        /// Where each of its columns comes from.
        cells: Vec<CellSource>,
    },
    /// A table's constraints and indexes change. Columns, key and name do not.
    Amend {
        /// The table.
        table: TableId,
        /// Its schema from now on.
        schema: TableSchema,
    },
    /// A materialized view begins.
    CreateView {
        /// What it shows.
        view: ViewDefinition,
    },
    /// A materialized view ends.
    DropView {
        /// Its name.
        name: String,
    },
}

/// Where a column of a table that replaces another comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellSource {
    /// A column of the other.
    Column(usize),
    /// One value for all rows, in the JSON form of its type.
    Value(Json),
    /// Numbers from 1, in the order of the other's primary key.
    RowId,
}

impl SchemaStep {
    /// Does it; gives the table that ended, and the one that began or changed.
    ///
    /// # Errors
    /// When it does not fit the tables there are, or two rows would have one key.
    pub(super) fn apply(&self, snapshot: &mut Snapshot) -> Result<Done, CommitError> {
        let done = match self {
            Self::Create { schema } => Done {
                ended: None,
                table: Some(snapshot.push_table(|id| Relation::new(id, Arc::new(schema.clone())))),
            },
            Self::Drop { table } => {
                snapshot.take_table(*table).ok_or(CommitProblem::TableChanged)?;
                Done { ended: Some(*table), table: None }
            }
            Self::Replace { table, schema, cells } => {
                let old = snapshot.take_table(*table).ok_or(CommitProblem::TableChanged)?;
                let rows = rows(&old, schema, cells)?;
                let schema = Arc::new(schema.clone());
                let last_row_id =
                    if schema.rules.row_id { old.last_row_id().max(rows.len() as i64) } else { 0 };
                let new = snapshot.push_table(|id| Relation::with_rows(id, schema, rows, last_row_id));
                Done { ended: Some(*table), table: Some(new) }
            }
            Self::Amend { table, schema } => {
                let old = snapshot.take_table(*table).ok_or(CommitProblem::TableChanged)?;
                let rows = old.rows().clone();
                let new = Relation::with_rows(*table, Arc::new(schema.clone()), rows, old.last_row_id());
                snapshot.put_table(*table, new.with_indexes_of(&old));
                Done { ended: None, table: Some(*table) }
            }
            Self::CreateView { view } => {
                snapshot.views_mut().create(view.clone());
                return Ok(Done { ended: None, table: None });
            }
            Self::DropView { name } => {
                let gone = snapshot.views_mut().take(name).ok_or(CommitProblem::TableChanged)?;
                return Ok(Done { ended: gone.rows.map(|rows| rows.id), table: None });
            }
        };
        snapshot.renew_catalog();
        Ok(done)
    }
}

/// What a step did.
pub(super) struct Done {
    /// The table that ended.
    pub(super) ended: Option<TableId>,
    /// The table that began or changed.
    pub(super) table: Option<TableId>,
}

fn rows(old: &Relation, schema: &TableSchema, cells: &[CellSource]) -> Result<Tree<Row>, CommitError> {
    let same_columns = cells.len() == old.schema().columns.len()
        && cells.iter().enumerate().all(|(at, cell)| *cell == CellSource::Column(at));
    if same_columns && schema.primary_key == old.schema().primary_key {
        return Ok(old.rows().clone());
    }
    let constants: Vec<Value> = cells
        .iter()
        .zip(&schema.columns)
        .map(|(cell, column)| match cell {
            CellSource::Value(json) => Value::from_json(column.ty, json).unwrap_or(Value::Null),
            _ => Value::Null,
        })
        .collect();
    let mut rows = Tree::new();
    for (number, (_, row)) in old.rows().iter().enumerate() {
        let number = Value::Int8(number as i64 + 1);
        let row = Row::encode(cells.iter().zip(&constants).map(|(cell, constant)| match cell {
            CellSource::Column(column) => row.cell(*column),
            CellSource::Value(_) => constant.as_ref(),
            CellSource::RowId => number.as_ref(),
        }));
        let key = row_key(&row, &schema.primary_key);
        if rows.insert(&key, row.clone()).is_some() {
            let key = key_text(schema, schema.primary_key.iter().map(|&column| row.cell(column)));
            let rule = schema.key_constraint().into_owned();
            return Err(CommitError::new(CommitProblem::NotUnique { rule })
                .in_table(&schema.name)
                .of_key(&key));
        }
    }
    Ok(rows)
}
