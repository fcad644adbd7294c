//! Parameters: the types they take, and those that are missing or wrong.

use super::{bind_with, show};
use crate::query::QueryErrorKind;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_wire::model::ColumnType;

fn shown(text: &str, args: Json, declared: &[(&str, ColumnType)]) -> String {
    let declared: BTreeMap<String, ColumnType> =
        declared.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect();
    match bind_with(text, args, Some(&declared)) {
        Ok(select) => show::select(&select),
        Err(error) => format!("{:?}: {error}", error.kind),
    }
}

#[test]
fn a_parameter_takes_the_type_of_the_column_it_meets() {
    let text = r#"select "Key" from "Odd" where doc = :doc and raw = :raw"#;
    let args = json!({"doc": {"a": [1]}, "raw": "AQI="});
    let expected = r#"Key -> project(filter(table2, and($1 = d0, $2 = d1)), [$0:uuid]) slots json {"a":[1]}, bytea "AQI=""#;
    assert_eq!(shown(text, args, &[]), expected);
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction() {
    let expected = "id -> project(filter(table0, $1 = d0), [$0:int8]) slots int8 3";
    assert_eq!(shown("select id from t where a = :p", json!({"p": 3.0}), &[]), expected);
}

#[test]
fn a_declared_type_holds_wherever_the_parameter_stands() {
    let declared = [("p", ColumnType::Numeric)];
    let expected = r#"id -> project(filter(table0, $1 = "3"), [$0:int8])"#;
    assert_eq!(shown("select id from t where a = :p", json!({"p": 3}), &declared), expected);
    let refused = shown("select id from t where a = :p", json!({"p": "three"}), &declared);
    assert!(refused.starts_with("BadArgs: parameter p: "), "{refused}");
}

#[test]
fn a_list_stands_for_its_members() {
    let expected = "id -> project(filter(table0, $1 in ()), [$0:int8])";
    assert_eq!(shown("select id from t where a in (:p)", json!({"p": []}), &[]), expected);
    let error = bind_with("select id from t where a in (:p)", json!({"p": [1, "x"]}), None);
    assert_eq!(error.map(|_| ()).map_err(|error| error.kind), Err(QueryErrorKind::BadArgs));
}

#[test]
fn a_claim_that_the_token_lacks_is_null() {
    let expected = "id -> project(filter(table0, unknown), [$0:int8])";
    assert_eq!(shown("select id from t where b = :auth.team", json!({"auth.team": "x"}), &[]), expected);
}

#[test]
fn a_cast_follows_a_parameter() {
    let expected = r#"x, y -> project(values(()), [7:int8, "2024-01-01":date])"#;
    let args = json!({"p": "7", "d": "2024-01-01"});
    assert_eq!(shown("select :p::int8 as x, :d::date as y", args, &[]), expected);
}

#[test]
fn texts_that_differ_in_lifted_constants_mean_the_same() {
    let relation = |a: i64, b: &str| {
        let args = json!({"a": a, "b": b});
        bind_with("select id from t where a = :a and b = :b and n > 1", args, None).map(|select| select.rel)
    };
    assert_eq!(relation(1, "x"), relation(2, "y"));
}
