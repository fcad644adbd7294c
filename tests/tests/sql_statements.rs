//! Statements that write and change tables, among other writers and live queries.

use crate::support::{
    recorder::{CONN, Told, prepared, replica, rows, run, taken},
    server::{block_on, until},
};
use serde_json::{Map, Value as Json, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};
use tidegate_replica::{
    handle::{CommitRefusalKind, NamedQuery, QueryRequest, QuerySource},
    query::QueryErrorKind,
    store::Commits,
    worker::FaultCause,
};
use tidegate_wire::model::{Cv, SubId, commit::RowOp};

#[test]
fn a_live_query_ends_when_its_table_changes_and_its_neighbours_go_on() {
    block_on(async {
        let (replica, recorder) = replica();
        taken(
            &replica,
            "create table t (id bigint primary key, a bigint); create table u (id bigint primary key)",
        );
        taken(&replica, "insert into t values (1, 1); insert into u values (1)");
        replica.connect(CONN).await;
        let of_t = prepared(&replica, "select * from t").expect("sound");
        let of_u = prepared(&replica, "select * from u").expect("sound");
        let json = QueryRequest { source: QuerySource::Query(json!({"table": "t"})), args: Map::new() };
        let nested = replica.prepare(&json, &Map::new()).expect("sound");
        for (sub, query) in [(1, &of_t), (2, &of_u), (3, &nested)] {
            replica.subscribe(CONN, SubId(sub), query, None).await.expect("taken");
            recorder.wait("a result", |told| matches!(told, Told::Batch(to, 1) if *to == SubId(sub))).await;
        }
        let cv = taken(&replica, "alter table t add column b text default 'new'").cv;
        // A change of the neighbour has both versions released at once.
        taken(&replica, "insert into u values (7)");
        recorder.wait("the release", |told| matches!(told, Told::Progress(to) if *to >= cv)).await;
        let told = recorder.told();
        for sub in [SubId(1), SubId(3)] {
            let fault = told.iter().position(|it| *it == Told::Faulted(sub, FaultCause::SchemaChanged));
            let release = told.iter().position(|it| matches!(it, Told::Progress(to) if *to >= cv));
            assert!(fault.expect("it ends") < release.expect("a release"), "{told:?}");
        }
        assert!(!told.iter().any(|it| matches!(it, Told::Faulted(SubId(2), _))), "{told:?}");
        // What was prepared before is refused, or ends at once, as the worker may hear of it first.
        let late = replica.subscribe(CONN, SubId(4), &of_t, None).await;
        match late {
            Err(error) => assert_eq!(error.kind, QueryErrorKind::SchemaChanged),
            Ok(_) => {
                let ended = Told::Faulted(SubId(4), FaultCause::SchemaChanged);
                recorder.wait("the end of a stale query", |told| *told == ended).await;
            }
        }
        assert_eq!(replica.rows(&of_t).expect_err("stale").kind, QueryErrorKind::SchemaChanged);
        // Prepared anew it shows the column, and goes on.
        let again = prepared(&replica, "select * from t").expect("sound");
        replica.subscribe(CONN, SubId(5), &again, None).await.expect("taken");
        recorder.wait("the result anew", |told| *told == Told::Batch(SubId(5), 1)).await;
        taken(&replica, "insert into t values (2, 2, 'x'), (3, 3, 'y'); insert into u values (2)");
        recorder.wait("a change of the other", |told| *told == Told::Batch(SubId(5), 2)).await;
        until("a change of the neighbour", async || {
            recorder.told().iter().filter(|it| **it == Told::Batch(SubId(2), 1)).count() == 3
        })
        .await;
        assert_eq!(
            rows(&replica, "select b from t order by id"),
            [[json!("new")], [json!("x")], [json!("y")]]
        );
        assert!(replica.check().differences.is_empty());
        replica.shutdown();
    });
}

#[test]
fn a_pinned_query_follows_its_table_or_says_why_not() {
    block_on(async {
        let (replica, _) = replica();
        taken(
            &replica,
            "create table t (id bigint primary key, a bigint); insert into t values (1, 1), (2, 2)",
        );
        let query = NamedQuery {
            name: "all".to_owned(),
            source: QuerySource::Sql("select * from t".to_owned()),
            args: BTreeMap::new(),
            pin: true,
            idle_ttl_ms: None,
        };
        assert_eq!(replica.put_query(query).await.expect("taken"), None);
        taken(&replica, "alter table t rename column a to b");
        until("pinned again", async || {
            let (_, status) = replica.query("all").expect("it is there");
            status.rows == 2 && status.fault.is_none()
        })
        .await;
        taken(&replica, "drop table t");
        until("its status says why", async || {
            let (_, status) = replica.query("all").expect("it is there");
            status.fault.is_some_and(|fault| fault.contains("unknown table t"))
        })
        .await;
        taken(&replica, "create table t (id bigint primary key)");
        until("pinned to the table of its name", async || {
            replica.query("all").expect("it is there").1.fault.is_none()
        })
        .await;
        replica.shutdown();
    });
}

