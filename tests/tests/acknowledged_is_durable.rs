//! `acknowledged_is_durable`: a write that was acknowledged survives `kill -9`.
//!
//! The real binary on a real data folder, killed 50 times at random moments while four writers commit: bodies of several
//! lines with an `Idempotency-Key`, single commits, and mutations over a WebSocket. Every commit inserts one row, so that
//! after a restart the newest commit version tells how many rows there have to be: none lost, none doubled, no gap.
//!
//! Seen to fail: with the store syncing only every 16th commit, the first restart does not even know the table; with the
//! idempotency key left out of a commit's record, the repeat of a half-applied body is a `conflict`.

use crate::support::{
    binary::Process,
    http::Http,
    raw::{Next, Raw},
    seeds::seeds,
    server::{block_on, within},
};
use hyper::Method;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use std::{collections::BTreeSet, net::SocketAddr, time::Duration};
use tidegate_client::Codec;
use tidegate_wire::protocol::ServerMessage;
use tokio::{sync::mpsc, task::JoinSet};

/// Commits in one body.
const LINES: u64 = 5;

/// What is known of one writer's rows `0, 1, 2, …`: those below `acknowledged` must be there, one more attempt may be.
#[derive(Clone, Copy, Debug)]
struct Writer {
    kind: Kind,
    name: &'static str,
    acknowledged: u64,
    /// Rows that were sent and not acknowledged.
    in_flight: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Body,
    Single,
    Push,
}

impl Writer {
    fn row(self, number: u64) -> String {
        format!("{}-{number:06}", self.name)
    }

    fn op(self, number: u64) -> Json {
        json!({"insert": "log", "row": {"id": self.row(number)}})
    }

    /// The body whose first row has this number, and its key.
    fn body(self, first: u64) -> (String, String) {
        let lines = (first..first + LINES).map(|number| format!("{}\n", json!({"ops": [self.op(number)]})));
        (format!("{}-{first}", self.name), lines.collect())
    }

    /// Writes until the server is gone; tells of every acknowledgement.
    async fn write(mut self, addr: SocketAddr, acknowledged: mpsc::UnboundedSender<()>) -> Self {
        match self.kind {
            Kind::Push => self.push(addr, &acknowledged).await,
            Kind::Body | Kind::Single => self.post(addr, &acknowledged).await,
        }
        self
    }

    async fn post(&mut self, addr: SocketAddr, acknowledged: &mpsc::UnboundedSender<()>) {
        let Some(mut http) = Http::try_connect(addr).await else { return };
        loop {
            let answer = if self.kind == Kind::Body {
                self.in_flight = LINES;
                let (key, body) = self.body(self.acknowledged);
                http.try_send(Method::POST, "/v1/commits", &[("idempotency-key", &key)], body).await
            } else {
                self.in_flight = 1;
                let body = json!({"ops": [self.op(self.acknowledged)]}).to_string();
                http.try_send(Method::POST, "/v1/commits", &[], body).await
            };
            let Ok(answer) = answer else { return };
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            self.acknowledged += std::mem::take(&mut self.in_flight);
            let _ = acknowledged.send(());
        }
    }

    async fn push(&mut self, addr: SocketAddr, acknowledged: &mpsc::UnboundedSender<()>) {
        let hello = json!({"client_id": self.name});
        let Some(mut raw) = Raw::try_hello(addr, Codec::MessagePack, hello).await else { return };
        loop {
            // Two at a time: the second may be lost where the first is not.
            while self.in_flight < 2 {
                let number = self.acknowledged + self.in_flight;
                let mutation = json!({"id": number + 1, "ops": [self.op(number)]});
                self.in_flight += 1;
                if raw.try_send(&json!({"push": {"mutations": [mutation]}})).await.is_err() {
                    return;
                }
            }
            match raw.next().await {
                Next::Message(ServerMessage::PushResult(result)) => {
                    assert_eq!((result.id, &result.error), (self.acknowledged + 1, &None));
                    self.acknowledged += 1;
                    self.in_flight -= 1;
                    let _ = acknowledged.send(());
                }
                Next::Message(_) => {}
                Next::Closed(_) => return,
            }
        }
    }
}

async fn rows(http: &mut Http) -> BTreeSet<String> {
    assert_eq!(http.put("/v1/queries/all", &json!({"query": {"table": "log"}})).await.status, 200);
    let rows = http.get("/v1/queries/all/rows").await.json();
    let rows = rows["rows"].as_array().expect("rows");
    let ids: BTreeSet<String> =
        rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(ids.len(), rows.len());
    ids
}

