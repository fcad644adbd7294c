//! Texts bound against a small database: what they mean, and why they are refused.

mod expression;
mod from;
mod grouping;
mod limits;
mod name;
mod parameter;
mod refusal;
mod select;
mod set_operation;
mod show;
mod subquery;
mod window;

use super::bind;
use crate::{
    algebra::Select,
    query::{Parameters, QueryError, QueryErrorKind},
    store::{Snapshot, SnapshotEditor},
};
use serde_json::{Map, Value as Json, json};
use std::{collections::BTreeMap, sync::Arc};
use tidegate_wire::model::{ColumnType, Cv};

fn snapshot() -> Arc<Snapshot> {
    let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
    let tables = json!([
        {"name": "t", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "a", "type": "int8", "nullable": true},
            {"name": "b", "type": "text", "nullable": true}, {"name": "n", "type": "numeric", "nullable": true},
            {"name": "f", "type": "float8", "nullable": true}, {"name": "ok", "type": "bool", "nullable": true},
            {"name": "at", "type": "timestamptz", "nullable": true}]},
        {"name": "u", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "t_id", "type": "int8", "nullable": true},
            {"name": "c", "type": "text", "nullable": true}]},
        {"name": "Odd", "primary_key": ["Key"], "columns": [
            {"name": "Key", "type": "uuid"}, {"name": "doc", "type": "json", "nullable": true},
            {"name": "raw", "type": "bytea", "nullable": true}]},
    ]);
    let Json::Array(tables) = tables else { panic!("an array") };
    for table in tables {
        editor.create_table(serde_json::from_value(table).expect("a schema"));
    }
    editor.finish(Cv(1)).to
}

fn bind_with(
    text: &str,
    args: Json,
    declared: Option<&BTreeMap<String, ColumnType>>,
) -> Result<Select, QueryError> {
    let Json::Object(args) = args else { panic!("args are an object") };
    let claims: Map<String, Json> = [("sub".to_owned(), json!("ann"))].into_iter().collect();
    bind(text, &snapshot(), &Parameters { args: &args, claims: &claims, declared })
}

/// Binds with the arguments that the tests' texts use.
fn bound(text: &str) -> Result<Select, QueryError> {
    let args = json!({"p": 7, "q": "x", "list": [1, 2], "none": null, "a.b": 1, "frac": 1.5});
    bind_with(text, args, None)
}

/// Checks what texts mean.
fn means(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let shown = match bound(text) {
            Ok(select) => show::select(&select),
            Err(error) => format!("{:?}: {error}", error.kind),
        };
        assert_eq!(shown, *expected, "{text}");
    }
}

/// Checks that texts are refused, and how.
fn refused(cases: &[(&str, QueryErrorKind, &str)]) {
    for (text, kind, message) in cases {
        match bound(text) {
            Ok(select) => panic!("{text} is not refused: {}", show::select(&select)),
            Err(error) => assert_eq!((error.kind, error.message.as_str()), (*kind, *message), "{text}"),
        }
    }
}
