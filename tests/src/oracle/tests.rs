//! The semantics that are easy to get wrong, by hand.

use super::{Database, compare_results};
use serde_json::{Value, json};

/// `t(id, a int8, b text, f float8, at timestamptz)`, all but the key nullable, and `c(x, y, t int8, note text)` keyed
/// by x and y.
fn database() -> Database {
    let mut database = Database::from_stream_tables(&json!({"tables": [
        {"name": "t", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"},
            {"name": "a", "type": "int8", "nullable": true},
            {"name": "b", "type": "text", "nullable": true},
            {"name": "f", "type": "float8", "nullable": true},
            {"name": "at", "type": "timestamptz", "nullable": true}]},
        {"name": "c", "primary_key": ["x", "y"], "columns": [
            {"name": "x", "type": "int8"},
            {"name": "y", "type": "text"},
            {"name": "t", "type": "int8", "nullable": true},
            {"name": "note", "type": "text"}]}]}))
    .expect("tables");
    let commit = json!({"ops": [
        {"insert": "t", "row": {"id": 1, "a": 1, "b": "Éa", "f": "NaN", "at": "2013-02-04T05:00:00.5Z"}},
        {"insert": "t", "row": {"id": 2, "a": 1, "b": "éB", "f": 1.5}},
        {"insert": "t", "row": {"id": 3, "a": 2, "b": "x%", "f": "-Infinity"}},
        {"insert": "t", "row": {"id": 4, "b": "xy", "f": -0.0}},
        {"insert": "t", "row": {"id": 5}},
        {"insert": "t", "row": {"id": 9_007_199_254_740_993_i64, "a": 9_007_199_254_740_993_i64}},
        {"insert": "c", "row": {"x": 1, "y": "p", "t": 1, "note": "n1"}},
        {"insert": "c", "row": {"x": 1, "y": "q", "t": 1, "note": "n2"}},
        {"insert": "c", "row": {"x": 2, "y": "p", "t": null, "note": "n3"}},
        {"insert": "c", "row": {"x": 2, "y": "q", "t": 2, "note": "n4"}}]});
    database.apply(&commit).expect("sound rows");
    database
}

const BIG: i64 = 9_007_199_254_740_993;

/// The ids a query on `t` yields, in order.
fn ids(query: &Value) -> Vec<i64> {
    ids_with(query, &json!({}))
}

fn ids_with(query: &Value, args: &Value) -> Vec<i64> {
    let mut query = query.clone();
    query["table"] = json!("t");
    query["select"] = json!(["id"]);
    let rows = database().run(&query, args).unwrap_or_else(|error| panic!("{query}: {error}"));
    rows.as_array().expect("a list").iter().map(|row| row["id"].as_i64().expect("an id")).collect()
}

fn found(condition: &Value) -> Vec<i64> {
    ids(&json!({ "where": condition }))
}

fn code(query: &Value, args: &Value) -> &'static str {
    database().run(query, args).expect_err("an error").code
}

#[test]
fn null_is_neither_true_nor_false() {
    let equal = json!({"op": "=", "args": [{"col": "a"}, 1]});
    assert_eq!(found(&equal), [1, 2]);
    assert_eq!(found(&json!({"op": "not", "args": [equal]})), [3, BIG]);
    assert_eq!(found(&json!({"op": "or", "args": [equal, {"op": "not", "args": [equal]}]})), [1, 2, 3, BIG]);
    assert_eq!(found(&json!({"op": "=", "args": [{"col": "a"}, null]})), [0; 0]);
    assert_eq!(found(&json!({"op": "not", "args": [{"op": "and", "args": [null, false]}]})).len(), 6);
    assert_eq!(found(&json!({"op": "not", "args": [{"op": "and", "args": [null, true]}]})).len(), 0);
    assert_eq!(found(&json!({"op": "or", "args": [null, true]})).len(), 6);
    assert_eq!(found(&json!({"op": "is null", "args": [{"op": "+", "args": [{"col": "a"}, 1]}]})), [4, 5]);
    assert_eq!(found(&json!({"op": "is distinct from", "args": [{"col": "a"}, 1]})), [3, 4, 5, BIG]);
    assert_eq!(found(&json!({"op": "is distinct from", "args": [{"col": "a"}, null]})), [1, 2, 3, BIG]);
    // 5 between NULL and 1 is false whatever the NULL stands for.
    let between = json!({"op": "not", "args": [{"op": "between", "args": [5, {"col": "a"}, 1]}]});
    assert_eq!(found(&between).len(), 6);
}