#[test]
fn concurrent_transactions_lose_no_update() {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let (replica, _) = replica();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    taken(
        &replica,
        "create table c (id bigint primary key, n bigint not null); insert into c values (1, 0), (2, 0)",
    );
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let replica = &replica;
                scope.spawn(move || {
                    for _ in 0..EACH {
                        // One reads and writes in several statements, the others in one.
                        let text = if writer == 0 {
                            "begin; update c set n = n + 1 where id = 1; \
                             update c set n = (select n from c where id = 1) where id = 2; commit"
                        } else {
                            "update c set n = n + 1 where id = 1"
                        };
                        taken(replica, text);
                    }
                })
            })
            .collect();
        // A writer of commits on the same table, which takes no turns; it rests so that others get between.
        let (replica, runtime, done) = (&replica, &runtime, &done);
        let other = scope.spawn(move || {
            for id in 100..200 {
                let line = json!({"ops": [{"insert": "c", "row": {"id": id, "n": 1}}]}).to_string();
                let draft = replica.draft(line.as_bytes()).expect("a commit");
                let outcome =
                    runtime.block_on(replica.commit(Commits { drafts: vec![draft], ..Commits::default() }));
                assert_eq!(outcome.refused, None);
                if done.load(SeqCst) {
                    return;
                }
                taken(replica, "select count(*) from c");
            }
        });
        // Nobody sees half a transaction: the two rows agree whenever the second was written last.
        let reader = scope.spawn(move || {
            while !done.load(SeqCst) {
                let sums = rows(replica, "select min(n) <= max(n), count(*) from c where id in (1, 2)");
                assert_eq!(sums, [[json!(true), json!(2)]]);
            }
        });
        for writer in writers {
            writer.join().expect("a writer");
        }
        done.store(true, SeqCst);
        other.join().expect("the other writer");
        reader.join().expect("the reader");
    });
    assert_eq!(rows(&replica, "select n from c where id = 1"), [[json!(WRITERS * EACH)]]);
    replica.shutdown();
}

#[test]
fn a_transaction_that_fails_leaves_nothing() {
    let (replica, _) = replica();
    let cv = taken(&replica, "create table t (id bigint primary key); insert into t values (1)").cv;
    let error = run(
        &replica,
        "begin; insert into t values (2); create table u (id bigint); alter table t add column a text; \
         insert into t values (1, 'x'); commit",
    )
    .expect_err("the key is taken");
    assert_eq!(error.kind, QueryErrorKind::Conflict);
    assert!(
        error.message.contains("statement 5 (insert)") && error.message.contains("rolled back"),
        "{error}"
    );
    assert_eq!(replica.cv(), cv);
    assert_eq!(rows(&replica, "select * from t"), [[json!(1)]]);
    // Statements by themselves stay up to the one that fails.
    let error = run(&replica, "insert into t values (2); insert into t values (2)").expect_err("twice");
    assert!(error.message.contains("statement 2"), "{error}");
    assert_eq!(replica.cv(), Cv(cv.0 + 1));
    for (text, named) in [
        ("begin; insert into t values (9)", "does not end"),
        ("commit", "no transaction"),
        ("begin; begin; commit", "has begun already"),
        ("begin; savepoint s; commit", "savepoint"),
    ] {
        let error = run(&replica, text).expect_err(text);
        assert!(error.kind == QueryErrorKind::BadQuery && error.message.contains(named), "{text}: {error}");
    }
    assert_eq!(rows(&replica, "select count(*) from t"), [[json!(2)]]);
    replica.shutdown();
}