async fn cv(http: &mut Http) -> u64 {
    http.status().await["cv"].as_u64().expect("a cv")
}

/// Looks at what a writer finds after a restart, and repeats what it does not know the outcome of.
async fn recover(writer: &mut Writer, http: &mut Http, addr: SocketAddr) {
    let there = rows(http).await;
    let before = cv(http).await;
    for number in 0..writer.acknowledged {
        assert!(there.contains(&writer.row(number)), "{} was acknowledged and is lost", writer.row(number));
    }
    let in_flight = writer.acknowledged..writer.acknowledged + std::mem::take(&mut writer.in_flight);
    let present: Vec<bool> = in_flight.clone().map(|number| there.contains(&writer.row(number))).collect();
    assert!(present.is_sorted_by(|earlier, later| earlier >= later), "out of order: {present:?}");
    let missing = present.iter().filter(|present| !**present).count() as u64;
    match writer.kind {
        Kind::Single => {
            // Without a key there is no safe repeat; the client looks what is there.
            writer.acknowledged += in_flight.count() as u64 - missing;
            return;
        }
        Kind::Body if in_flight.is_empty() => {}
        Kind::Body => {
            let (key, body) = writer.body(in_flight.start);
            let headers = [("idempotency-key", key.as_str())];
            let answer = http.send(Method::POST, "/v1/commits", &headers, body.clone()).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            let again = http.send(Method::POST, "/v1/commits", &headers, body).await;
            assert_eq!(again.json(), answer.json());
        }
        Kind::Push => {
            let mut raw = Raw::hello(addr, Codec::Json, json!({"client_id": writer.name})).await;
            for number in in_flight.clone() {
                let mutation = json!({"id": number + 1, "ops": [writer.op(number)]});
                raw.send(&json!({"push": {"mutations": [mutation]}})).await;
            }
            let mut results = Vec::new();
            for message in raw.round_trip().await {
                if let ServerMessage::PushResult(result) = message {
                    assert_eq!(result.error, None);
                    results.push(result.id - 1);
                }
            }
            assert!(results.into_iter().eq(in_flight.clone()));
        }
    }
    writer.acknowledged = in_flight.end;
    assert_eq!(cv(http).await, before + missing, "the repeat does only what is missing");
}

#[test]
fn acknowledged_is_durable() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Process::serve(folder.path()).await;
        let mut http = Http::connect(process.addr).await;
        let columns = json!([{"name": "id", "type": "text"}]);
        let tables = json!({"tables": [{"name": "log", "columns": columns, "primary_key": ["id"]}]});
        let first_cv = http.commit([&tables]).await;
        let writer = |kind, name| Writer { kind, name, acknowledged: 0, in_flight: 0 };
        let mut writers = vec![
            writer(Kind::Body, "body-a"),
            writer(Kind::Body, "body-b"),
            writer(Kind::Single, "single"),
            writer(Kind::Push, "push"),
        ];
        let mut half_applied = 0;
        // A long run of the random tests is not one of thousands of restarts.
        for seed in seeds(50).take(500) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (sender, mut acknowledged) = mpsc::unbounded_channel();
            let mut running = JoinSet::new();
            for writer in writers.drain(..) {
                running.spawn(writer.write(process.addr, sender.clone()));
            }
            // Some acknowledgements, and then any moment of the following ones.
            for _ in 0..rng.random_range(1..20) {
                within("an acknowledgement", acknowledged.recv()).await.expect("writers write");
            }
            tokio::time::sleep(Duration::from_micros(rng.random_range(0..3_000))).await;
            process.kill().await;
            writers = within("the writers' end", running.join_all()).await;
            writers.sort_by_key(|writer| writer.name);

            process = Process::serve(folder.path()).await;
            let mut http = Http::connect(process.addr).await;
            let there = rows(&mut http).await;
            let cv = cv(&mut http).await;
            assert_eq!(cv, first_cv + there.len() as u64, "seed {seed}: one row for each commit version");
            for writer in &mut writers {
                let count =
                    |from: u64, to: u64| (from..to).filter(|n| there.contains(&writer.row(*n))).count();
                let found = count(writer.acknowledged, writer.acknowledged + writer.in_flight) as u64;
                half_applied += u64::from(found > 0 && found < writer.in_flight);
                recover(writer, &mut http, process.addr).await;
            }
        }
        let written: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
        println!("{written} rows; {half_applied} attempts found half applied");
        process.kill().await;
    });
}