#[test]
fn in_with_null_is_true_or_null() {
    assert_eq!(found(&json!({"op": "in", "args": [{"col": "a"}, 1, null]})), [1, 2]);
    assert_eq!(found(&json!({"op": "not", "args": [{"op": "in", "args": [{"col": "a"}, 1, null]}]})), [0; 0]);
    assert_eq!(found(&json!({"op": "not", "args": [{"op": "in", "args": [{"col": "a"}, 1]}]})), [3, BIG]);
    let listed = json!({"where": {"op": "in", "args": [{"col": "a"}, {"param": "p"}]}});
    assert_eq!(ids_with(&listed, &json!({"p": [2, null]})), [3]);
    assert_eq!(ids_with(&listed, &json!({"p": []})), [0; 0]);
    assert_eq!(ids_with(&listed, &json!({"p": 2})), [3]);
}

#[test]
fn order_places_nulls_and_breaks_ties_by_key() {
    assert_eq!(ids(&json!({"order_by": [["a", "asc"]]})), [1, 2, 3, BIG, 4, 5]);
    assert_eq!(ids(&json!({"order_by": [["a", "desc"]]})), [4, 5, BIG, 3, 1, 2]);
    assert_eq!(ids(&json!({"order_by": [["a", "desc", "nulls last"]]})), [BIG, 3, 1, 2, 4, 5]);
    assert_eq!(
        ids(&json!({"order_by": [["a", "asc", "nulls first"], ["id", "desc"]]})),
        [5, 4, 2, 1, 3, BIG]
    );
    assert_eq!(ids(&json!({"order_by": [["f", "asc"]]})), [3, 4, 2, 1, 5, BIG]);
    assert_eq!(ids(&json!({"order_by": [["a", "asc"]], "limit": 1})), [1]);
    assert_eq!(ids(&json!({"limit": 0})), [0; 0]);
}

#[test]
fn start_follows_the_order_nulls_included() {
    let from = |how: &str, values: Value| ids(&json!({"order_by": [["a", "desc"]], "start": {how: values}}));
    // The order is 4 5 (NULL), BIG, 3 (2), 1 2 (1).
    assert_eq!(from("after", json!({"a": null})), [BIG, 3, 1, 2]);
    assert_eq!(from("at", json!({"a": null})), [4, 5, BIG, 3, 1, 2]);
    assert_eq!(from("after", json!({"a": null, "id": 4})), [5, BIG, 3, 1, 2]);
    assert_eq!(from("after", json!({"a": 2})), [1, 2]);
    assert_eq!(from("at", json!({"a": 2})), [3, 1, 2]);
    assert_eq!(from("after", json!({"a": 1, "id": 1})), [2]);
    let last = json!({"order_by": [["a", "asc"]], "start": {"after": {"a": BIG}}});
    assert_eq!(ids(&last), [4, 5]);
    let error = json!({"table": "t", "order_by": [["a", "asc"]], "start": {"after": {"id": 1}}});
    assert_eq!(code(&error, &json!({})), "bad_query");
}

