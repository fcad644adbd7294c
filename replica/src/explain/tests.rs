//! What is told of plans.

use super::explain;
use crate::{
    pipeline::{Budget, Pipeline},
    query::{Parameters, Resolved, resolve, resolve_select},
    sql::bind,
    store::{Snapshot, SnapshotEditor},
    worker::BindingId,
};
use serde_json::{Map, json};
use std::{sync::Arc, time::Duration};
use tidegate_wire::model::{Cv, TableSchema, query::Query};

fn snapshot() -> Arc<Snapshot> {
    let table = |name: &str, columns: serde_json::Value| -> TableSchema {
        serde_json::from_value(json!({"name": name, "primary_key": ["id"], "columns": columns}))
            .expect("a table")
    };
    let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
    let column = |name: &str, ty: &str| json!({"name": name, "type": ty, "nullable": name != "id"});
    editor.create_table(table(
        "issues",
        json!([column("id", "int8"), column("project", "text"), column("n", "int8")]),
    ));
    editor.create_table(table(
        "comments",
        json!([column("id", "int8"), column("issue", "int8"), column("body", "text")]),
    ));
    editor.finish(Cv(1)).to
}

fn told(resolved: &Resolved, snapshot: &Snapshot) -> String {
    // The fingerprint is tested where it is made.
    explain(resolved, snapshot, None)[1..].join("\n")
}

fn select(text: &str, snapshot: &Snapshot) -> Resolved {
    let (args, claims) = (Map::new(), Map::new());
    let parameters = Parameters { args: &args, claims: &claims, declared: None };
    resolve_select(&bind(text, snapshot, &parameters).expect(text), snapshot).expect(text)
}

#[test]
fn selects_are_told_by_their_operators() {
    let snapshot = snapshot();
    let cases: [(&str, &[&str]); 5] = [
        ("select id from issues order by n limit 1", &["#2 1 row order by issues.n", "  #1 rows of issues"]),
        (
            "select n, count(*) as k, sum(n) filter (where id > 3) as s from issues where project = 'a' group by n",
            &[
                "parameter p1: text, here 'a'",
                "#4 rows of #3",
                "  #3 group by p1, issues.n: count(*), sum(issues.n) filter (where issues.id > 3)",
                "    #2 join of #1, issues",
                "       a change of #1 finds issues by index (project) = p1",
                "       a change of issues finds #1 by issues.project",
                "      #1 parameters, one row for each tuple of them",
            ],
        ),
        (
            "select i.id, c.body from issues i join comments c on c.issue = i.id where c.body like 'a%' and i.n > 1",
            &[
                "#1 join of issues where issues.n > 1, comments where comments.body like 'a%'",
                "   a change of issues finds comments by index (issue) = issues.id",
                "   a change of comments finds issues by primary key (id) = comments.issue",
            ],
        ),
        (
            "select id from issues i where exists (select 1 from comments c where c.issue = i.id and c.body ~ 'x')",
            &[
                "#3 rows of #2 where mark",
                "  #2 issues marked by #1",
                "     a left row finds #1 by issues.id",
                "     a right row finds issues by primary key (id) = comments.issue",
                "    #1 rows of comments where comments.body ~ 'x'",
            ],
        ),
        (
            "with recursive r as (select id from issues where n = 1 union select c.issue from r join comments c on c.id = r.id)
                select id, row_number() over (order by id desc) as k from r order by id limit 3",
            &[
                "#7 3 rows order by issues.id",
                "  #6 rows of #5",
                "    #5 row_number() over order by issues.id desc",
                "      #4 recursion from #1 by #3, rows once each",
                "        #1 rows of issues where issues.n = 1",
                "        #3 join of #2, comments",
                "           a change of #2 finds comments by primary key (id) = c1",
                "           a change of comments finds #2 by comments.id",
                "          #2 what the recursion has found",
            ],
        ),
    ];
    for (text, plan) in cases {
        assert_eq!(told(&select(text, &snapshot), &snapshot), plan.join("\n"), "{text}");
    }
}

#[test]
fn nested_queries_are_told_by_their_places() {
    let snapshot = snapshot();
    let query = json!({"table": "issues", "where": {"op": "and", "args": [
        {"op": "=", "args": [{"col": "project"}, "a"]},
        {"exists": {"query": {"table": "comments"}, "on": [["id", "issue"]]}}]},
        "order_by": [["n", "desc"]], "limit": 5,
        "related": [{"as": "comments", "on": [["id", "issue"]], "query": {"table": "comments"}}]});
    let (args, claims) = (Map::new(), Map::new());
    let parameters = Parameters { args: &args, claims: &claims, declared: None };
    let resolved =
        resolve(&Query::from_json(&query).expect("a query"), &snapshot, &parameters).expect("it resolves");
    assert_eq!(
        told(&resolved, &snapshot),
        "parameter p1: text, here 'a'\n\
         issues by index (project, n desc) where project = p1 order by n desc, id limit 5\n   \
         if exists 1\n   \
         exists 1: comments by index (issue) where issue = id; when it changes, rows of issues by primary key\n  \
         comments: comments by index (issue) where issue = parent.id order by id"
    );
}

#[test]
fn what_is_live_tells_what_it_holds() {
    let snapshot = snapshot();
    let resolved = select("select n, count(*) as k from issues group by n", &snapshot);
    let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
    let budget = Budget::once(Duration::from_secs(60));
    pipeline.bind(BindingId(1), Vec::new().into(), &snapshot, &budget, &mut Vec::new()).expect("it hydrates");
    let told = explain(&resolved, &snapshot, Some(&pipeline.profiles()));
    assert_eq!(told.last().map(String::as_str), Some("state: 0 keys"));
    assert!(told[1].contains("[0 keys]"), "{told:?}");
}
