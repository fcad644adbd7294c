//! What there is: tables and columns.

use super::Table;
use crate::{query::QueryError, sql::statement::table, store::Snapshot};
use serde_json::{Value as Json, json};
use sqlparser::ast::ObjectName;
use tidegate_wire::model::ColumnType;

/// `show tables`: names and numbers of rows, by name.
pub(super) fn tables(snapshot: &Snapshot) -> Table {
    let mut rows: Vec<(&str, usize)> =
        snapshot.tables().map(|(_, table)| (table.schema().name.as_str(), table.rows().len())).collect();
    rows.sort_unstable();
    Table {
        columns: vec![("name".to_owned(), ColumnType::Text), ("rows".to_owned(), ColumnType::Int8)],
        rows: rows.into_iter().map(|(name, rows)| vec![json!(name), json!(rows)]).collect(),
    }
}

/// `show columns from` a table: names, types, whether NULL is allowed, defaults, and places in the primary key.
pub(super) fn columns(name: &ObjectName, snapshot: &Snapshot) -> Result<Table, QueryError> {
    let id = table(name, snapshot)?;
    let schema = snapshot.table(id).expect("a name means a table that is there").schema();
    let text = ColumnType::Text;
    let heads = [
        ("name", text),
        ("type", text),
        ("nullable", ColumnType::Bool),
        ("default", ColumnType::Json),
        ("key", ColumnType::Int8),
    ];
    let rows = schema.shown().iter().enumerate().map(|(at, column)| {
        let ty = match column.precision {
            Some((precision, scale)) => format!("{}({precision},{scale})", column.ty),
            None => column.ty.to_string(),
        };
        let key =
            schema.primary_key.iter().position(|&key| key == at).map_or(Json::Null, |key| json!(key + 1));
        let default = column.default.clone().unwrap_or(Json::Null);
        vec![json!(column.name), json!(ty), json!(column.nullable), default, key]
    });
    Ok(Table {
        columns: heads.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect(),
        rows: rows.collect(),
    })
}
