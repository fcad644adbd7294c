//! What there is: tables and columns.

use super::Table;
use crate::{
    handle::{NamedQuery, QuerySource, QueryStatus},
    query::QueryError,
    sql::statement::table,
    store::Snapshot,
};
use serde_json::{Value as Json, json};
use sqlparser::ast::ObjectName;
use tidegate_wire::model::ColumnType;

/// `show tables`: names and numbers of rows, by name.
pub(super) fn tables(snapshot: &Snapshot) -> Table {
    let mut rows: Vec<(&str, usize)> =
        snapshot.tables().map(|(_, table)| (table.schema().name.as_str(), table.rows().len())).collect();
    rows.sort_unstable();
    let rows = rows.into_iter().map(|(name, rows)| vec![json!(name), json!(rows)]);
    table_of(&[("name", ColumnType::Text), ("rows", ColumnType::Int8)], rows.collect())
}

/// `show views`: names, numbers of rows, whether the rows are kept, and definitions, in the order of creation.
pub(super) fn views(snapshot: &Snapshot) -> Table {
    let heads = [
        ("name", ColumnType::Text),
        ("rows", ColumnType::Int8),
        ("kept", ColumnType::Bool),
        ("definition", ColumnType::Text),
    ];
    let rows = snapshot.views().map(|view| {
        let rows = view.rows.as_ref().map_or(Json::Null, |rows| json!(rows.relation.rows().len()));
        vec![json!(view.definition.name), rows, json!(view.rows.is_some()), json!(view.definition.sql)]
    });
    table_of(&heads, rows.collect())
}

/// `show queries`: the named queries with their state, by name.
pub(super) fn queries(queries: &[(NamedQuery, QueryStatus)]) -> Table {
    let heads = [
        ("name", ColumnType::Text),
        ("rows", ColumnType::Int8),
        ("bindings", ColumnType::Int8),
        ("subscribers", ColumnType::Int8),
        ("last_advance_us", ColumnType::Int8),
        ("pin", ColumnType::Bool),
        ("fault", ColumnType::Text),
        ("definition", ColumnType::Text),
    ];
    let rows = queries.iter().map(|(query, status)| {
        let definition = match &query.source {
            QuerySource::Query(query) => json!(query.to_string()),
            QuerySource::Sql(text) | QuerySource::Name(text) => json!(text),
        };
        vec![
            json!(query.name),
            json!(status.rows),
            json!(status.bindings),
            json!(status.subscribers),
            json!(status.last_advance_us),
            json!(query.pin),
            json!(status.fault),
            definition,
        ]
    });
    table_of(&heads, rows.collect())
}

/// Lines of text.
pub(super) fn lines(head: &str, lines: Vec<String>) -> Table {
    table_of(&[(head, ColumnType::Text)], lines.into_iter().map(|line| vec![json!(line)]).collect())
}

fn table_of(heads: &[(&str, ColumnType)], rows: Vec<Vec<Json>>) -> Table {
    Table { columns: heads.iter().map(|&(name, ty)| (name.to_owned(), ty)).collect(), rows }
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
    Ok(table_of(&heads, rows.collect()))
}
