//! Materialized views: relations that follow their tables within the commit, read by selects, nested queries and other
//! views; and what becomes of them when tables change, evaluation fails, and the process starts again.
//! (`sql_equals_postgres` reads random queries through views.)

use crate::support::{
    recorder::{CONN, Recorder, Told, prepared, replica, rows, run, taken},
    server::{block_on, until},
};
use serde_json::{Map, Value as Json, json};
use tidegate_replica::{
    handle::{QueryRequest, QuerySource, Replica, ReplicaOptions},
    query::QueryErrorKind,
    store::Commits,
};
use tidegate_wire::model::SubId;

const TABLES: &str =
    "create table issues (id bigint primary key, project text not null, points bigint not null);
    insert into issues values (1, 'a', 3), (2, 'a', 5), (3, 'b', 8)";
const PER_PROJECT: &str = "create materialized view per_project as select project, count(*) as n, sum(points) as points from issues group by project";
const BUSY: &str = "create materialized view busy as select project from per_project where n > 1";

fn refused(replica: &Replica, text: &str, kind: QueryErrorKind, message: &str) {
    let error = run(replica, text).expect_err(text);
    assert!(error.kind == kind && error.message.contains(message), "{text}: {error:?}");
}

fn kept(replica: &Replica) -> Vec<(String, bool)> {
    let snapshot = replica.snapshot();
    snapshot.views().map(|view| (view.definition.name.clone(), view.rows.is_some())).collect()
}

/// Seen to fail: with views worked through in the order of their names, the second lags behind.
#[test]
fn views_follow_within_the_commit() {
    block_on(async {
        let (replica, recorder) = replica();
        taken(&replica, TABLES);
        taken(&replica, PER_PROJECT);
        taken(&replica, BUSY);
        replica.connect(CONN).await;
        let nested = json!({"table": "issues", "related": [
            {"as": "totals", "on": [["project", "project"]], "one": true, "query": {"table": "per_project"}}]});
        let nested = QueryRequest { source: QuerySource::Query(nested), args: Map::new() };
        let named = QueryRequest { source: QuerySource::Name("busy".to_owned()), args: Map::new() };
        let queries = [
            prepared(&replica, "select * from per_project").expect("sound"),
            replica.prepare(&named, &Map::new()).expect("sound"),
            replica.prepare(&nested, &Map::new()).expect("sound"),
        ];
        for (sub, query) in (1..).zip(&queries) {
            replica.subscribe(CONN, SubId(sub), query, None).await.expect("taken");
            recorder.wait("a result", |told| matches!(told, Told::Batch(to, _) if *to == SubId(sub))).await;
        }
        let told = recorder.told().len();
        let cv = taken(&replica, "insert into issues values (4, 'b', 1)").cv;
        recorder.wait("the release", |told| matches!(told, Told::Progress(to) if *to >= cv)).await;
        // One commit: each of the three hears of it before anything is released.
        let told = recorder.told().split_off(told);
        let release = told.iter().position(|told| matches!(told, Told::Progress(to) if *to >= cv));
        for sub in 1..=3 {
            let batch = told.iter().position(|told| matches!(told, Told::Batch(to, _) if *to == SubId(sub)));
            assert!(batch.expect("a batch") < release.expect("a release"), "{told:?}");
        }
        assert_eq!(rows(&replica, "select project from busy order by 1"), [[json!("a")], [json!("b")]]);
        assert_eq!(
            rows(&replica, "select n, points from per_project where project = 'b'"),
            [[json!(2), json!("9")]]
        );
        let shown = replica.rows(&queries[2]).expect("it evaluates").rows;
        assert_eq!(shown[3]["totals"], json!({"project": "b", "n": 2, "points": "9"}));
        assert!(replica.check().differences.is_empty());
        replica.shutdown();
    });
}

