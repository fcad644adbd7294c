//! `query_fault_stays_local`: a fault ends one query; its owner is told first, then its subscribers; the rest continue.
//!
//! Seen to fail: with a worker failing the whole family for an evaluation error of one binding, the neighbour of the same
//! shape ends too; with the drain ending the binding before it tells the owner, the recorded order is the other way
//! round.

use crate::{
    slow_worker_holds_only_its_own::{costly_condition, set, slow_and_quick},
    support::{
        http::Http,
        raw::Raw,
        server::{TestServer, block_on, memory, until, within},
    },
};
use parking_lot::Mutex;
use serde_json::{Map, Value as Json, json};
use std::{sync::Arc, time::Duration};
use tidegate_client::{Codec, ErrorCode};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Recipient, Sink},
    handle::{QueryRequest, QuerySource, Replica, ReplicaOptions},
    query::Output,
    store::Commits,
    worker::{BindingId, Fault, QueryId},
};
use tidegate_wire::{
    model::{Cv, Epoch, SubId, commit::TablesLine},
    protocol::{ServerMessage, server::Faulted},
};

fn tables() -> Json {
    let columns = json!([{"name": "id", "type": "int8"}, {"name": "kind", "type": "int8"}, {"name": "n", "type": "int8"}]);
    json!({"tables": [{"name": "t", "columns": columns, "primary_key": ["id"]}]})
}

fn row(id: u64, kind: u64) -> Json {
    json!({"insert": "t", "row": {"id": id, "kind": kind, "n": 5}})
}

/// Rows of a kind whose `n` divides 10 to 2: a family with one binding for each kind.
fn divides(kind: u64) -> Json {
    json!({"table": "t", "where": {"op": "and", "args": [
        {"op": "=", "args": [{"col": "kind"}, kind]},
        {"op": "=", "args": [{"op": "/", "args": [10, {"col": "n"}]}, 2]}]}})
}

fn set_n(id: u64, n: i64) -> Json {
    json!({"ops": [{"update": "t", "key": {"id": id}, "set": {"n": n}}]})
}

/// Reads up to a `faulted`.
async fn faulted(raw: &mut Raw) -> Faulted {
    loop {
        if let ServerMessage::Faulted(faulted) = raw.message().await {
            return faulted;
        }
    }
}

fn batches_of(seen: &[ServerMessage], sub: u64) -> usize {
    seen.iter().filter(|m| matches!(m, ServerMessage::Batch(batch) if batch.sub.0 == sub)).count()
}

