//! Every refusal of resolving, with its kind and what its message names; and that both ways of parsing agree.

use super::*;
use crate::store::{CommitErrorKind, SnapshotEditor, system_tables};
use proptest::prelude::*;
use std::sync::Arc;
use tidegate_wire::model::commit::TablesLine;

fn snapshot() -> Arc<Snapshot> {
    let tables = br#"{"tables":[
        {"name":"items","primary_key":["id"],"columns":[{"name":"id","type":"int8"},{"name":"name","type":"text"},
            {"name":"n","type":"int8","nullable":true},{"name":"f","type":"float8","nullable":true},
            {"name":"t","type":"timestamptz","nullable":true},{"name":"d","type":"date","nullable":true},
            {"name":"u","type":"uuid","nullable":true},{"name":"m","type":"numeric","nullable":true},
            {"name":"j","type":"json","nullable":true},{"name":"b","type":"bytea","nullable":true},
            {"name":"ok","type":"bool","nullable":true}]},
        {"name":"pairs","primary_key":["b","a"],"columns":[{"name":"a","type":"int8"},{"name":"b","type":"text"},
            {"name":"c","type":"text"}]}]}"#;
    let line: TablesLine = serde_json::from_slice(tables).expect("tables");
    let base = system_tables::initial_snapshot();
    let cv = base.cv().next();
    let mut editor = SnapshotEditor::new(base);
    for schema in line.tables {
        editor.create_table(schema);
    }
    editor.finish(cv).to
}

fn limits() -> CommitLimits {
    CommitLimits { ops_max: 3, row_bytes_max: 200, key_bytes_max: 60 }
}

/// Parses both ways and requires that they agree.
fn parse_line(line: &str) -> Result<Draft, CommitError> {
    let snapshot = snapshot();
    let careful = Draft::parse_carefully(line.as_bytes(), &snapshot, &limits());
    let direct = parse::parse(line.as_bytes(), &snapshot, &limits());
    if let Some(direct) = &direct {
        assert_eq!(Ok(direct), careful.as_ref(), "{line}");
    }
    let parsed = Draft::parse(line.as_bytes(), &snapshot, &limits());
    assert_eq!(parsed, careful, "{line}");
    parsed
}

/// A refusal's kind, and texts that its message holds.
fn check(op: &str, kind: CommitErrorKind, named: &[&str]) {
    let fine = r#"{"delete":"items","key":{"id":9}}"#;
    let error = parse_line(&format!("{{\"ops\":[{fine},{op}]}}")).expect_err(op);
    assert_eq!(error.code(), kind, "{op}: {error}");
    let message = error.to_string();
    for text in named.iter().chain(&["ops[1]"]) {
        assert!(message.contains(text), "{op}: {message:?} lacks {text:?}");
    }
}