#[test]
fn views_are_told_of_and_only_the_server_writes_them() {
    let (replica, _) = replica();
    taken(&replica, TABLES);
    taken(&replica, PER_PROJECT);
    taken(&replica, "create materialized view if not exists per_project as select 1 as x");
    taken(
        &replica,
        "create materialized view pairs(a, b) as select x.id, y.id from issues x, issues y where x.id < y.id",
    );
    let shown = rows(&replica, "show views");
    assert_eq!(shown[0][..3], [json!("per_project"), json!(2), json!(true)]);
    assert_eq!(shown[1][..3], [json!("pairs"), json!(3), json!(true)]);
    assert_eq!(rows(&replica, "select count(*) as n from pairs where a = 1"), [[json!(2)]]);
    // What tells the rows of a view apart shows nowhere.
    assert_eq!(rows(&replica, "show columns from pairs").len(), 2);
    let queries: Vec<String> = replica.queries().into_iter().map(|(query, _)| query.name).collect();
    assert_eq!(queries, ["pairs", "per_project"]);
    assert_eq!(rows(&replica, "show queries").len(), 2);
    let plan: Vec<String> = rows(&replica, "explain analyze select n from per_project")
        .iter()
        .map(|row| row[0].to_string())
        .collect();
    assert!(plan.iter().any(|line| line.contains("rows of per_project")), "{plan:?}");

    let forbidden = QueryErrorKind::Forbidden;
    refused(&replica, "insert into per_project values ('c', 1, 1)", forbidden, "per_project");
    refused(&replica, "update per_project set n = 0", forbidden, "per_project");
    refused(&replica, "delete from per_project", forbidden, "per_project");
    refused(&replica, "truncate per_project", forbidden, "per_project");
    refused(&replica, "alter table per_project add column x text", forbidden, "per_project");
    refused(&replica, "drop table per_project", forbidden, "per_project");
    let draft = replica.draft(br#"{"ops":[{"delete":"per_project","key":{"project":"a"}}]}"#);
    assert!(draft.expect_err("refused").to_string().contains("maintained by the server"));
    let conflict = QueryErrorKind::Conflict;
    refused(&replica, PER_PROJECT, conflict, "there is a view per_project already");
    refused(&replica, "create table per_project (id bigint primary key)", conflict, "per_project");
    refused(
        &replica,
        "create materialized view issues as select 1 as x",
        conflict,
        "there is a table issues already",
    );
    let bad = QueryErrorKind::BadQuery;
    refused(&replica, "create view v as select 1 as x", bad, "create materialized view");
    refused(&replica, "create materialized view v as select id, id from issues", bad, "two columns");
    refused(
        &replica,
        "create materialized view v as select * from issues where id = :p",
        QueryErrorKind::BadArgs,
        "p",
    );
    refused(&replica, "begin; create materialized view v as select 1 as x; commit", bad, "in a transaction");
    refused(
        &replica,
        "create materialized view v as select 1 / 0 as x",
        QueryErrorKind::QueryFaulted,
        "division by zero",
    );
    refused(
        &replica,
        "drop materialized view v",
        QueryErrorKind::UnknownTable,
        "unknown materialized view v",
    );
    taken(&replica, "drop materialized view if exists v");
    assert_eq!(kept(&replica).len(), 2);
    replica.shutdown();
}

/// A transaction that has written reads its own writes through views, too.
/// Seen to fail: with the view's rows as they were before it.
#[test]
fn a_transaction_sees_its_own_writes_through_views() {
    let (replica, _) = replica();
    taken(&replica, TABLES);
    taken(&replica, PER_PROJECT);
    taken(&replica, BUSY);
    let answer = taken(
        &replica,
        "begin; insert into issues values (4, 'b', 1); select project from busy order by 1; rollback",
    );
    let shown = answer.results[2].rows.clone().expect("rows").rows;
    assert_eq!(shown, [[json!("a")], [json!("b")]]);
    assert_eq!(rows(&replica, "select project from busy"), [[json!("a")]]);
    replica.shutdown();
}

/// Seen to fail: without the look at views, the table goes and its view stays as it was.
#[test]
fn tables_that_views_read_are_kept_or_take_the_views_along() {
    block_on(async {
        let (replica, recorder) = replica();
        taken(&replica, TABLES);
        taken(&replica, PER_PROJECT);
        taken(&replica, BUSY);
        let conflict = QueryErrorKind::Conflict;
        refused(&replica, "drop table issues", conflict, "materialized view per_project depends on it");
        refused(
            &replica,
            "alter table issues drop column points",
            conflict,
            "materialized view per_project depends on it",
        );
        refused(
            &replica,
            "drop materialized view per_project",
            conflict,
            "materialized view busy depends on it",
        );
        replica.connect(CONN).await;
        let busy = prepared(&replica, "select * from busy").expect("sound");
        replica.subscribe(CONN, SubId(1), &busy, None).await.expect("taken");
        recorder.wait("a result", |told| matches!(told, Told::Batch(SubId(1), 1))).await;
        // The table goes on under another id; so do the views, once their rows are computed anew.
        taken(&replica, "alter table issues add column closed boolean");
        recorder.wait("the end of what reads it", |told| matches!(told, Told::Faulted(SubId(1), _))).await;
        until("rows of both again", async || kept(&replica).iter().all(|(_, is_kept)| *is_kept)).await;
        assert_eq!(rows(&replica, "select project from busy"), [[json!("a")]]);
        taken(&replica, "drop table issues cascade");
        assert_eq!(kept(&replica), []);
        refused(&replica, "select * from busy", QueryErrorKind::UnknownTable, "unknown table busy");
        replica.shutdown();
    });
}

/// A row that the view cannot be computed for is no reason to refuse the commit; nor does it leave the view stale.
/// Seen to fail: with the rows left as they were.
#[test]
fn a_view_that_fails_is_read_by_its_definition_until_it_can_be_kept_again() {
    block_on(async {
        let (replica, recorder) = replica();
        taken(&replica, TABLES);
        taken(&replica, "create materialized view shares as select id, 100 / points as share from issues");
        taken(&replica, "create materialized view large as select id from shares where share > 20");
        replica.connect(CONN).await;
        let query = prepared(&replica, "select * from large").expect("sound");
        replica.subscribe(CONN, SubId(1), &query, None).await.expect("taken");
        recorder.wait("a result", |told| matches!(told, Told::Batch(SubId(1), 1))).await;
        taken(&replica, "insert into issues values (4, 'b', 0)");
        recorder.wait("the end of what reads it", |told| matches!(told, Told::Faulted(SubId(1), _))).await;
        refused(&replica, "select * from large", QueryErrorKind::QueryFaulted, "division by zero");
        refused(
            &replica,
            "refresh materialized view shares",
            QueryErrorKind::QueryFaulted,
            "division by zero",
        );
        assert!(replica.query("shares").expect("it is there").1.fault.is_some());
        let nested =
            QueryRequest { source: QuerySource::Query(json!({"table": "shares"})), args: Map::new() };
        let error =
            replica.prepare(&nested, &Map::new()).map(drop).expect_err("a nested query reads rows alone");
        assert_eq!(error.kind, QueryErrorKind::NotReady);
        taken(&replica, "update issues set points = 2 where id = 4");
        assert_eq!(rows(&replica, "select id from large order by 1"), [[json!(1)], [json!(4)]]);
        taken(&replica, "refresh materialized view shares; refresh materialized view large");
        assert_eq!(kept(&replica), [("shares".to_owned(), true), ("large".to_owned(), true)]);
        taken(&replica, "insert into issues values (5, 'b', 1)");
        assert_eq!(rows(&replica, "select id from large order by 1"), [[json!(1)], [json!(4)], [json!(5)]]);
        replica.shutdown();
    });
}

/// Seen to fail: without the definitions in the log.
#[test]
fn views_are_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let options = ReplicaOptions {
            data_dir: Some(folder.path().to_owned()),
            workers: 1,
            ..ReplicaOptions::default()
        };
        Replica::start(options, Box::new(Recorder::default()), |_, _| ()).expect("it starts")
    };
    let first = start();
    taken(&first, TABLES);
    taken(&first, PER_PROJECT);
    taken(&first, "create materialized view gone as select 1 as x");
    taken(&first, BUSY);
    taken(&first, "insert into issues values (4, 'b', 1); drop materialized view gone");
    let before = (first.cv(), rows(&first, "select * from per_project order by 1"));
    first.shutdown();
    let second = start();
    assert_eq!((second.cv(), rows(&second, "select * from per_project order by 1")), before);
    assert_eq!(kept(&second), [("per_project".to_owned(), true), ("busy".to_owned(), true)]);
    taken(&second, "delete from issues where id = 4");
    assert_eq!(rows(&second, "select project from busy"), [[json!("a")]]);
    second.shutdown();
}

/// Commits of one body are published together; views follow all of them.
#[test]
fn views_follow_long_bodies() {
    block_on(async {
        let (replica, _) = replica();
        taken(&replica, TABLES);
        taken(&replica, PER_PROJECT);
        let drafts = (10..210).map(|id| {
            let op = json!({"ops": [{"insert": "issues", "row": {"id": id, "project": "c", "points": id}}]});
            replica.draft(op.to_string().as_bytes()).expect("sound")
        });
        let commits = Commits { drafts: drafts.collect(), ..Commits::default() };
        assert_eq!(replica.commit(commits).await.refused, None);
        let shown: Vec<Vec<Json>> = rows(&replica, "select n, points from per_project where project = 'c'");
        assert_eq!(shown, [[json!(200), json!("21900")]]);
        replica.shutdown();
    });
}
