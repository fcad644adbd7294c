//! `progress_is_irrevocable`: `cv_min` never goes back, and after `cv_min = v` no incremental batch with cv ≤ v follows.
//! A subscription added later hydrates at some cv ≥ v and is released when `cv_min` reaches it.
//!
//! Subscriptions are added and dropped all the time while commits run, so that the least of a connection's positions
//! could go back at any of them. Every message is held against the laws in `support/laws.rs`.
//!
//! Seen to fail: with the drain telling an earlier `cv_min` after every seventh, `cv_min` 27 comes after 28; with `cv_min`
//! the newest commit version instead of the least of a connection's workers, a release shows an old counter.

use crate::support::{
    counters::{COUNTERS, Counters, Told, counter},
    raw::Raw,
    server::block_on,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_client::Codec;
use tidegate_wire::protocol::ServerMessage;

#[test]
fn progress_is_irrevocable() {
    block_on(async {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut counters = Counters::start().await;
        let mut raw = Raw::hello(counters.server.addr(), Codec::MessagePack, json!({})).await;
        raw.subscribe(1, counter(0)).await;
        raw.snapshot(1).await;
        let mut live = Vec::new();
        let (mut late, mut previous) = (0, raw.laws.released());
        for sub in 2..150_u64 {
            let body = counters.next_commits(&mut rng, 8);
            // The subscription falls into the midst of the commits.
            let index = rng.random_range(0..COUNTERS);
            let mut query = counter(index);
            if rng.random_bool(0.5) {
                // A binding of its own in a family that may be there already.
                query["where"] = json!({"op": "<>", "args": [{"col": "id"}, sub]});
            }
            let mut told = Told::default();
            let request = json!({"subscribe": {"sub": sub, "query": query}});
            let (answer, sent) = tokio::join!(counters.http.post_commits(body), raw.try_send(&request));
            assert_eq!((answer.status, sent.is_ok()), (200, true));
            // A commit that moves what the first subscription shows.
            let newest = loop {
                let commit = counters.next_commit(&mut rng);
                counters.http.commit([&commit]).await;
                let moves = |op: &Json| op["update"] == "counter0";
                if commit["ops"].as_array().is_some_and(|ops| ops.iter().any(moves)) {
                    break counters.newest();
                }
            };
            let mut hydrated = BTreeMap::new();
            while raw.laws.released() < Some(newest) || !hydrated.contains_key(&sub) {
                let message = raw.message().await;
                told.take(&message);
                match &message {
                    ServerMessage::Batch(batch) if batch.sub.0 == sub && batch.seq.0 == 0 => {
                        let released = raw.laws.released().expect("a first release");
                        assert!(batch.cv.0 >= released, "hydrated at {} after cv_min {released}", batch.cv);
                        late += u64::from(batch.cv.0 > released);
                        hydrated.insert(sub, batch.cv.0);
                    }
                    ServerMessage::Progress(progress) => {
                        let cv = progress.cv_min.0;
                        assert!(previous.is_none_or(|previous| previous <= cv), "{previous:?}, then {cv}");
                        previous = Some(cv);
                    }
                    ServerMessage::Error(error) => panic!("{error:?}"),
                    _ => {}
                }
            }
            let wanted = hydrated[&sub].max(newest);
            while raw.laws.released() < Some(wanted) {
                told.take(&raw.message().await);
            }
            // What it shows when it is released is the counter as it is then.
            let released = raw.laws.released().expect("a release");
            assert_eq!(told.at(sub, released), Some(counters.at[&released][index]));
            live.push(sub);
            if rng.random_bool(0.7) {
                let gone = live.swap_remove(rng.random_range(0..live.len()));
                raw.send(&json!({"unsubscribe": {"sub": gone}})).await;
            }
        }
        println!("{late} of 148 late subscriptions hydrated beyond what was released");
        drop(raw);
        counters.server.stop().await;
    });
}
