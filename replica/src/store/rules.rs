//! A table's rules as writes meet them: names looked up, conditions bound. Made once for each version of a schema, and
//! shared by all snapshots.

use super::{IndexSpec, TableId};
use crate::{
    expr::{Condition, NoExists},
    query::shape::Access,
    sql,
};
use std::sync::Arc;
use tidegate_wire::model::{Direction, Order, Row, TableSchema};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Rules {
    /// What rows must satisfy.
    pub checks: Vec<CheckRule>,
    /// What may stand in one row only, beside the primary key.
    pub unique: Vec<UniqueRule>,
    /// The indexes that the table keeps for its rules and by its own wish.
    pub kept: Vec<Arc<IndexSpec>>,
}

/// A condition that no row may make false.
#[derive(Debug)]
pub struct CheckRule {
    /// Its name.
    pub name: String,
    /// The condition, or why it cannot be understood; then no row can be written.
    pub condition: Result<Condition, String>,
}

/// Columns whose values together occur once, NULLs apart.
#[derive(Clone, Debug)]
pub struct UniqueRule {
    /// Its name.
    pub name: String,
    /// The columns.
    pub columns: Vec<usize>,
    /// How rows with equal values are found.
    pub access: Access,
}

impl Rules {
    /// The rules of a table's schema.
    pub(super) fn new(table: TableId, schema: &TableSchema) -> Self {
        let rules = &schema.rules;
        let checks = rules.checks.iter().map(|check| CheckRule {
            name: check.name.clone(),
            condition: sql::check_condition(schema, check).map_err(|error| error.message),
        });
        let mut kept: Vec<Arc<IndexSpec>> = Vec::new();
        let mut keep = |access: Access| -> Access {
            let Access::Index(spec) = access else { return access };
            match kept.iter().find(|known| **known == spec) {
                Some(known) => Access::Index(Arc::clone(known)),
                None => {
                    kept.push(Arc::clone(&spec));
                    Access::Index(spec)
                }
            }
        };
        let unique = rules.unique.iter().map(|rule| {
            let columns = positions(schema, &rule.columns);
            let access = keep(access(table, schema, &columns));
            UniqueRule { name: rule.name.clone(), columns, access }
        });
        let unique = unique.collect();
        for rule in &rules.foreign_keys {
            keep(access(table, schema, &positions(schema, &rule.columns)));
        }
        for index in &rules.indexes {
            let columns = index.columns.iter().filter_map(|column| {
                let direction = if column.descending { Direction::Desc } else { Direction::Asc };
                let order = Order::with_default_nulls(direction);
                Some((schema.column(&column.name)?, order))
            });
            keep(Access::Index(Arc::new(IndexSpec { table, columns: columns.collect() })));
        }
        Self { checks: checks.collect(), unique, kept }
    }

    /// Whether there is nothing to look at when a row is written.
    pub(super) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.unique.is_empty()
    }
}

/// The positions of columns that are there.
pub(super) fn positions(schema: &TableSchema, names: &[String]) -> Vec<usize> {
    names.iter().filter_map(|name| schema.column(name)).collect()
}

/// How rows are found by the values of columns.
pub(super) fn access(table: TableId, schema: &TableSchema, columns: &[usize]) -> Access {
    if schema.primary_key.starts_with(columns) {
        return Access::Primary;
    }
    let columns = columns.iter().map(|&column| (column, Order::ASC)).collect();
    Access::Index(Arc::new(IndexSpec { table, columns }))
}

impl CheckRule {
    /// Why a row may not be written, if it may not.
    pub(crate) fn fault(&self, row: &Row) -> Option<String> {
        let condition = match &self.condition {
            Ok(condition) => condition,
            Err(problem) => {
                return Some(format!("check constraint {} cannot be evaluated: {problem}", self.name));
            }
        };
        match condition.test(row, &NoExists) {
            Ok(Some(false)) => Some(format!("the row makes check constraint {} false", self.name)),
            Ok(_) => None,
            Err(error) => Some(format!("check constraint {} cannot be evaluated: {error}", self.name)),
        }
    }
}
