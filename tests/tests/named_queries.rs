//! What a name stands for, while it is given to another query.

use crate::support::server::{block_on, until, within};
use parking_lot::Mutex;
use serde_json::{Map, Value as Json, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Recipient, Sink},
    handle::{NamedQuery, PreparedQuery, QueryRequest, QuerySource, Replica, ReplicaOptions, ResumePoint},
    query::{Output, QueryErrorKind},
    store::Commits,
    worker::{BindingId, Fault, FaultCause, QueryId},
};
use tidegate_wire::model::{ColumnType, Cv, Epoch, SubId, commit::TablesLine};

/// What the drain said to each connection, in order.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Subscribed { resumed: bool },
    Batch { rows: usize },
    Progress(Cv),
    Faulted(FaultCause),
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<(ConnId, Told)>>>);

impl Recorder {
    fn push(&self, conn: ConnId, told: Told) {
        self.0.lock().push((conn, told));
    }

    fn of(&self, conn: u64) -> Vec<Told> {
        self.0.lock().iter().filter(|(to, _)| to.0 == conn).map(|(_, told)| told.clone()).collect()
    }

    async fn wait(&self, conn: u64, wanted: impl Fn(&Told) -> bool) -> Told {
        until("the drain's word", async || self.of(conn).iter().any(&wanted)).await;
        self.of(conn).into_iter().find(wanted).expect("it came")
    }
}

impl Sink for Recorder {
    fn subscribed(&mut self, conn: ConnId, _: SubId, _: Epoch, _: &Arc<Output>, resumed: bool) {
        self.push(conn, Told::Subscribed { resumed });
    }
    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        for to in recipients {
            self.push(to.conn, Told::Batch { rows: batch.ops.len() });
        }
    }
    fn progress(&mut self, conn: ConnId, cv_min: Cv) {
        self.push(conn, Told::Progress(cv_min));
    }
    fn faulted(&mut self, conn: ConnId, _: SubId, fault: &Fault) {
        self.push(conn, Told::Faulted(fault.cause));
    }
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}

/// A replica with ten rows, `g` being 0 or 1.
async fn replica(options: ReplicaOptions) -> (Replica, Recorder) {
    let recorder = Recorder::default();
    let replica = Replica::start(options, Box::new(recorder.clone()), |_, _| ()).expect("it starts");
    let columns = json!([{"name": "id", "type": "int8"}, {"name": "g", "type": "int8"}]);
    let tables = json!({"tables": [{"name": "t", "columns": columns, "primary_key": ["id"]}]});
    let tables: TablesLine = serde_json::from_value(tables).expect("tables");
    replica.create_tables(tables.tables).await.expect("taken");
    let rows: Vec<_> = (0..10).map(|id| insert(id, id % 2)).collect();
    commit(&replica, json!({ "ops": rows })).await;
    (replica, recorder)
}

fn insert(id: u64, g: u64) -> Json {
    json!({"insert": "t", "row": {"id": id, "g": g}})
}

async fn commit(replica: &Replica, line: Json) -> Cv {
    let draft = replica.draft(line.to_string().as_bytes()).expect("a commit");
    let outcome = replica.commit(Commits { drafts: vec![draft], ..Commits::default() }).await;
    assert_eq!(outcome.refused, None);
    outcome.cv
}

/// A named query `q` of the first `limit` rows with that `g`.
fn first(limit: u64, g: u64) -> NamedQuery {
    let source = json!({"table": "t", "where": {"op": "=", "args": [{"col": "g"}, g]}, "limit": limit});
    NamedQuery {
        name: "q".to_owned(),
        source: QuerySource::Query(source),
        args: BTreeMap::new(),
        pin: false,
        idle_ttl_ms: None,
    }
}

fn by_name(replica: &Replica) -> PreparedQuery {
    let request = QueryRequest { source: QuerySource::Name("q".to_owned()), args: Map::new() };
    replica.prepare(&request, &Map::new()).expect("there is one")
}

async fn shut_down(replica: Replica) {
    let stopped = tokio::task::spawn_blocking(move || replica.shutdown());
    within("the replica's end", stopped).await.expect("no panic");
}