#[test]
fn numbers_text_and_moments_compare_as_in_postgres() {
    assert_eq!(found(&json!({"op": "=", "args": [{"col": "f"}, "NaN"]})), [1]);
    assert_eq!(found(&json!({"op": ">", "args": [{"col": "f"}, 1e300]})), [1]);
    assert_eq!(found(&json!({"op": "=", "args": [{"col": "f"}, 0]})), [4]);
    assert_eq!(found(&json!({"op": ">", "args": [{"col": "a"}, 1.5]})), [3, BIG]);
    assert_eq!(found(&json!({"op": "=", "args": [{"col": "id"}, BIG]})), [BIG]);
    assert_eq!(found(&json!({"op": "=", "args": [{"col": "id"}, BIG - 1]})), [0; 0]);
    assert_eq!(found(&json!({"op": "like", "args": [{"col": "b"}, "é%"]})), [2]);
    assert_eq!(found(&json!({"op": "ilike", "args": [{"col": "b"}, "é_"]})), [1, 2]);
    assert_eq!(found(&json!({"op": "like", "args": [{"col": "b"}, "x\\%"]})), [3]);
    assert_eq!(found(&json!({"op": ">", "args": [{"col": "b"}, "z"]})), [1, 2]);
    assert_eq!(found(&json!({"op": ">", "args": [{"col": "at"}, "2013-02-04T05:00:00.499999Z"]})), [1]);
    assert_eq!(
        found(
            &json!({"op": "=", "args": [{"op": "/", "args": [{"op": "-", "args": [{"col": "id"}]}, 2]}, -2]})
        ),
        [4, 5]
    );
    assert_eq!(
        found(
            &json!({"op": "=", "args": [{"op": "%", "args": [{"op": "-", "args": [{"col": "id"}]}, 2]}, -1]})
        ),
        [1, 3, 5, BIG]
    );
}

#[test]
fn exists_and_its_negation() {
    let exists = json!({"exists": {"query": {"table": "c"}, "on": [["a", "t"]]}});
    assert_eq!(found(&exists), [1, 2, 3]);
    // A NULL in the correlation matches nothing, so its row passes the negation: EXISTS is never NULL.
    assert_eq!(found(&json!({"op": "not", "args": [exists]})), [4, 5, BIG]);
    let nested = json!({"exists": {"on": [["id", "x"]], "query": {"table": "c", "where":
        {"op": "not", "args": [{"exists": {"on": [["x", "x"], ["y", "note"]], "query": {"table": "c"}}}]}}}});
    assert_eq!(found(&nested), [1, 2]);
    let limited = json!({"exists": {"query": {"table": "c", "limit": 0}, "on": [["a", "t"]]}});
    assert_eq!(found(&limited), [0; 0]);
}

#[test]
fn results_nest_with_their_own_order_limit_and_start() {
    let query = json!({"table": "t", "select": ["id"], "where": {"op": "<=", "args": [{"col": "id"}, 4]},
        "related": [
            {"as": "cs", "on": [["a", "t"]], "query": {"table": "c", "select": ["y"], "order_by": [["y", "desc"]], "limit": 1}},
            {"as": "first", "one": true, "on": [["id", "x"]], "query": {"table": "c", "select": ["note"],
                "order_by": [["y", "asc"]], "start": {"after": {"y": "p"}}}},
            {"as": "peers", "on": [["a", "a"]], "query": {"table": "t", "select": ["id"]}}]});
    let expected = json!([
        {"id": 1, "cs": [{"y": "q"}], "first": {"note": "n2"}, "peers": [{"id": 1}, {"id": 2}]},
        {"id": 2, "cs": [{"y": "q"}], "first": {"note": "n4"}, "peers": [{"id": 1}, {"id": 2}]},
        {"id": 3, "cs": [{"y": "q"}], "first": null, "peers": [{"id": 3}]},
        {"id": 4, "cs": [], "first": null, "peers": []}]);
    compare_results(&expected, &database().run(&query, &json!(null)).expect("a result")).expect("equal");
    let all = json!({"table": "t", "where": {"op": "=", "args": [{"col": "id"}, 1]}});
    let expected = json!([{"id": 1, "a": 1, "b": "Éa", "f": "NaN", "at": "2013-02-04T05:00:00.5Z"}]);
    compare_results(&expected, &database().run(&all, &json!(null)).expect("a result")).expect("equal");
}

