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

fn bind_with(text: &str, args: Json, declared: Option<&BTreeMap<String, ColumnType>>) -> Result<Select, QueryError> {
    let Json::Object(args) = args else { panic!("args are an object") };
    let claims: Map<String, Json> = [("sub".to_owned(), json!("ann"))].into_iter().collect();
    bind(text, &snapshot(), &Parameters { args: &args, claims: &claims, declared })
}


#[test]
fn probe() {
    let file = std::fs::read_to_string("/tmp/probe.sql").unwrap_or_default();
    for line in file.lines().filter(|line| !line.trim().is_empty()) {
        let text = line; let args = json!({"p": 7, "q": "x", "list": [1, 2], "none": null, "obj": {"a": 1}, "a.b": 1, "frac": 1.5});
        match bind_with(text, args, None) {
            Ok(select) => println!("{line}\n   {}", show::select(&select)),
            Err(error) => println!("{line}\n   ! {:?}: {error}", error.kind),
        }
    }
}

#[test]
fn deep() {
    let nested = |levels: usize| {
        let mut text = "select id from t".to_owned();
        for _ in 0..levels {
            text = format!("select id from t where id in ({text})");
        }
        text
    };
    let derived = |levels: usize| {
        let mut text = "select id from t".to_owned();
        for level in 0..levels {
            text = format!("select id from ({text}) d{level}");
        }
        text
    };
    let time = std::time::Instant::now();
    let show = |what: &str, result: Result<Select, QueryError>| {
        println!("{what}: {:?} {:?}", result.map(|_| ()).map_err(|e| e.to_string()), time.elapsed());
    };
    for levels in [64, 65, 200, 1000] {
        show(&format!("nested {levels}"), bind_with(&nested(levels), json!({}), None));
        show(&format!("derived {levels}"), bind_with(&derived(levels), json!({}), None));
    }
    show("plus", bind_with(&format!("select 1{} as x", " + 1".repeat(49_000)), json!({}), None));
    show("plus100", bind_with(&format!("select 1{} as x", " + 1".repeat(100)), json!({}), None));
    show("minus", bind_with(&format!("select {}1 as x", "- ".repeat(90_000)), json!({}), None));
    show("not", bind_with(&format!("select {}true as x", "not ".repeat(90_000)), json!({}), None));
    show("cast", bind_with(&format!("select 1{} as x", "::int8".repeat(40_000)), json!({}), None));
    show("and", bind_with(&format!("select id from t where id = 1{}", " and id = 1".repeat(20_000)), json!({}), None));
    show("or", bind_with(&format!("select id from t where id = 1{}", " or id = 1".repeat(20_000)), json!({}), None));
    show("parens", bind_with(&format!("select {}1{} as x", "(".repeat(40_000), ")".repeat(40_000)), json!({}), None));
    show("parens100", bind_with(&format!("select {}1{} as x", "(".repeat(100), ")".repeat(100)), json!({}), None));
    show("union", bind_with(&format!("select id from t{}", " union all select id from t".repeat(15_000)), json!({}), None));
    show("union900", bind_with(&format!("select id from t{}", " union all select id from t".repeat(400)), json!({}), None));
    show("except400", bind_with(&format!("select id from t{}", " except select id from t".repeat(300)), json!({}), None));
    show("joins", bind_with(&format!("select 1 as x from t{}", (0..20_000).map(|i| format!(", t t{i}")).collect::<String>()), json!({}), None));
    show("case", bind_with(&format!("select {}1{} as x", "case when true then ".repeat(20_000), " end".repeat(20_000)), json!({}), None));
    show("between", bind_with(&format!("select ok {} as x from t", " between true and true".repeat(100)), json!({}), None));
    show("between", bind_with(&format!("select {}ok{} as x from t", "(".repeat(60), " between true and true)".repeat(60)), json!({}), None));
    show("in", bind_with(&format!("select id from t where id in (1{})", ",1".repeat(45_000)), json!({}), None));
    show("fn", bind_with(&format!("select {}b{} as x from t", "lower(".repeat(20_000), ")".repeat(20_000)), json!({}), None));
    show("setparen", bind_with(&format!("{}select 1 as x{}", "(".repeat(20_000), ")".repeat(20_000)), json!({}), None));
    show("fromparen", bind_with(&format!("select 1 as x from {}t{}", "(".repeat(20_000), ")".repeat(20_000)), json!({}), None));
    show("exists", bind_with(&format!("select 1 as x where {}true{}", "exists(select 1 where ".repeat(20_000), ")".repeat(20_000)), json!({}), None));
}
