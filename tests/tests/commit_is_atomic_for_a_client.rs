//! `commit_is_atomic_for_a_client`: no client state shows part of a commit, even when its rows came in several batches.
//!
//! Every commit gives all rows of a large table, and the row of a small one that another worker serves, a new number.
//! A commit is more than a worker tells the drain at once, and the large snapshot more than one frame holds. At every
//! release, and at every moment in between that another task happens to look, all rows have one number.
//!
//! Seen to fail: with `cv_min` the newest commit version whatever the connection's workers have reached, the small table
//! shows commit 1 beside the large one's 0.

use crate::support::{
    http::Http,
    server::{TestServer, block_on, memory, within},
    tap::Tap,
};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use tidegate_client::{Client, ClientOptions, Codec, Query, Rows, ValueRef, View, ViewStatus};

/// More than a worker's slice of 16,384 changes.
const ROWS: u64 = 17_000;
const COMMITS: u64 = 6;

struct Held {
    client: Client,
    large: View,
    small: View,
}

fn numbers(rows: &Rows) -> BTreeSet<i64> {
    let number = |value: Option<ValueRef<'_>>| match value {
        Some(ValueRef::Int8(n)) => n,
        other => panic!("a number: {other:?}"),
    };
    rows.iter().map(|row| number(row.get("n"))).collect()
}

/// What a client shows at this moment, if it shows one number.
fn look(held: &Held) -> Result<(), String> {
    let snapshot = held.client.snapshot();
    // A view is shown from its first result on.
    let shown = [(&held.large, ROWS as usize), (&held.small, 1)].map(|(view, whole)| {
        let rows = snapshot.rows(view);
        (view.status() == ViewStatus::Complete && !rows.is_empty())
            .then(|| (rows.len() == whole, numbers(&rows)))
    });
    let different: BTreeSet<i64> = shown.iter().flatten().flat_map(|(_, numbers)| numbers.clone()).collect();
    if different.len() <= 1 && shown.iter().flatten().all(|(whole, _)| *whole) {
        return Ok(());
    }
    Err(format!("cv {}: {shown:?}", snapshot.cv()))
}

/// Ends the task that looks, also when the test fails.
struct Done(Arc<AtomicBool>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn commit_is_atomic_for_a_client() {
    block_on(async {
        let server = TestServer::start(memory()).await;
        let mut http = Http::connect(server.addr()).await;
        let columns = json!([{"name": "id", "type": "int8"}, {"name": "n", "type": "int8"},
            {"name": "text", "type": "text", "nullable": true}]);
        let table = |name: &str| json!({"name": name, "columns": columns, "primary_key": ["id"]});
        let insert = |table: &str, id: u64| json!({"insert": table, "row": {"id": id, "n": 0, "text": "some text that makes it longer ".repeat(3)}});
        let rows: Vec<Json> = (0..ROWS).map(|id| insert("large", id)).chain([insert("small", 0)]).collect();
        http.commit([&json!({"tables": [table("large"), table("small")]}), &json!({ "ops": rows })]).await;

        for codec in Codec::ALL {
            let held: Arc<Mutex<Option<Held>>> = Arc::default();
            let failures: Arc<Mutex<Vec<String>>> = Arc::default();
            let releases = Arc::new(AtomicU64::new(0));
            let on_release = {
                let (held, failures, releases) = (held.clone(), failures.clone(), releases.clone());
                move || {
                    releases.fetch_add(1, Relaxed);
                    if let Some(Err(failure)) = held.lock().as_ref().map(look) {
                        failures.lock().push(failure);
                    }
                }
            };
            let broken = failures.clone();
            let (tap, _) = Tap::new(on_release, move |what| broken.lock().push(what));
            let options = ClientOptions::default().codec(codec);
            let client = Client::start(&server.url(), options, Arc::new(tap)).expect("an address");
            {
                // Both are asked for before the hook looks.
                let mut held = held.lock();
                let large = client.open(Query::json(json!({"table": "large"})));
                let small = client.open(Query::json(json!({"table": "small"})));
                *held = Some(Held { client: client.clone(), large, small });
            }
            let done = Done(Arc::new(AtomicBool::new(false)));
            let any_moment = tokio::task::spawn_blocking({
                let (held, failures, done) = (held.clone(), failures.clone(), done.0.clone());
                move || {
                    let mut looks = 0_u64;
                    while !done.load(Relaxed) {
                        let outcome = held.lock().as_ref().map(look);
                        if let Some(Err(failure)) = outcome {
                            failures.lock().push(failure);
                        }
                        looks += 1;
                        std::thread::yield_now();
                    }
                    looks
                }
            });
            for n in 1..=COMMITS {
                let set = |table: &str, id: u64| json!({"update": table, "key": {"id": id}, "set": {"n": n}});
                let ops: Vec<Json> = (0..ROWS).map(|id| set("large", id)).chain([set("small", 0)]).collect();
                let cv = http.commit([&json!({ "ops": ops })]).await;
                let released = async {
                    let mut looks = tokio::time::interval(std::time::Duration::from_millis(5));
                    while client.cv().0 < cv && failures.lock().is_empty() {
                        looks.tick().await;
                    }
                };
                within("the commit's release", released).await;
                if let Some(failure) = failures.lock().first() {
                    panic!("{codec:?}: {failure}");
                }
            }
            drop(done);
            let looks = any_moment.await.expect("it does not panic");
            assert!(looks > 0 && releases.load(Relaxed) > COMMITS / 2, "something was looked at");
            held.lock().take();
            client.close().await;
            let back: Vec<Json> = (0..ROWS)
                .map(|id| json!({"update": "large", "key": {"id": id}, "set": {"n": 0}}))
                .chain([json!({"update": "small", "key": {"id": 0}, "set": {"n": 0}})])
                .collect();
            http.commit([&json!({ "ops": back })]).await;
        }
        server.stop().await;
    });
}