#[test]
fn refusals_name_operation_table_key_and_column() {
    use CommitErrorKind as Kind;
    let id = "key {\"id\":1}";
    check(r#"{"insert":"none","row":{"id":1}}"#, Kind::UnknownTable, &["table none", "known here: items"]);
    check(r#"{"insert":"itmes","row":{"id":1}}"#, Kind::UnknownTable, &["did you mean items?"]);
    check(r#"{"update":"none","key":{"id":1},"set":{}}"#, Kind::UnknownTable, &["table none", id]);
    check(
        r#"{"insert":"items","row":{"id":1,"name":"x","zz":1}}"#,
        Kind::UnknownColumn,
        &["table items", id, "column zz"],
    );
    check(
        r#"{"insert":"items","row":{"id":1,"nmae":"x"}}"#,
        Kind::UnknownColumn,
        &["table items", "column nmae", "did you mean name?"],
    );
    check(
        r#"{"update":"items","key":{"id":1},"set":{"zz":1}}"#,
        Kind::UnknownColumn,
        &["table items", id, "column zz"],
    );
    check(r#"{"delete":"items","key":{"id":1,"zz":2}}"#, Kind::UnknownColumn, &["table items", "column zz"]);
    check(
        r#"{"insert":"items","row":{"id":1,"name":5}}"#,
        Kind::TypeMismatch,
        &["table items", id, "column name", "text", "5"],
    );
    check(
        r#"{"insert":"items","row":{"id":1,"name":"x","n":1.5}}"#,
        Kind::TypeMismatch,
        &["column n", "int8"],
    );
    check(
        r#"{"insert":"items","row":{"id":1,"name":"x","t":"soon"}}"#,
        Kind::TypeMismatch,
        &["column t", "soon"],
    );
    check(
        r#"{"insert":"items","row":{"id":1}}"#,
        Kind::TypeMismatch,
        &["table items", id, "column name", "null"],
    );
    check(
        r#"{"insert":"items","row":{"name":"x"}}"#,
        Kind::TypeMismatch,
        &["table items", "column id", "null"],
    );
    check(
        r#"{"update":"items","key":{"id":1},"set":{"name":null}}"#,
        Kind::TypeMismatch,
        &[id, "column name", "null"],
    );
    check(
        r#"{"update":"items","key":{"id":"a"},"set":{}}"#,
        Kind::TypeMismatch,
        &["table items", "column id"],
    );
    check(r#"{"delete":"items","key":{"id":null}}"#, Kind::TypeMismatch, &["table items", "column id"]);
    check(
        r#"{"update":"items","key":{"id":1},"set":{"id":2}}"#,
        Kind::BadMessage,
        &["table items", id, "column id"],
    );
    check(
        r#"{"delete":"pairs","key":{"a":1}}"#,
        Kind::BadMessage,
        &["table pairs", "{\"a\":1}", "column b", "lacks"],
    );
    check(
        r#"{"delete":"pairs","key":{"a":1,"b":"x","c":"y"}}"#,
        Kind::BadMessage,
        &["table pairs", "column c", "not part"],
    );
    check(
        &format!(r#"{{"insert":"items","row":{{"id":1,"name":"{}"}}}}"#, "x".repeat(300)),
        Kind::BadMessage,
        &["table items", id, "200"],
    );
    check(
        &format!(r#"{{"delete":"pairs","key":{{"a":1,"b":"{}"}}}}"#, "x".repeat(70)),
        Kind::BadMessage,
        &["table pairs", "60"],
    );
    check(
        r#"{"insert":"tidegate_client_mutations","row":{"client_id":"c","last_mutation_id":1}}"#,
        Kind::Forbidden,
        &["tidegate_client_mutations"],
    );
    check(
        r#"{"delete":"tidegate_client_mutations","key":{"client_id":"c"}}"#,
        Kind::Forbidden,
        &["tidegate_client_mutations", "\"c\""],
    );
}

#[test]
fn lines_that_are_not_commits_are_bad_messages() {
    let op = r#"{"delete":"items","key":{"id":1}}"#;
    for line in [
        "",
        "[]",
        "{}",
        "{\"ops\":1}",
        "{\"ops\":[1]}",
        "{\"ops\":[{}]}",
        "{\"ops\":[]} x",
        "{\"ops\":[],\"ops\":[]}",
        "{\"ops\":[],\"more\":1}",
        "{\"at\":\"x\",\"ops\":[]}",
        r#"{"ops":[{"insert":"items"}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"name":"x"},"set":{}}]}"#,
        r#"{"ops":[{"delete":"items","key":{"id":1},"row":{}}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"name":"\ud800"}}]}"#,
        "{\"ops\":[{\"insert\":\"items\",\"row\":{\"id\":1e999,\"name\":\"x\"}}]}",
        &format!("{{\"ops\":[{op},{op},{op},{op}]}}"),
    ] {
        let error = parse_line(line).expect_err(line);
        assert_eq!(error.code(), CommitErrorKind::BadMessage, "{line}: {error}");
    }
    let error = Draft::parse(b"{\"ops\":[\xff]}", &snapshot(), &limits()).expect_err("not UTF-8");
    assert_eq!(error.code(), CommitErrorKind::BadMessage);
}

#[test]
fn well_formed_lines_take_the_direct_way_and_others_still_parse() {
    let direct = |line: &str| parse::parse(line.as_bytes(), &snapshot(), &limits()).is_some();
    for line in [
        r#"{"at":null,"ops":[]}"#,
        r#"{"at":5,"ops":[{"insert":"items","row":{"name":"é\n","id":1,"n":3.0,"f":1,"t":"2013-02-04T05:00:00Z","d":"2013-02-04"}}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"name":"","f":"NaN","m":"1.50","j":{"b":[1,null],"a":0},"b":"AAEC","ok":true}}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"name":"","m":1.5,"j":null,"u":"67e55044-10b1-426f-9247-bb680e5fe0c8"}}]}"#,
        r#"{"ops":[{"update":"pairs","key":{"a":1,"b":"x"},"set":{"c":"y"}},{"delete":"pairs","key":{"b":"x","a":1}}]}"#,
    ] {
        parse_line(line).expect(line);
        assert!(direct(line), "{line}");
    }
    for line in [
        r#"{"ops":[{"row":{"id":1,"name":"x"},"insert":"items"}]}"#,
        r#"{"ops":[{"update":"items","set":{"n":2},"key":{"id":1}}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"\u006eame":"x"}}]}"#,
        r#"{"ops":[{"insert":"items","row":{"id":1,"id":2,"name":"x"}}]}"#,
    ] {
        parse_line(line).expect(line);
        assert!(!direct(line), "{line}");
    }
}

#[test]
fn a_multi_column_key_is_encoded_in_key_order() {
    let line = r#"{"ops":[{"insert":"pairs","row":{"a":1,"b":"x","c":"y"}},{"delete":"pairs","key":{"a":1,"b":"x"}}]}"#;
    let draft = parse_line(line).expect("well-formed");
    let [DraftOp::Insert { key: inserted, .. }, DraftOp::Delete { key: deleted, key_values, .. }] =
        draft.ops.as_slice()
    else {
        panic!("an insert and a delete");
    };
    assert_eq!(inserted, deleted);
    assert_eq!(key_values.as_slice(), [Value::Text("x".into()), Value::Int8(1)]);
}

fn fragment() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec![
        "null",
        "true",
        "1",
        "-0",
        "2.0",
        "2.5",
        "1e30",
        "18446744073709551615",
        "\"x\"",
        "\"\\u0000\"",
        "\"NaN\"",
        "\"AAEC\"",
        "\"2013-02-04\"",
        "\"2013-02-04T05:00:00Z\"",
        "\"67e55044-10b1-426f-9247-bb680e5fe0c8\"",
        "\"1.50\"",
        "{\"a\":[1]}",
        "[]",
    ]);
    let name = prop::sample::select(vec![
        "id", "id", "name", "name", "id", "name", "n", "f", "t", "d", "u", "m", "j", "b", "ok", "a", "c",
        "zz",
    ]);
    let object = prop::collection::vec((name, scalar), 0..6).prop_map(|members| {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    });
    let part = prop_oneof![Just("row"), Just("key"), Just("set")];
    let table = prop::sample::select(vec![
        "items",
        "items",
        "pairs",
        "items",
        "pairs",
        "none",
        "tidegate_client_mutations",
    ]);
    let kind = prop_oneof![Just("insert"), Just("update"), Just("delete")];
    let usual = prop_oneof![
        (table.clone(), object.clone()).prop_map(|(t, o)| format!("{{\"insert\":\"{t}\",\"row\":{o}}}")),
        (table.clone(), object.clone()).prop_map(|(t, o)| format!("{{\"delete\":\"{t}\",\"key\":{o}}}")),
        (table.clone(), object.clone(), object.clone())
            .prop_map(|(t, k, s)| format!("{{\"update\":\"{t}\",\"key\":{k},\"set\":{s}}}")),
    ];
    let odd = (kind, table, prop::collection::vec((part, object), 0..3)).prop_map(|(kind, table, parts)| {
        let parts: Vec<_> = parts.iter().map(|(part, object)| format!(",\"{part}\":{object}")).collect();
        format!("{{\"{kind}\":\"{table}\"{}}}", parts.concat())
    });
    let op = prop_oneof![4 => usual, 1 => odd];
    prop::collection::vec(op, 0..4).prop_map(|ops| format!("{{\"ops\":[{}]}}", ops.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn both_ways_of_parsing_agree(line in fragment()) {
        let _ = parse_line(&line);
    }
}