#[test]
fn wrong_queries_have_their_codes() {
    let check = |query: Value, expected: &str| {
        assert_eq!(code(&query, &json!({"s": "x", "l": [1]})), expected, "{query}")
    };
    let filter = |condition: Value| json!({"table": "t", "where": condition});
    check(json!({"table": "nope"}), "unknown_table");
    check(json!({"table": "t", "select": ["nope"]}), "unknown_column");
    check(json!({"table": "t", "limit": -1}), "bad_query");
    check(json!({"table": "t", "frobnicate": 1}), "bad_query");
    check(json!({"table": "t", "select": ["a", "a"]}), "bad_query");
    check(filter(json!({"op": "frobnicate", "args": []})), "bad_query");
    check(filter(json!({"col": "a"})), "type_mismatch");
    check(filter(json!({"op": "=", "args": [{"col": "a"}, "x"]})), "type_mismatch");
    check(filter(json!({"op": "=", "args": [{"col": "a"}, {"param": "s"}]})), "bad_args");
    check(filter(json!({"op": "=", "args": [{"col": "a"}, {"param": "l"}]})), "bad_args");
    check(filter(json!({"op": "=", "args": [{"col": "a"}, {"param": "missing"}]})), "bad_args");
    check(
        filter(
            json!({"op": ">", "args": [{"op": "/", "args": [1, {"op": "-", "args": [{"col": "id"}, 1]}]}, 0]}),
        ),
        "query_faulted",
    );
    check(
        filter(json!({"op": ">", "args": [{"op": "*", "args": [{"col": "id"}, i64::MAX]}, 0]})),
        "query_faulted",
    );
    assert_eq!(code(&json!({"table": "t"}), &json!({"auth.sub": "me"})), "forbidden");
    let mine = json!({"table": "t", "where": {"op": "=", "args": [{"col": "b"}, {"param": "auth.sub"}]}});
    let rows = database().run_as(&mine, &json!(null), &json!({"sub": "xy"})).expect("a result");
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
}

#[test]
fn a_refused_commit_changes_nothing() {
    let cases = [
        ("conflict", json!({"insert": "t", "row": {"id": 1}})),
        ("conflict", json!({"update": "t", "key": {"id": 77}, "set": {"a": 1}})),
        ("conflict", json!({"delete": "c", "key": {"x": 1, "y": "z"}})),
        ("type_mismatch", json!({"insert": "t", "row": {"id": "1"}})),
        ("type_mismatch", json!({"insert": "t", "row": {"a": 1}})),
        ("type_mismatch", json!({"update": "c", "key": {"x": 1, "y": "p"}, "set": {"note": null}})),
        ("unknown_table", json!({"delete": "nope", "key": {"id": 1}})),
        ("unknown_column", json!({"update": "t", "key": {"id": 1}, "set": {"nope": 1}})),
        ("bad_message", json!({"update": "t", "key": {"id": 1}, "set": {"id": 1}})),
        ("bad_message", json!({"delete": "c", "key": {"x": 1}})),
        ("bad_message", json!({"upsert": "t", "row": {"id": 1}})),
    ];
    let before = database();
    let shown = |database: &Database| -> Vec<Value> {
        database.tables().iter().flat_map(|table| table.rows()).collect()
    };
    for (expected, op) in cases {
        let mut database = before.clone();
        let refusal = database.apply(&json!({"ops": [
            {"delete": "t", "key": {"id": 1}}, {"insert": "t", "row": {"id": 1, "a": 7}},
            {"update": "t", "key": {"id": 1}, "set": {"a": 8}}, {"insert": "t", "row": {"id": 100}}, op]}));
        let refusal = refusal.expect_err("a refusal");
        assert_eq!((refusal.code, refusal.op), (expected, Some(4)), "{op}");
        assert_eq!(shown(&database), shown(&before), "{op}");
    }
}
