//! Table schemas, as they stand at the head of a commit stream.

use super::{ColumnType, row::COLUMNS_MAX};
use crate::maps_only::maps_only;
use serde::{Deserialize, Serialize};

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
}

/// The JSON form, which names the key's columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct TableForm {
    name: String,
    columns: Vec<ColumnSchema>,
    primary_key: Vec<String>,
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
}

impl TableSchema {
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
        let TableForm { name, columns, primary_key } = form;
        if name.is_empty() {
            return Err(SchemaError::NoTableName);
        }
        if columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooManyColumns(name));
        }
        for (index, column) in columns.iter().enumerate() {
            if column.name.is_empty() {
                return Err(SchemaError::NoColumnName(name));
            }
            if columns[..index].iter().any(|other| other.name == column.name) {
                return Err(SchemaError::DuplicateColumn { table: name, column: column.name.clone() });
            }
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
        Ok(Self { name, columns, primary_key: key })
    }
}

impl From<TableSchema> for TableForm {
    fn from(schema: TableSchema) -> Self {
        let primary_key = schema.key_names().map(str::to_owned).collect();
        Self { name: schema.name, columns: schema.columns, primary_key }
    }
}

fn column_type<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ColumnType, D::Error> {
    use serde::de::Error as _;
    let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    ColumnType::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown type {name}")))
}
