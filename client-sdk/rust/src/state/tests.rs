//! The state machine's rules, one by one.

use super::{
    Effect,
    script::{Script, changes, layout, sent, violation},
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tidegate_wire::model::{Cv, Layout};

/// `issues(id, title, rank)`, ordered by id.
fn issues() -> Layout {
    layout(json!({
        "tables": [{"name": "issues", "key": [0], "columns": [{"name": "id", "type": "int8"},
            {"name": "title", "type": "text"}, {"name": "rank", "type": "int8"}]}],
        "places": [{"parent": null, "as": null, "table": 0, "columns": [0, 1], "on": [],
            "order": [[0, "asc", "nulls last"]], "one": false}]}))
}

/// Issues with their comments and each comment's author (one).
fn nested() -> Layout {
    layout(json!({
        "tables": [
            {"name": "issues", "key": [0], "columns": [{"name": "id", "type": "int8"}]},
            {"name": "comments", "key": [0], "columns": [{"name": "id", "type": "int8"},
                {"name": "issue", "type": "int8"}, {"name": "author", "type": "text"}]},
            {"name": "users", "key": [0], "columns": [{"name": "name", "type": "text"},
                {"name": "mail", "type": "text"}]}],
        "places": [
            {"parent": null, "as": null, "table": 0, "columns": [0], "on": [],
                "order": [[0, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "comments", "table": 1, "columns": [0], "on": [[0, 1]],
                "order": [[0, "desc", "nulls first"]], "one": false},
            {"parent": 1, "as": "author", "table": 2, "columns": [1], "on": [[2, 0]],
                "order": [[0, "asc", "nulls last"]], "one": true}]}))
}

/// A subscription with a released snapshot, in epoch 1 at cv 10.
fn live(layout: &Layout, ops: Json) -> (Script, u64) {
    let mut script = Script::new();
    let sub = script.subscribe();
    script.subscribed(sub, 1, layout, false);
    script.batch(sub, 1, 0, 10, ops);
    script.progress(10);
    (script, sub)
}

#[test]
fn nothing_shows_before_progress() {
    let mut script = Script::new();
    let sub = script.subscribe();
    script.subscribed(sub, 1, &issues(), false);
    assert!(script.batch(sub, 1, 0, 10, json!([["+", 0, 1, [1, "a", null]]])).is_empty());
    assert_eq!(script.shown(sub), Json::Null);
    script.progress(9);
    assert_eq!(script.shown(sub), Json::Null);
    let effects = script.progress(10);
    let added = json!({"op": "add", "row": {"id": 1, "title": "a"}});
    assert_eq!(changes(effects), json!({"1": [added]}));
    assert_eq!(script.shown(sub), json!([{"id": 1, "title": "a"}]));
    assert_eq!(script.cv(), Cv(10));
}

#[test]
fn commit_is_atomic_for_a_client() {
    let mut script = Script::new();
    let (a, b) = (script.subscribe(), script.subscribe());
    for sub in [a, b] {
        script.subscribed(sub, sub, &issues(), false);
        script.batch(sub, sub, 0, 10, json!([["+", 0, 1, [1, "x", null]]]));
    }
    script.progress(10);
    // Both change in commit 11, one again in 12; several parts of one commit too.
    script.batch(a, a, 1, 11, json!([["~", 0, 1, [1, "y", null]]]));
    script.batch(a, a, 2, 11, json!([["+", 0, 1, [2, "y", null]]]));
    script.batch(a, a, 3, 12, json!([["-", 0, [2]]]));
    assert_eq!(script.shown(a), json!([{"id": 1, "title": "x"}]));
    script.batch(b, b, 1, 11, json!([["-", 0, [1]]]));
    let effects = script.progress(11);
    assert_eq!(
        changes(effects),
        json!({
            "1": [{"op": "edit", "row": {"id": 1, "title": "y"}}, {"op": "add", "row": {"id": 2, "title": "y"}}],
            "2": [{"op": "remove", "row": {"id": 1, "title": "x"}}]})
    );
    let removed = json!({"op": "remove", "row": {"id": 2, "title": "y"}});
    assert_eq!(changes(script.progress(12)), json!({"1": [removed]}));
}

#[test]
fn rows_are_kept_once_for_all_subscriptions() {
    let (mut script, a) = live(&issues(), json!([["+", 0, 1, [1, "x", null]], ["+", 0, 1, [2, "x", null]]]));
    let b = script.subscribe();
    script.subscribed(b, 2, &issues(), false);
    script.batch(b, 2, 0, 10, json!([["+", 0, 1, [2, "x", null]], ["+", 0, 1, [3, "x", null]]]));
    script.progress(10);
    assert_eq!(script.state.rows_held(), 3);
    // Another column set of the same table is kept apart.
    let c = script.subscribe();
    let mut narrow = issues();
    narrow.tables[0].columns.pop();
    script.subscribed(c, 3, &narrow, false);
    script.batch(c, 3, 0, 10, json!([["+", 0, 1, [2, "x"]]]));
    script.progress(10);
    assert_eq!(script.state.rows_held(), 4);
    script.state.unsubscribe(c.into_sub(), &mut Vec::new());
    script.state.unsubscribe(a.into_sub(), &mut Vec::new());
    assert_eq!(script.state.rows_held(), 2);
    assert_eq!(script.shown(b), json!([{"id": 2, "title": "x"}, {"id": 3, "title": "x"}]));
}

trait IntoSub {
    fn into_sub(self) -> tidegate_wire::model::SubId;
}

impl IntoSub for u64 {
    fn into_sub(self) -> tidegate_wire::model::SubId {
        tidegate_wire::model::SubId(self)
    }
}

#[test]
fn nested_rows_follow_their_parents() {
    let ops = json!([
        ["+", 0, 1, [1]],
        ["+", 0, 1, [2]],
        ["+", 0, 1, [3]],
        ["+", 1, 2, [10, 1, "ann"]],
        ["+", 1, 2, [11, 1, "bob"]],
        ["+", 1, 2, [12, 2, null]],
        ["+", 2, 4, ["ann", "a@x"]]
    ]);
    let (mut script, sub) = live(&nested(), ops);
    assert_eq!(
        script.shown(sub),
        json!([
            {"id": 1, "comments": [{"id": 11, "author": null}, {"id": 10, "author": {"mail": "a@x"}}]},
            {"id": 2, "comments": [{"id": 12, "author": null}]},
            {"id": 3, "comments": []}])
    );
    let before = script.rows(sub);
    // A comment moves to another issue, and its author's content changes in the same commit.
    script.batch(sub, 1, 1, 11, json!([["~", 1, 2, [10, 3, "ann"]], ["~", 2, 4, ["ann", "b@x"]]]));
    let effects = script.progress(11);
    let moved = json!({"id": 3, "comments": [{"id": 10, "author": {"mail": "b@x"}}]});
    let left = json!({"id": 1, "comments": [{"id": 11, "author": null}]});
    assert_eq!(changes(effects), json!({"1": [{"op": "edit", "row": left}, {"op": "edit", "row": moved}]}));
    // What did not change is the same node.
    let after = script.rows(sub);
    assert!(Arc::ptr_eq(before.get(1).expect("row"), after.get(1).expect("row")));
    assert!(!before.ptr_eq(&after));
    // The author comes to another comment, and a parent row leaves from above its children.
    script.batch(sub, 1, 2, 12, json!([["~", 1, 2, [11, 1, "ann"]], ["-", 0, [3]]]));
    script.progress(12);
    assert_eq!(
        script.shown(sub),
        json!([
            {"id": 1, "comments": [{"id": 11, "author": {"mail": "b@x"}}]},
            {"id": 2, "comments": [{"id": 12, "author": null}]}])
    );
    // The parent comes back and finds its child again.
    script.batch(sub, 1, 3, 13, json!([["+", 0, 1, [3]]]));
    script.progress(13);
    assert_eq!(script.shown(sub)[2], json!({"id": 3, "comments": [{"id": 10, "author": {"mail": "b@x"}}]}));
}

#[test]
fn one_row_stands_at_several_places_of_a_self_relation() {
    let layout = layout(json!({
        "tables": [{"name": "staff", "key": [0], "columns": [{"name": "id", "type": "int8"},
            {"name": "boss", "type": "int8"}]}],
        "places": [
            {"parent": null, "as": null, "table": 0, "columns": [0], "on": [],
                "order": [[0, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "boss", "table": 0, "columns": [0], "on": [[1, 0]],
                "order": [[0, "asc", "nulls last"]], "one": true},
            {"parent": 0, "as": "reports", "table": 0, "columns": [0], "on": [[0, 1]],
                "order": [[0, "asc", "nulls last"]], "one": false}]}));
    let ops = json!([["+", 0, 3, [1, null]], ["+", 0, 7, [2, 1]], ["+", 0, 4, [3, 2]]]);
    let (mut script, sub) = live(&layout, ops);
    assert_eq!(
        script.shown(sub),
        json!([{"id": 1, "boss": null, "reports": [{"id": 2}]},
            {"id": 2, "boss": {"id": 1}, "reports": [{"id": 3}]}])
    );
    // Only the places change: 3 joins the root, 1 leaves it and stays a boss.
    script.batch(sub, 1, 1, 11, json!([["~", 0, 5, [3, 2]], ["~", 0, 2, [1, null]]]));
    let effects = script.progress(11);
    let removed = json!({"op": "remove", "row": {"id": 1, "boss": null, "reports": [{"id": 2}]}});
    let added = json!({"op": "add", "row": {"id": 3, "boss": {"id": 2}, "reports": []}});
    assert_eq!(changes(effects), json!({"1": [removed, added]}));
    // A row that is its own boss.
    script.batch(sub, 1, 2, 12, json!([["~", 0, 7, [2, 2]]]));
    script.progress(12);
    assert_eq!(script.shown(sub)[0], json!({"id": 2, "boss": {"id": 2}, "reports": [{"id": 2}, {"id": 3}]}));
}

#[test]
fn orders_have_directions_nulls_ties_and_composite_keys() {
    let layout = layout(json!({
        "tables": [{"name": "t", "key": [1, 0], "columns": [{"name": "a", "type": "int8"},
            {"name": "b", "type": "text"}, {"name": "x", "type": "float8"}]}],
        "places": [{"parent": null, "as": null, "table": 0, "columns": [0, 1, 2], "on": [],
            "order": [[2, "desc", "nulls first"], [1, "asc", "nulls last"], [0, "desc", "nulls first"]],
            "one": false}]}));
    let ops = json!([
        ["+", 0, 1, [1, "p", 1.5]],
        ["+", 0, 1, [2, "p", 1.5]],
        ["+", 0, 1, [1, "o", 1.5]],
        ["+", 0, 1, [9, "z", null]],
        ["+", 0, 1, [5, "z", "NaN"]],
        ["+", 0, 1, [6, "z", -3]]
    ]);
    let (mut script, sub) = live(&layout, ops);
    let ids = |script: &Script| -> Vec<String> {
        script
            .rows(sub)
            .iter()
            .map(|n| format!("{}{}", n.to_json()["b"].as_str().expect("text"), n.to_json()["a"]))
            .collect()
    };
    assert_eq!(ids(&script), ["z9", "z5", "o1", "p2", "p1", "z6"]);
    // The key's columns come in key order.
    script.batch(sub, 1, 1, 11, json!([["-", 0, ["p", 2]], ["~", 0, 1, [6, "z", 1.5]]]));
    script.progress(11);
    assert_eq!(ids(&script), ["z9", "z5", "o1", "p1", "z6"]);
}

#[test]
fn correlation_compares_across_numeric_types_and_null_never_matches() {
    let layout = layout(json!({
        "tables": [{"name": "p", "key": [0], "columns": [{"name": "id", "type": "int8"},
                {"name": "n", "type": "int8"}]},
            {"name": "c", "key": [0], "columns": [{"name": "id", "type": "int8"},
                {"name": "x", "type": "float8"}]}],
        "places": [
            {"parent": null, "as": null, "table": 0, "columns": [0], "on": [],
                "order": [[0, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "c", "table": 1, "columns": [0], "on": [[1, 1]],
                "order": [[0, "asc", "nulls last"]], "one": false}]}));
    let big = 9_007_199_254_740_993_i64; // 2^53 + 1 has no double
    let ops = json!([
        ["+", 0, 1, [1, 0]],
        ["+", 0, 1, [2, null]],
        ["+", 0, 1, [3, big]],
        ["+", 0, 1, [4, big - 1]],
        ["+", 1, 2, [10, -0.0]],
        ["+", 1, 2, [11, null]],
        ["+", 1, 2, [12, 9_007_199_254_740_992.0]],
        ["+", 1, 2, [13, 0.5]]
    ]);
    let (script, sub) = live(&layout, ops);
    assert_eq!(
        script.shown(sub),
        json!([{"id": 1, "c": [{"id": 10}]}, {"id": 2, "c": []}, {"id": 3, "c": []},
            {"id": 4, "c": [{"id": 12}]}])
    );
}

#[test]
fn a_new_epoch_replaces_the_old_result_in_one_step() {
    let (mut script, sub) =
        live(&issues(), json!([["+", 0, 1, [1, "a", null]], ["+", 0, 1, [2, "b", null]]]));
    let kept = script.rows(sub);
    script.batch(sub, 1, 1, 11, json!([["-", 0, [2]]]));
    script.subscribed(sub, 2, &issues(), false);
    // The old epoch's frames still under way are passed over.
    assert!(script.batch(sub, 1, 2, 12, json!([["-", 0, [1]]])).is_empty());
    script.part(sub, 2, 0, 20, true, json!([["+", 0, 1, [1, "a", null]]]));
    script.progress(20);
    assert!(script.rows(sub).ptr_eq(&kept), "the old result stands until all parts are released");
    script.batch(sub, 2, 1, 20, json!([["+", 0, 1, [3, "c", null]]]));
    script.batch(sub, 2, 2, 21, json!([["~", 0, 1, [3, "d", null]]]));
    let effects = script.progress(20);
    let (removed, added) = (json!({"id": 2, "title": "b"}), json!({"id": 3, "title": "c"}));
    assert_eq!(
        changes(effects),
        json!({"1": [{"op": "remove", "row": removed}, {"op": "add", "row": added}]})
    );
    assert!(Arc::ptr_eq(script.rows(sub).get(0).expect("row"), kept.get(0).expect("row")));
    script.progress(21);
    assert_eq!(script.shown(sub), json!([{"id": 1, "title": "a"}, {"id": 3, "title": "d"}]));
}

#[test]
fn a_new_layout_replaces_the_old_one() {
    let (mut script, sub) =
        live(&issues(), json!([["+", 0, 1, [1, "a", null]], ["+", 0, 1, [2, "b", null]]]));
    let mut wider = issues();
    wider.places[0].columns.push(2);
    script.subscribed(sub, 2, &wider, false);
    script.batch(sub, 2, 0, 20, json!([["+", 0, 1, [1, "a", 5]]]));
    let effects = script.progress(20);
    let (removed, edited) = (json!({"id": 2, "title": "b"}), json!({"id": 1, "title": "a", "rank": 5}));
    assert_eq!(
        changes(effects),
        json!({"1": [{"op": "remove", "row": removed}, {"op": "edit", "row": edited}]})
    );
    assert_eq!(script.state.rows_held(), 1);
}

#[test]
fn everything_waits_for_a_subscription_that_catches_up() {
    let (mut script, a) = live(&issues(), json!([["+", 0, 1, [1, "a", null]]]));
    let b = script.subscribe();
    script.subscribed(b, 2, &issues(), false);
    script.batch(b, 2, 0, 10, json!([]));
    script.progress(10);
    script.subscribed(b, 3, &issues(), false);
    script.batch(a, 1, 1, 11, json!([["-", 0, [1]]]));
    assert!(script.progress(11).is_empty(), "the new snapshot of the other subscription is awaited");
    assert_eq!(script.shown(a), json!([{"id": 1, "title": "a"}]));
    script.batch(b, 3, 0, 12, json!([]));
    script.progress(12);
    assert_eq!((script.shown(a), script.cv()), (json!([]), Cv(12)));
    // When it ends instead, nothing waits for it any longer.
    script.subscribed(b, 4, &issues(), false);
    script.batch(a, 1, 2, 13, json!([["+", 0, 1, [4, "d", null]]]));
    assert!(script.progress(13).is_empty());
    let faulted = json!({"faulted": {"sub": b, "code": "query_faulted", "message": "1/0", "retry": false}});
    let effects = script.send(faulted);
    assert!(matches!(&effects[0], Effect::Ended { fault, .. } if !fault.retry), "{effects:?}");
    assert_eq!((script.shown(a), script.cv()), (json!([{"id": 4, "title": "d"}]), Cv(13)));
}

#[test]
fn resumes_from_what_it_holds() {
    let (mut script, sub) =
        live(&issues(), json!([["+", 0, 1, [1, "a", null]], ["+", 0, 1, [2, "b", null]]]));
    script.progress(15);
    script.batch(sub, 1, 1, 16, json!([["-", 0, [1]]]));
    script.state.disconnect();
    assert_eq!(script.shown(sub), json!([{"id": 1, "title": "a"}, {"id": 2, "title": "b"}]));
    let fp = issues().fingerprint(b"").to_string();
    let messages = script.connect();
    let resume = json!({"epoch": 1, "cv": 15, "fp": fp});
    assert_eq!(messages[1], json!({"subscribe": {"sub": sub, "sql": "select", "resume": resume}}));
    // Lost again before the difference is released: the same position is offered.
    script.subscribed(sub, 8, &issues(), true);
    script.batch(sub, 8, 0, 20, json!([["~", 0, 1, [2, "c", null]], ["-", 0, [1]]]));
    script.state.disconnect();
    assert_eq!(script.connect()[1]["subscribe"]["resume"], resume);
    script.subscribed(sub, 9, &issues(), true);
    script.batch(sub, 9, 0, 20, json!([["~", 0, 1, [2, "c", null]], ["-", 0, [1]]]));
    let effects = script.progress(20);
    let (removed, edited) = (json!({"id": 1, "title": "a"}), json!({"id": 2, "title": "c"}));
    assert_eq!(
        changes(effects),
        json!({"1": [{"op": "remove", "row": removed}, {"op": "edit", "row": edited}]})
    );
    // An empty difference changes nothing, and is no change to tell of.
    script.state.disconnect();
    assert_eq!(script.connect()[1]["subscribe"]["resume"], json!({"epoch": 9, "cv": 20, "fp": fp}));
    script.subscribed(sub, 10, &issues(), true);
    script.batch(sub, 10, 0, 30, json!([]));
    assert_eq!(changes(script.progress(30)), json!({}));
    // Refused: a snapshot takes the result's place.
    script.state.disconnect();
    script.connect();
    script.subscribed(sub, 11, &issues(), false);
    script.batch(sub, 11, 0, 5, json!([["+", 0, 1, [7, "z", null]]]));
    script.progress(5);
    assert_eq!((script.shown(sub), script.cv()), (json!([{"id": 7, "title": "z"}]), Cv(5)));
}

#[test]
fn unknown_subscriptions_are_passed_over() {
    let (mut script, sub) = live(&issues(), json!([]));
    let mut effects = Vec::new();
    script.state.unsubscribe(sub.into_sub(), &mut effects);
    assert_eq!(sent(&effects), [json!({"unsubscribe": {"sub": sub}})]);
    assert!(script.batch(sub, 1, 1, 11, json!([["+", 0, 1, [1, "a", null]]])).is_empty());
    assert!(script.subscribed(sub, 2, &issues(), false).is_empty());
    assert!(script.subscribed(0, 3, &issues(), false).is_empty(), "no client_id, no own row");
}

#[test]
fn seq_is_gapless() {
    let (mut script, sub) = live(&issues(), json!([]));
    assert_eq!(violation(&script.batch(sub, 1, 2, 11, json!([]))), "seq_is_gapless");
    // What was released before is sound, so the next connection continues from it.
    script.state.disconnect();
    assert_eq!(script.connect()[1]["subscribe"]["resume"]["cv"], 10);
}

#[test]
fn progress_is_irrevocable() {
    let (mut script, sub) = live(&issues(), json!([]));
    script.progress(12);
    assert_eq!(violation(&script.batch(sub, 1, 1, 12, json!([]))), "batches_precede_progress");
    assert_eq!(violation(&script.progress(11)), "progress_is_irrevocable");
    // Another connection may start lower.
    script.state.disconnect();
    script.connect();
    assert!(!script.progress(3).iter().any(|effect| matches!(effect, Effect::Violation(_))));
}

#[test]
fn an_operation_that_does_not_fit_changes_nothing() {
    for ops in [
        json!([["+", 0, 1, [2, "b", null]], ["~", 0, 1, [3, "x", null]]]),
        json!([["+", 0, 1, [1, "again", null]]]),
        json!([["-", 0, [9]]]),
    ] {
        let (mut script, sub) = live(&issues(), json!([["+", 0, 1, [1, "a", null]]]));
        script.batch(sub, 1, 1, 11, ops);
        assert_eq!(violation(&script.progress(11)), "view_equals_fresh_query");
        assert_eq!((script.shown(sub), script.cv()), (json!([{"id": 1, "title": "a"}]), Cv(10)));
        // What is held cannot be trusted to be what the server thinks, so a snapshot is asked for.
        script.state.disconnect();
        assert!(script.connect()[1]["subscribe"].get("resume").is_none());
    }
}

#[test]
fn malformed_messages_are_violations() {
    let malformed = "messages_are_well_formed";
    for ops in [
        json!([["+", 1, 1, [1, "a", null]]]),
        json!([["+", 0, 2, [1, "a", null]]]),
        json!([["+", 0, 0, [1, "a", null]]]),
        json!([["+", 0, 1, [1, "a"]]]),
        json!([["+", 0, 1, ["1", "a", null]]]),
        json!([["-", 0, [1, 2]]]),
    ] {
        let (mut script, sub) = live(&issues(), json!([]));
        assert_eq!(violation(&script.batch(sub, 1, 1, 11, ops.clone())), malformed, "{ops}");
    }
    type Spoil = fn(&mut Layout);
    let spoils: [Spoil; 7] = [
        |l| l.places.clear(),
        |l| l.places[0].table = 1,
        |l| l.places[0].columns.push(3),
        |l| l.places[0].parent = Some(0),
        |l| l.tables[0].key.clear(),
        |l| l.tables[0].key.push(7),
        |l| l.places[0].order[0].column = 3,
    ];
    for spoil in spoils {
        let mut script = Script::new();
        let sub = script.subscribe();
        let mut layout = issues();
        spoil(&mut layout);
        assert_eq!(violation(&script.subscribed(sub, 1, &layout, false)), malformed, "{layout:?}");
    }
    let (mut script, sub) = live(&issues(), json!([]));
    assert_eq!(
        violation(&script.subscribed(sub, 2, &issues(), true)),
        malformed,
        "nothing was to be resumed"
    );
}

#[test]
fn queues_are_bounded() {
    let (mut script, sub) = live(&issues(), json!([]));
    let ops: Vec<_> = (0..60_000).map(|id| json!(["+", 0, 1, [id, "", null]])).collect();
    assert!(script.batch(sub, 1, 1, 11, json!(ops)).is_empty());
    assert_eq!(violation(&script.batch(sub, 1, 2, 12, json!(ops))), "queues_are_bounded");
}

#[test]
fn a_refused_subscription_ends() {
    let mut script = Script::new();
    let sub = script.subscribe();
    let effects = script.send(json!({"error": {"code": "bad_query", "message": "no", "sub": sub}}));
    assert!(matches!(&effects[..], [Effect::Ended { .. }]), "{effects:?}");
    assert_eq!(script.connect().len(), 1, "only hello");
    let sub = script.subscribe();
    let effects = script.send(json!({"error": {"code": "not_ready", "message": "later", "sub": sub}}));
    assert!(matches!(&effects[..], [Effect::Reconnect { .. }]), "{effects:?}");
    script.state.disconnect();
    assert_eq!(script.connect().len(), 2, "asked for again");
}

/// The client's own row.
fn own() -> Layout {
    layout(json!({
        "tables": [{"name": "tidegate_client_mutations", "key": [0], "columns": [
            {"name": "client_id", "type": "text"}, {"name": "last_mutation_id", "type": "int8"}]}],
        "places": [{"parent": null, "as": null, "table": 0, "columns": [0, 1], "on": [],
            "order": [[0, "asc", "nulls last"]], "one": false}]}))
}

fn push(script: &mut Script) -> (Result<u64, crate::MutationError>, Vec<Json>) {
    let mut effects = Vec::new();
    let op = crate::insert("t", json!({"id": 1}));
    let ticket = script.state.push(vec![op], &mut effects);
    (ticket, sent(&effects))
}

fn ids(messages: &[Json]) -> Vec<u64> {
    let mutations = messages.iter().filter_map(|m| m["push"]["mutations"].as_array()).flatten();
    mutations.map(|m| m["id"].as_u64().expect("an id")).collect()
}

fn confirmed(effects: &[Effect]) -> Vec<(u64, u64)> {
    let confirmed = effects.iter().filter_map(|effect| match effect {
        Effect::Confirmed { ticket, cv } => Some((*ticket, cv.0)),
        _ => None,
    });
    confirmed.collect()
}

fn answer(script: &mut Script, id: u64) -> Vec<Effect> {
    script.send(json!({"push_result": {"id": id, "error": null}}))
}

#[test]
fn mutations_are_numbered_confirmed_and_sent_again() {
    let mut script = Script::with(Some("c"));
    let (first, messages) = push(&mut script);
    assert!(messages.is_empty(), "no id is given before the server's count is known");
    script.subscribed(0, 1, &own(), false);
    // An earlier process got to 7.
    let effects = script.batch(0, 1, 0, 10, json!([["+", 0, 1, ["c", 7]]]));
    assert_eq!(ids(&sent(&effects)), [8]);
    script.progress(10);
    let (_, messages) = push(&mut script);
    assert_eq!(ids(&messages), [9]);
    script.batch(0, 1, 1, 11, json!([["~", 0, 1, ["c", 8]]]));
    assert!(confirmed(&script.progress(11)).is_empty(), "the answer might still be a refusal");
    assert_eq!(confirmed(&answer(&mut script, 8)), [(first.expect("queued"), 11)]);
    // Lost: 9 was applied, but nobody said so. It is sent again, with what came after.
    script.state.disconnect();
    let (_, messages) = push(&mut script);
    assert!(messages.is_empty());
    script.connect();
    script.subscribed(0, 2, &own(), false);
    let effects = script.batch(0, 2, 0, 12, json!([["+", 0, 1, ["c", 9]]]));
    assert_eq!(ids(&sent(&effects)), [9, 10]);
    answer(&mut script, 9);
    assert_eq!(confirmed(&script.progress(12)), [(2, 12)]);
    // A refusal is told at once; the id behind it goes on.
    let refused = json!({"push_result": {"id": 10, "error": {"code": "conflict", "message": "there"}}});
    let effects = script.send(refused);
    assert!(matches!(&effects[..], [Effect::Refused { ticket: 3, .. }]), "{effects:?}");
    assert_eq!(ids(&push(&mut script).1), [11]);
    answer(&mut script, 11);
    script.batch(0, 2, 1, 13, json!([["~", 0, 1, ["c", 11]]]));
    assert_eq!(confirmed(&script.progress(13)), [(4, 13)]);
}

#[test]
fn a_server_that_lost_its_count_is_followed() {
    let mut script = Script::with(Some("c"));
    script.subscribed(0, 1, &own(), false);
    script.batch(0, 1, 0, 10, json!([["+", 0, 1, ["c", 7]]]));
    script.progress(10);
    assert_eq!(ids(&push(&mut script).1), [8]);
    script.state.disconnect();
    script.connect();
    script.subscribed(0, 1, &own(), false);
    assert_eq!(ids(&sent(&script.batch(0, 1, 0, 1, json!([])))), [1]);
    assert_eq!(ids(&push(&mut script).1), [2]);
}

/// A client whose count is `last`, with three mutations sent.
fn three_sent(last: u64) -> Script {
    let mut script = Script::with(Some("c"));
    count(&mut script, 1, last);
    let sent: Vec<u64> = (0..3).flat_map(|_| ids(&push(&mut script).1)).collect();
    assert_eq!(sent, [last + 1, last + 2, last + 3]);
    script
}

/// Announces subscription 0 and its row; what the client does.
fn count(script: &mut Script, epoch: u64, last: u64) -> Vec<Effect> {
    script.subscribed(0, epoch, &own(), false);
    script.batch(0, epoch, 0, 10, json!([["+", 0, 1, ["c", last]]]))
}

/// Seen to fail: with every error of an answer told as a refusal.
#[test]
fn an_answer_that_nothing_advanced_is_no_refusal() {
    for (id, code) in [(1, "not_ready"), (1, "schema_changed"), (1, "internal"), (2, "conflict")] {
        let mut script = three_sent(0);
        let error = json!({"code": code, "message": "not now"});
        let effects = script.send(json!({"push_result": {"id": id, "error": error}}));
        assert!(matches!(&effects[..], [Effect::Reconnect { .. }]), "{id} {code}: {effects:?}");
        script.state.disconnect();
        script.connect();
        assert_eq!(ids(&sent(&count(&mut script, 2, 0))), [1, 2, 3], "{code}");
    }
    // Behind what was answered, it is a refusal.
    let mut script = three_sent(0);
    answer(&mut script, 1);
    let error = json!({"code": "conflict", "message": "there"});
    let effects = script.send(json!({"push_result": {"id": 2, "error": error}}));
    assert!(matches!(&effects[..], [Effect::Refused { ticket: 2, .. }]), "{effects:?}");
}

/// Seen to fail: with a fault of subscription 0 that lets mutations be sent.
#[test]
fn without_the_servers_count_another_connection_is_made() {
    let fault = json!({"faulted": {"sub": 0, "code": "not_ready", "message": "full", "retry": true}});
    let mut script = Script::with(Some("c"));
    push(&mut script).0.expect("queued");
    let effects = script.send(fault.clone());
    assert!(matches!(&effects[..], [Effect::Reconnect { .. }]), "{effects:?}");
    // One that ends later keeps mutations from being confirmed.
    let effects = three_sent(5).send(fault);
    assert!(matches!(&effects[..], [Effect::Reconnect { .. }]), "{effects:?}");
}

/// Seen to fail: with ids that stand although no count was seen; the next server, at 5, would take none of them.
#[test]
fn what_a_server_that_cannot_write_was_sent_is_numbered_anew() {
    let mut script = Script::with(Some("c"));
    push(&mut script).0.expect("queued");
    let fault = json!({"faulted": {"sub": 0, "code": "read_only", "message": "no", "retry": false}});
    assert_eq!(ids(&sent(&script.send(fault.clone()))), [1], "its answer says why");
    script.state.disconnect();
    script.connect();
    assert_eq!(ids(&sent(&count(&mut script, 1, 5))), [6]);
    // An id that was given by a count stands.
    script.state.disconnect();
    script.connect();
    assert_eq!(ids(&sent(&script.send(fault))), [6]);
    let error = json!({"code": "read_only", "message": "no"});
    let effects = script.send(json!({"push_result": {"id": 6, "error": error}}));
    assert!(matches!(&effects[..], [Effect::Refused { ticket: 1, .. }]), "{effects:?}");
}

#[test]
fn the_mutation_queue_is_bounded() {
    let mut script = Script::with(Some("c"));
    for _ in 0..4 {
        assert!(push(&mut script).0.is_ok());
    }
    assert!(matches!(push(&mut script).0, Err(crate::MutationError::QueueFull { max: 4 })));
    assert!(matches!(push(&mut Script::new()).0, Err(crate::MutationError::NoClientId)));
}

/// Prints figures: `cargo test -p tidegate-client --release --lib cost -- --nocapture`.
#[test]
fn the_cost_of_a_change_does_not_grow_with_the_list() {
    let row = |id: i64, title: &str| json!(["+", 0, 1, [id, title, id % 7]]);
    let measure = |length: i64| {
        let started = std::time::Instant::now();
        let (mut script, sub) = live(&issues(), (0..length).map(|id| row(id, "some title")).collect());
        let hydrated = started.elapsed();
        let mut kept = script.rows(sub);
        let rounds = 200;
        let mut spent = Vec::new();
        for round in 0..rounds {
            let id = i64::try_from(round).expect("small") * 7_919 % length;
            script.batch(sub, 1, round + 1, 11 + round, json!([["~", 0, 1, [id, format!("t{round}"), 0]]]));
            let started = std::time::Instant::now();
            let effects = script.progress(11 + round);
            spent.push(started.elapsed());
            assert_eq!(changes(effects)["1"].as_array().map(Vec::len), Some(1));
            let rows = script.rows(sub);
            let renewed = rows.iter().zip(&kept).filter(|(new, old)| !Arc::ptr_eq(new, old)).count();
            assert_eq!(renewed, 1, "every other row is the same node");
            kept = rows;
        }
        spent.sort();
        println!(
            "{length} rows: hydrated in {hydrated:?}, the median change in {:?}",
            spent[spent.len() / 2]
        );
    };
    measure(300);
    measure(10_000);
}
