//! A small scenario for the invariants of delivery: tables of one counter each, with queries that stand on different
//! workers, and commits that move some of the counters. What each commit version shows is known beforehand.

use super::{
    http::Http,
    server::{TestServer, memory},
};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};
use tidegate_wire::protocol::{Cell, ServerMessage, server::Op};

/// How many tables there are, and workers.
pub(crate) const COUNTERS: usize = 3;

/// A server with the counters, each at 0.
pub(crate) struct Counters {
    pub(crate) server: TestServer,
    pub(crate) http: Http,
    /// The counters at each commit version.
    pub(crate) at: BTreeMap<u64, [i64; COUNTERS]>,
}

/// The query of one counter.
pub(crate) fn counter(index: usize) -> Json {
    json!({ "table": format!("counter{index}") })
}

impl Counters {
    pub(crate) async fn start() -> Self {
        let mut config = memory();
        config.workers.count = COUNTERS;
        let server = TestServer::start(config).await;
        let mut http = Http::connect(server.addr()).await;
        let int8 = |name: &str| json!({"name": name, "type": "int8"});
        let tables: Vec<Json> = (0..COUNTERS)
            .map(|index| {
                let name = format!("counter{index}");
                json!({"name": name, "columns": [int8("id"), int8("n")], "primary_key": ["id"]})
            })
            .collect();
        let ops: Vec<Json> = (0..COUNTERS)
            .map(|index| json!({"insert": format!("counter{index}"), "row": {"id": 1, "n": 0}}))
            .collect();
        let cv = http.commit([&json!({ "tables": tables }), &json!({ "ops": ops })]).await;
        Self { server, http, at: BTreeMap::from([(cv, [0; COUNTERS])]) }
    }

    /// A commit that moves some counters, as it is posted. [`Counters::at`] knows it from now on.
    pub(crate) fn next_commit(&mut self, rng: &mut ChaCha8Rng) -> Json {
        let (cv, mut now) = self.at.last_key_value().map(|(cv, now)| (*cv, *now)).expect("a first one");
        let mut ops = Vec::new();
        for (index, n) in now.iter_mut().enumerate() {
            if rng.random_bool(0.6) {
                *n += 1;
                ops.push(json!({"update": format!("counter{index}"), "key": {"id": 1}, "set": {"n": *n}}));
            }
        }
        self.at.insert(cv + 1, now);
        json!({ "ops": ops })
    }

    /// A number of commits as one body.
    pub(crate) fn next_commits(&mut self, rng: &mut ChaCha8Rng, count: usize) -> String {
        (0..count).map(|_| format!("{}\n", self.next_commit(rng))).collect()
    }

    /// The newest commit version handed out.
    pub(crate) fn newest(&self) -> u64 {
        *self.at.last_key_value().expect("a first one").0
    }
}

/// What batches said of the counters, by subscription: the counter at each batch's commit version.
#[derive(Default)]
pub(crate) struct Told(HashMap<u64, BTreeMap<u64, i64>>);

impl Told {
    /// Takes a message's news.
    pub(crate) fn take(&mut self, message: &ServerMessage) {
        let ServerMessage::Batch(batch) = message else { return };
        for op in &batch.ops {
            let (Op::Add { cells, .. } | Op::Edit { cells, .. }) = op else {
                panic!("counters stay: {op:?}")
            };
            let n = match cells[1] {
                Cell::Int(n) => n,
                ref other => panic!("a counter is a number: {other:?}"),
            };
            self.0.entry(batch.sub.0).or_default().insert(batch.cv.0, n);
        }
    }

    /// What a subscription shows once `cv` is released.
    pub(crate) fn at(&self, sub: u64, cv: u64) -> Option<i64> {
        let told = self.0.get(&sub)?;
        told.range((Bound::Unbounded, Bound::Included(cv))).next_back().map(|(_, n)| *n)
    }

    /// The subscriptions that batches came for.
    pub(crate) fn subs(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }
}
