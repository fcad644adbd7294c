//! Table schemas, as they stand at the head of a commit stream.

use super::{
    ColumnType, Value,
    row::COLUMNS_MAX,
    table_rules::{Check, ForeignKey, Index, ROW_ID, TableRules, Unique},
};
use crate::maps_only::maps_only;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ColumnSchema {
    /// Its name, unique in the table.
    pub name: String,
    /// Its type.
    #[serde(rename = "type", deserialize_with = "column_type")]
    pub ty: ColumnType,
    /// Whether it may hold NULL; key columns may not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
    /// What it holds in a new row that says nothing of it, in its type's JSON form; without one it holds NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// Of a numeric: how many digits there may be, and to how many after the point values are rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<(u32, i32)>,
}

impl ColumnSchema {
    /// A column without a default.
    #[must_use]
    pub fn plain(name: &str, ty: ColumnType, nullable: bool) -> Self {
        Self { name: name.to_owned(), ty, nullable, default: None, precision: None }
    }

    /// What the column holds in a new row that says nothing of it.
    #[must_use]
    pub fn default_value(&self) -> Value {
        // A schema is only made with defaults of the columns' types.
        let value = self.default.as_ref().map(|json| Value::from_json(self.ty, json));
        value.and_then(Result::ok).unwrap_or(Value::Null)
    }
}

/// One table. Columns are referred to by their index in `columns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TableForm", into = "TableForm")]
pub struct TableSchema {
    /// Its name, unique in the database.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<ColumnSchema>,
    /// Indices of the primary key's columns, in key order; never empty.
    pub primary_key: Vec<usize>,
    /// What it asks of its rows beyond that.
    pub rules: TableRules,
}

/// The JSON form, which names the key's columns and leaves out the one that numbers rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct TableForm {
    name: String,
    columns: Vec<ColumnSchema>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    primary_key: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    row_id: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary_key_name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unique: Vec<Unique>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    foreign_keys: Vec<ForeignKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<Index>,
}

maps_only!(ColumnSchema, TableForm);

/// Why a table cannot be as it is described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A table without a name.
    #[error("a table needs a name")]
    NoTableName,
    /// A column without a name.
    #[error("table {0} has a column without a name")]
    NoColumnName(String),
    /// More columns than a row can have.
    #[error("table {0} has more than {COLUMNS_MAX} columns")]
    TooManyColumns(String),
    /// Two columns of one name.
    #[error("table {table} has two columns named {column}")]
    DuplicateColumn {
        /// The table.
        table: String,
        /// The name that occurs twice.
        column: String,
    },
    /// No primary key.
    #[error("table {0} needs a primary key")]
    NoPrimaryKey(String),
    /// The key names a column that is not there, or names one twice.
    #[error(
        "the primary key of {table} names {column}, which is not one of its columns or stands there twice"
    )]
    BadKeyColumn {
        /// The table.
        table: String,
        /// The name at fault.
        column: String,
    },
    /// A nullable key column.
    #[error("column {column} of the primary key of {table} must not be nullable")]
    NullableKeyColumn {
        /// The table.
        table: String,
        /// The column at fault.
        column: String,
    },
    /// A default that is not of its column's type.
    #[error("the default of column {column} of {table}: {problem}")]
    BadDefault {
        /// The table.
        table: String,
        /// The column at fault.
        column: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A table that numbers its rows and has a primary key, or a column of the numbers' name.
    #[error("table {0} numbers its rows, so it has no primary_key and no column tidegate_row_id")]
    RowIdAndKey(String),
    /// A constraint or index that the table cannot have.
    #[error("{rule} of table {table} {problem}")]
    BadRule {
        /// The table.
        table: String,
        /// Its name.
        rule: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl TableSchema {
    /// A table that asks nothing of its rows beyond its columns' types.
    #[must_use]
    pub fn plain(name: &str, columns: Vec<ColumnSchema>, primary_key: Vec<usize>) -> Self {
        Self { name: name.to_owned(), columns, primary_key, rules: TableRules::default() }
    }

    /// The columns that people see: all but those that only number rows or tell them apart.
    #[must_use]
    pub fn shown(&self) -> &[ColumnSchema] {
        &self.columns[..self.columns.len() - usize::from(self.rules.row_id) - self.rules.hidden]
    }

    /// The primary key's name as a constraint.
    #[must_use]
    pub fn key_constraint(&self) -> Cow<'_, str> {
        match &self.rules.key_name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("{}_pkey", self.name)),
        }
    }

    /// The index of a column by name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names of the key's columns.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.primary_key.iter().map(|&column| self.columns[column].name.as_str())
    }
}