#[test]
fn constraints_hold_for_commits_and_mutations() {
    block_on(async {
        let (replica, _) = replica();
        taken(
            &replica,
            "create table p (id bigint primary key, code text unique, n bigint default 5 check (n > 0)); \
             create table c (id bigint primary key, p_id bigint references p on delete cascade)",
        );
        let commit = async |ops: Json| {
            let line = json!({ "ops": ops }).to_string();
            let draft = replica.draft(line.as_bytes()).expect("a commit");
            replica.commit(Commits { drafts: vec![draft], ..Commits::default() }).await.refused
        };
        // A row may come before the one it refers to; a default is what a row does not say.
        let ops = json!([{"insert": "c", "row": {"id": 1, "p_id": 1}}, {"insert": "p", "row": {"id": 1, "code": "a"}}]);
        assert_eq!(commit(ops).await, None);
        assert_eq!(rows(&replica, "select n from p"), [[json!(5)]]);
        for (ops, named) in [
            (
                json!([{"insert": "p", "row": {"id": 2}}, {"insert": "c", "row": {"id": 2, "p_id": 9}}]),
                ["ops[1]", "table c", "c_p_id_fkey", "{\"id\":9}"],
            ),
            (
                json!([{"insert": "p", "row": {"id": 2, "code": "a"}}]),
                ["ops[0]", "table p", "p_code_key", "{\"id\":2}"],
            ),
            (
                json!([{"update": "p", "key": {"id": 1}, "set": {"n": -1}}]),
                ["ops[0]", "table p", "p_n_check", "{\"id\":1}"],
            ),
        ] {
            let refused = commit(ops).await.expect("refused");
            assert_eq!(refused.kind, CommitRefusalKind::Conflict);
            assert!(named.iter().all(|part| refused.message.contains(part)), "{}", refused.message);
        }
        assert_eq!(rows(&replica, "select id from p"), [[json!(1)]]);
        let op: RowOp = serde_json::from_value(json!({"insert": "c", "row": {"id": 5, "p_id": 77}}))
            .expect("an operation");
        let refused = replica.mutate("k", 1, &[op]).await.refused.expect("refused");
        assert_eq!(refused.kind, CommitRefusalKind::Conflict);
        // What refers to a row goes with it, in the same commit.
        assert_eq!(commit(json!([{"delete": "p", "key": {"id": 1}}])).await, None);
        assert_eq!(rows(&replica, "select count(*) from c"), [[json!(0)]]);
        // Two rows may exchange what is unique.
        taken(&replica, "insert into p values (1, 'a'), (2, 'b')");
        let ops = json!([{"update": "p", "key": {"id": 1}, "set": {"code": "b"}},
            {"update": "p", "key": {"id": 2}, "set": {"code": "a"}}]);
        assert_eq!(commit(ops).await, None);
        // A commit made for a table that has changed is refused, and changes nothing.
        let line = json!({"ops": [{"insert": "p", "row": {"id": 3}}]}).to_string();
        let draft = replica.draft(line.as_bytes()).expect("a commit");
        taken(&replica, "alter table p add column m bigint not null default 1");
        let outcome = replica.commit(Commits { drafts: vec![draft], ..Commits::default() }).await;
        assert_eq!(outcome.refused.expect("stale").kind, CommitRefusalKind::SchemaChanged);
        replica.shutdown();
    });
}

#[test]
fn rows_without_a_key_are_numbered_and_nobody_sees_how() {
    block_on(async {
        let (replica, _) = replica();
        taken(&replica, "create table bare (a bigint); insert into bare values (1), (1)");
        let line =
            json!({"ops": [{"insert": "bare", "row": {"a": 2}}, {"insert": "bare", "row": {}}]}).to_string();
        let draft = replica.draft(line.as_bytes()).expect("a commit");
        assert_eq!(replica.commit(Commits { drafts: vec![draft], ..Commits::default() }).await.refused, None);
        let shown = [[json!(1)], [json!(1)], [json!(2)], [Json::Null]];
        assert_eq!(rows(&replica, "select * from bare order by a"), shown);
        let json = QueryRequest { source: QuerySource::Query(json!({"table": "bare"})), args: Map::new() };
        let query = replica.prepare(&json, &Map::new()).expect("sound");
        assert_eq!(replica.rows(&query).expect("rows").rows[0], json!({"a": 1}));
        let error = run(&replica, "select tidegate_row_id from bare").expect_err("hidden");
        assert_eq!(error.kind, QueryErrorKind::UnknownColumn);
        let line = json!({"ops": [{"insert": "bare", "row": {"tidegate_row_id": 1}}]}).to_string();
        assert!(replica.draft(line.as_bytes()).is_err());
        replica.shutdown();
    });
}

/// Rows that change places in one statement take those along that refer to them, each its own.
/// Seen to fail: with the rows that refer looked up when their turn comes.
#[test]
fn references_follow_rows_that_change_places() {
    let (replica, _) = replica();
    taken(
        &replica,
        "create table p (id bigint primary key, u bigint unique);
         create table c (id bigint primary key, p bigint references p on update cascade, u bigint references p(u) on update cascade);
         create table n (id bigint primary key, p bigint references p on update set null);
         create table s (id bigint primary key, up bigint references s on update cascade);
         insert into p values (3, 3), (2, 2), (1, 1);
         insert into c values (10, 1, 1), (20, 2, 2), (30, 3, 3); insert into n select id, p from c;
         insert into s values (1, null), (2, 1), (3, 2)",
    );
    taken(&replica, "update p set id = id + 1, u = 4 - u; update s set id = id + 1");
    let shown = |text: &str| -> Vec<Json> { rows(&replica, text).into_iter().map(Json::from).collect() };
    assert_eq!(
        shown("select * from c order by id"),
        [json!([10, 2, 3]), json!([20, 3, 2]), json!([30, 4, 1])]
    );
    assert_eq!(
        shown("select * from n order by id"),
        [json!([10, null]), json!([20, null]), json!([30, null])]
    );
    assert_eq!(shown("select * from s order by id"), [json!([2, null]), json!([3, 2]), json!([4, 3])]);
    replica.shutdown();
}