#[test]
fn query_fault_stays_local() {
    block_on(async {
        let server = TestServer::start(memory()).await;
        let mut http = Http::connect(server.addr()).await;
        http.commit([&tables(), &json!({"ops": [row(1, 1), row(2, 2)]})]).await;
        let mut one = Raw::hello(server.addr(), Codec::MessagePack, json!({})).await;
        let mut other = Raw::hello(server.addr(), Codec::Json, json!({})).await;
        for raw in [&mut one, &mut other] {
            // The one that will fault, its neighbour in the family, and a query of another shape on the same rows.
            for (sub, query) in [(1, divides(1)), (2, divides(2)), (3, json!({"table": "t"}))] {
                raw.subscribe(sub, query).await;
                raw.snapshot(sub).await;
            }
        }
        let cv = http.commit([&set_n(1, 0)]).await;
        for raw in [&mut one, &mut other] {
            let fault = faulted(raw).await;
            assert_eq!((fault.sub.0, fault.code, fault.retry), (1, ErrorCode::QueryFaulted, false));
            assert!(fault.message.contains("zero"), "{}", fault.message);
            raw.released(cv).await;
        }
        // The others go on, the neighbour of the same shape too.
        let cv = http.commit([&set_n(2, 1)]).await;
        for raw in [&mut one, &mut other] {
            let seen = raw.released(cv).await;
            assert_eq!((batches_of(&seen, 1), batches_of(&seen, 2), batches_of(&seen, 3)), (0, 1, 1));
        }
        // At hydration it is the same fault; its number is used up.
        one.subscribe(4, divides(1)).await;
        let fault = faulted(&mut one).await;
        assert_eq!((fault.sub.0, fault.code), (4, ErrorCode::QueryFaulted));
        one.subscribe(1, divides(2)).await;
        assert_eq!(one.error().await.0, ErrorCode::BadMessage);
        // When the data are sound again, so is the query.
        http.commit([&set_n(1, 5)]).await;
        one.subscribe(5, divides(1)).await;
        assert_eq!(one.snapshot(5).await.len(), 1);
        let answer = http.put("/v1/queries/divides", &json!({"query": divides(1)})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        http.commit([&set_n(1, 0)]).await;
        let rows = http.get("/v1/queries/divides/rows").await;
        assert_eq!((rows.status, rows.code().as_str()), (422, "query_faulted"));
        drop((one, other));
        server.stop().await;
    });
}

#[test]
fn a_query_beyond_its_deadline_is_faulted_and_no_other() {
    block_on(async {
        let mut config = memory();
        config.workers.deadline_ms = Duration::from_millis(50);
        let (server, mut http) = slow_and_quick(config, 3_000, 1_000).await;
        let mut raw = Raw::hello(server.addr(), Codec::Json, json!({})).await;
        raw.subscribe(1, json!({"table": "quick"})).await;
        raw.snapshot(1).await;
        raw.subscribe(2, json!({"table": "slow", "where": costly_condition(100)})).await;
        let fault = faulted(&mut raw).await;
        assert_eq!((fault.sub.0, fault.code, fault.retry), (2, ErrorCode::QueryFaulted, true));
        let cv = http.commit([&set("quick", 1, 7)]).await;
        assert_eq!(batches_of(&raw.released(cv).await, 1), 1);
        drop(raw);
        server.stop().await;
    });
}

/// Records who is told of faults, in order.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Sink for Recorder {
    fn subscribed(&mut self, _: ConnId, _: SubId, _: Epoch, _: &Arc<Output>, _: bool) {}
    fn batch(&mut self, _: &BatchOps, recipients: &[Recipient]) {
        // One call may be for several.
        self.0.lock().extend(recipients.iter().map(|to| format!("batch {}", to.conn.0)));
    }
    fn progress(&mut self, _: ConnId, _: Cv) {}
    fn faulted(&mut self, conn: ConnId, sub: SubId, _: &Fault) {
        self.0.lock().push(format!("faulted {} {}", conn.0, sub.0));
    }
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {
        self.0.lock().push("owner".to_owned());
    }
}

/// The order is the drain's doing and does not show on a socket, so the replica is driven directly.
#[test]
fn the_owner_is_told_before_the_subscribers() {
    block_on(async {
        let recorder = Recorder::default();
        let options = ReplicaOptions { data_dir: None, workers: 1, ..ReplicaOptions::default() };
        let replica = Replica::start(options, Box::new(recorder.clone()), |_, _| ()).expect("it starts");
        let tables: TablesLine = serde_json::from_value(tables()).expect("tables");
        replica.create_tables(tables.tables).await.expect("taken");
        let commit = |line: Json| {
            let draft = replica.draft(line.to_string().as_bytes()).expect("a commit");
            replica.commit(Commits { drafts: vec![draft], ..Commits::default() })
        };
        commit(json!({"ops": [row(1, 1)]})).await;
        for conn in 1..=3 {
            replica.connect(ConnId(conn)).await;
            let request = QueryRequest { source: QuerySource::Query(divides(1)), args: Map::new() };
            let query = replica.prepare(&request, &Map::new()).expect("sound");
            replica.subscribe(ConnId(conn), SubId(1), &query, None).await.expect("taken");
        }
        let told = async |wanted: usize| {
            until("the drain's calls", async || recorder.0.lock().len() >= wanted).await;
            std::mem::take(&mut *recorder.0.lock())
        };
        told(3).await;
        commit(set_n(1, 0)).await;
        let mut order = told(4).await;
        assert_eq!(order.remove(0), "owner");
        order.sort_unstable();
        assert_eq!(order, ["faulted 1 1", "faulted 2 1", "faulted 3 1"]);
        let stopped = tokio::task::spawn_blocking(move || replica.shutdown());
        within("the replica's end", stopped).await.expect("no panic");
    });
}