/// The definition can change between looking the name up and attaching to it.
#[test]
fn a_subscription_by_name_is_to_what_the_name_stands_for() {
    block_on(async {
        let (replica, recorder) = replica(ReplicaOptions::default()).await;
        replica.put_query(first(2, 0)).await.expect("sound");
        let before = by_name(&replica);
        replica.put_query(first(4, 1)).await.expect("sound");
        replica.connect(ConnId(1)).await;
        replica.subscribe(ConnId(1), SubId(1), &before, None).await.expect("taken");
        let batch = recorder.wait(1, |told| matches!(told, Told::Batch { .. })).await;
        assert_eq!(batch, Told::Batch { rows: 4 });
        assert_eq!(replica.query("q").expect("there is one").1.subscribers, 1);

        replica.put_query(first(3, 1)).await.expect("sound");
        recorder.wait(1, |told| *told == Told::Faulted(FaultCause::Replaced)).await;
        let before = by_name(&replica);
        assert!(replica.delete_query("q").await);
        let refused = replica.subscribe(ConnId(1), SubId(2), &before, None).await;
        assert_eq!(refused.map_err(|error| error.kind), Err(QueryErrorKind::UnknownName));
        shut_down(replica).await;
    });
}

/// However far the old definition's rows were released, they are not taken for the new one's.
#[test]
fn nothing_of_the_replaced_definition_is_resumed() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ReplicaOptions {
            data_dir: Some(folder.path().to_owned()),
            fsync: false,
            ..ReplicaOptions::default()
        };
        let (replica, recorder) = replica(options).await;
        replica.put_query(first(1_000_000, 0)).await.expect("sound");
        let stop = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn({
            let (replica, stop) = (replica.clone(), Arc::clone(&stop));
            async move {
                let mut id = 1_000;
                while !stop.load(Relaxed) {
                    id += 1;
                    commit(&replica, json!({"ops": [insert(id, id % 2)]})).await;
                }
            }
        });
        for round in 1..=20 {
            let (old, new) = (ConnId(2 * round), ConnId(2 * round + 1));
            replica.connect(old).await;
            let query = by_name(&replica);
            let epoch = replica.subscribe(old, SubId(1), &query, None).await.expect("taken");
            recorder.wait(old.0, |told| matches!(told, Told::Progress(_))).await;
            // The same but for a constant, which the fingerprint does not cover.
            replica.put_query(first(1_000_000, round % 2)).await.expect("sound");
            recorder.wait(old.0, |told| matches!(told, Told::Faulted(_))).await;
            let held = recorder.of(old.0).into_iter().rev().find_map(|told| match told {
                Told::Progress(cv) => Some(cv),
                _ => None,
            });
            let query = by_name(&replica);
            let (cv, fp) = (held.expect("it was released"), query.output.fp);
            let point = ResumePoint { epoch: Some(epoch), cv, fp };
            replica.connect(new).await;
            replica.subscribe(new, SubId(1), &query, Some(point)).await.expect("taken");
            let told = recorder.wait(new.0, |told| matches!(told, Told::Subscribed { .. })).await;
            assert_eq!(told, Told::Subscribed { resumed: false }, "round {round}, {point:?}");
        }
        stop.store(true, Relaxed);
        within("the writer's end", writer).await.expect("no panic");
        shut_down(replica).await;
    });
}

/// Rows whose `g` divides 10: those with `g` 0 fault it.
fn divides() -> Json {
    json!({"table": "t", "where": {"op": ">", "args": [{"op": "/", "args": [10, {"col": "g"}]}, 0]}})
}

fn remove(id: u64) -> Json {
    json!({"ops": [{"delete": "t", "key": {"id": id}}]})
}

/// A replica without rows whose `g` is 0.
async fn divisible() -> (Replica, Recorder) {
    let (replica, recorder) = replica(ReplicaOptions::default()).await;
    for id in [0, 2, 4, 6, 8] {
        commit(&replica, remove(id)).await;
    }
    (replica, recorder)
}

