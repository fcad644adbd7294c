//! Texts bound against a small database: what they mean, and why they are refused.

mod show;

use super::bind;
use crate::{
    algebra::Select,
    query::{Parameters, QueryError},
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

#[test]
fn probe() {
    let file = std::fs::read_to_string("/tmp/probe.sql").unwrap_or_default();
    for line in file.lines().filter(|line| !line.trim().is_empty()) {
        let args =
            json!({"p": 7, "q": "x", "list": [1, 2], "none": null, "obj": {"a": 1}, "a.b": 1, "frac": 1.5});
        match bind_with(line, args, None) {
            Ok(select) => println!("{line}\n   {}", show::select(&select)),
            Err(error) => println!("{line}\n   ! {:?}: {error}", error.kind),
        }
    }
}