impl TryFrom<TableForm> for TableSchema {
    type Error = SchemaError;

    fn try_from(form: TableForm) -> Result<Self, SchemaError> {
        let TableForm {
            name,
            mut columns,
            primary_key,
            row_id,
            primary_key_name,
            unique,
            checks,
            foreign_keys,
            indexes,
        } = form;
        if name.is_empty() {
            return Err(SchemaError::NoTableName);
        }
        if columns.len() + usize::from(row_id) > COLUMNS_MAX {
            return Err(SchemaError::TooManyColumns(name));
        }
        for (index, column) in columns.iter().enumerate() {
            if column.name.is_empty() {
                return Err(SchemaError::NoColumnName(name));
            }
            if columns[..index].iter().any(|other| other.name == column.name) {
                return Err(SchemaError::DuplicateColumn { table: name, column: column.name.clone() });
            }
            if let Some(default) = &column.default
                && let Err(error) = Value::from_json(column.ty, default)
            {
                let (column, problem) = (column.name.clone(), error.to_string());
                return Err(SchemaError::BadDefault { table: name, column, problem });
            }
        }
        let mut primary_key = primary_key;
        if row_id {
            if !primary_key.is_empty() || columns.iter().any(|column| column.name == ROW_ID) {
                return Err(SchemaError::RowIdAndKey(name));
            }
            columns.push(ColumnSchema::plain(ROW_ID, ColumnType::Int8, false));
            primary_key.push(ROW_ID.to_owned());
        }
        if primary_key.is_empty() {
            return Err(SchemaError::NoPrimaryKey(name));
        }
        let mut key = Vec::with_capacity(primary_key.len());
        for column in primary_key {
            match columns.iter().position(|candidate| candidate.name == column) {
                Some(index) if !key.contains(&index) => {
                    if columns[index].nullable {
                        return Err(SchemaError::NullableKeyColumn { table: name, column });
                    }
                    key.push(index);
                }
                _ => return Err(SchemaError::BadKeyColumn { table: name, column }),
            }
        }
        let rules = TableRules {
            row_id,
            hidden: 0,
            key_name: primary_key_name,
            unique,
            checks,
            foreign_keys,
            indexes,
        };
        let schema = Self { name, columns, primary_key: key, rules };
        match schema.rules.fault(&schema) {
            Some((rule, problem)) => Err(SchemaError::BadRule { table: schema.name, rule, problem }),
            None => Ok(schema),
        }
    }
}

impl From<TableSchema> for TableForm {
    fn from(schema: TableSchema) -> Self {
        let row_id = schema.rules.row_id;
        let primary_key = if row_id { Vec::new() } else { schema.key_names().map(str::to_owned).collect() };
        let columns = schema.shown().to_vec();
        let TableRules { row_id: _, hidden: _, key_name, unique, checks, foreign_keys, indexes } =
            schema.rules;
        Self {
            name: schema.name,
            columns,
            primary_key,
            row_id,
            primary_key_name: key_name,
            unique,
            checks,
            foreign_keys,
            indexes,
        }
    }
}

fn column_type<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ColumnType, D::Error> {
    use serde::de::Error as _;
    let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    ColumnType::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown type {name}")))
}