#[test]
fn a_faulted_subscription_is_counted_no_more() {
    block_on(async {
        let (replica, recorder) = divisible().await;
        let query = NamedQuery { source: QuerySource::Query(divides()), ..first(1, 1) };
        replica.put_query(query).await.expect("sound");
        replica.connect(ConnId(1)).await;
        for sub in 1..=3 {
            let query = by_name(&replica);
            replica.subscribe(ConnId(1), SubId(sub), &query, None).await.expect("taken");
            commit(&replica, json!({"ops": [insert(100, 0)]})).await;
            let faults = || recorder.of(1).iter().filter(|told| matches!(told, Told::Faulted(_))).count();
            until("the fault", async || faults() as u64 == sub).await;
            assert_eq!(replica.query("q").expect("there is one").1.subscribers, 0);
            assert_eq!(replica.status().subscriptions, 0);
            commit(&replica, remove(100)).await;
        }
        shut_down(replica).await;
    });
}

#[test]
fn a_pinned_query_is_pinned_again_after_a_fault() {
    block_on(async {
        let (replica, recorder) = divisible().await;
        let pinned = || NamedQuery { source: QuerySource::Query(divides()), pin: true, ..first(1, 1) };
        let status = || replica.query("q").expect("there is one").1;
        assert_eq!(replica.put_query(pinned()).await, Ok(None));
        until("the hydration", async || status().rows == 5).await;
        commit(&replica, json!({"ops": [insert(100, 0)]})).await;
        until("the fault", async || status().fault.is_some_and(|fault| fault.contains("zero"))).await;
        commit(&replica, remove(100)).await;
        until("the next attempt", async || status().rows == 5).await;
        assert_eq!(status().fault, None);

        // One that faults at once says so.
        commit(&replica, json!({"ops": [insert(100, 0)]})).await;
        let fault = replica.put_query(pinned()).await.expect("taken").expect("it faults");
        assert_eq!(fault.kind, QueryErrorKind::QueryFaulted);
        until("the fault", async || status().fault.is_some()).await;
        commit(&replica, remove(100)).await;
        // A subscriber brings the next attempt about, and its end leaves the pin.
        replica.connect(ConnId(1)).await;
        replica.subscribe(ConnId(1), SubId(1), &by_name(&replica), None).await.expect("taken");
        assert_eq!(
            recorder.wait(1, |told| matches!(told, Told::Batch { .. })).await,
            Told::Batch { rows: 5 }
        );
        until("the pin", async || status().fault.is_none()).await;
        replica.unsubscribe(ConnId(1), SubId(1)).await;
        assert_eq!((status().rows, status().bindings, status().subscribers), (5, 1, 0));
        shut_down(replica).await;
    });
}

#[test]
fn declared_parameters_are_given_and_of_their_type() {
    block_on(async {
        let (replica, _) = replica(ReplicaOptions::default()).await;
        let source = json!({"table": "t", "where": {"op": "in", "args": [{"col": "g"}, {"param": "used"}]}});
        let args = [("used", ColumnType::Int8), ("unused", ColumnType::Date)];
        let args = args.map(|(name, ty)| (name.to_owned(), ty)).into();
        let query = NamedQuery { source: QuerySource::Query(source), args, ..first(1, 1) };
        replica.put_query(query).await.expect("sound");
        for (args, taken) in [
            (json!({"used": 1, "unused": "2013-02-04"}), true),
            (json!({"used": [1, 2.5, null], "unused": null}), true),
            (json!({"used": 1}), false),
            (json!({"unused": "2013-02-04"}), false),
            (json!({"used": 1, "unused": 5}), false),
            (json!({"used": 1, "unused": "2013-02-30"}), false),
            (json!({"used": [1, "x"], "unused": "2013-02-04"}), false),
            (json!({"used": 1, "unused": "2013-02-04", "other": 1}), false),
        ] {
            let Json::Object(object) = args.clone() else { unreachable!() };
            let request = QueryRequest { source: QuerySource::Name("q".to_owned()), args: object };
            let prepared = replica.prepare(&request, &Map::new()).map(drop).map_err(|error| error.kind);
            let expected = if taken { Ok(()) } else { Err(QueryErrorKind::BadArgs) };
            assert_eq!(prepared, expected, "{args}");
        }
        shut_down(replica).await;
    });
}
