//! What a table asks of its rows beyond its columns' types, and the indexes it keeps. All of it refers to columns by
//! name, so that columns may come and go without a rule changing that does not name them.

use super::TableSchema;
use crate::maps_only::maps_only;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the column that numbers the rows of a table without a primary key of its own.
pub const ROW_ID: &str = "tidegate_row_id";

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRules {
    /// Whether the table's last column numbers its rows and is its primary key. No `*` shows it.
    pub row_id: bool,
    /// How many of the last columns nothing shows, beyond that: those that tell the rows of a view apart.
    pub hidden: usize,
    /// The primary key's name as a constraint, where it is not the table's name with `_pkey`.
    pub key_name: Option<String>,
    /// Columns whose values together occur once, NULLs apart.
    pub unique: Vec<Unique>,
    /// Conditions that no row may make false.
    pub checks: Vec<Check>,
    /// Columns whose values, where none is NULL, occur in another table.
    pub foreign_keys: Vec<ForeignKey>,
    /// Indexes kept whether a query reads them or not.
    pub indexes: Vec<Index>,
}

/// See [`TableRules::unique`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Unique {
    /// Its name, unique in the table.
    pub name: String,
    /// The columns.
    pub columns: Vec<String>,
    /// Whether it was made as an index and not as a constraint: `drop index` takes it away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub index: bool,
}

/// See [`TableRules::checks`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Check {
    /// Its name, unique in the table.
    pub name: String,
    /// The condition, in SQL.
    pub expression: String,
    /// What columns the condition writes under a name that they have no longer are called now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
}

/// See [`TableRules::foreign_keys`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ForeignKey {
    /// Its name, unique in the table.
    pub name: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The table they refer to.
    pub references: String,
    /// That table's columns, in the order of `columns`: its primary key or unique.
    pub key: Vec<String>,
    /// What becomes of rows whose counterpart is deleted.
    #[serde(default, skip_serializing_if = "ReferentialAction::is_default")]
    pub on_delete: ReferentialAction,
    /// What becomes of rows whose counterpart gets another key.
    #[serde(default, skip_serializing_if = "ReferentialAction::is_default")]
    pub on_update: ReferentialAction,
}

/// What becomes of a row that refers to one that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferentialAction {
    /// The write is refused, unless another row has the key in the end.
    #[default]
    NoAction,
    /// The write is refused.
    Restrict,
    /// The row goes too, or gets the new key.
    Cascade,
    /// Its columns become NULL.
    SetNull,
    /// Its columns get their defaults.
    SetDefault,
}

impl ReferentialAction {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// See [`TableRules::indexes`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Index {
    /// Its name, unique in the database.
    pub name: String,
    /// The columns.
    pub columns: Vec<IndexColumn>,
}

/// One column of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct IndexColumn {
    /// Its name.
    pub name: String,
    /// Whether it descends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
}

maps_only!(Unique, Check, ForeignKey, Index, IndexColumn);

impl TableRules {
    /// The names of the rules, indexes among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let unique = self.unique.iter().map(|rule| &rule.name);
        let checks = self.checks.iter().map(|rule| &rule.name);
        let foreign = self.foreign_keys.iter().map(|rule| &rule.name);
        let indexes = self.indexes.iter().map(|index| &index.name);
        unique.chain(checks).chain(foreign).chain(indexes).map(String::as_str)
    }

    /// The first fault of the rules of a table: the rule's name and what is wrong with it. What needs other tables, or
    /// the meaning of a condition, is not looked at.
    pub(super) fn fault(&self, schema: &TableSchema) -> Option<(String, String)> {
        let foreign = self.foreign_keys.iter().map(|rule| (&rule.name, rule.columns.iter().collect()));
        let unique = self.unique.iter().map(|rule| (&rule.name, rule.columns.iter().collect()));
        let indexes = self.indexes.iter().map(|index| {
            (&index.name, index.columns.iter().map(|column| &column.name).collect::<Vec<&String>>())
        });
        for (name, columns) in unique.chain(foreign).chain(indexes) {
            if columns.is_empty() {
                return Some((name.clone(), "names no column".to_owned()));
            }
            for (at, column) in columns.iter().enumerate() {
                if schema.column(column).is_none() {
                    return Some((name.clone(), format!("names {column}, which is not one of its columns")));
                }
                if columns[..at].contains(column) {
                    return Some((name.clone(), format!("names {column} twice")));
                }
            }
        }
        if let Some(rule) = self.foreign_keys.iter().find(|rule| rule.columns.len() != rule.key.len()) {
            return Some((rule.name.clone(), "does not pair each column with one".to_owned()));
        }
        let key = schema.key_constraint();
        let mut names: Vec<&str> = self.names().chain([&*key]).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1] || pair[0].is_empty()) {
            return Some((pair[0].to_owned(), "has no name of its own".to_owned()));
        }
        None
    }
}
