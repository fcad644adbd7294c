//! `batches_precede_progress`: a connection gets every batch with cv ≤ v before `cv_min = v`.
//!
//! Three queries on three workers, commits that move some of their counters, connections of both codecs read frame by
//! frame: whenever `cv_min = v` comes, the batches so far have to show each counter as it is at v.
//!
//! Seen to fail: with `cv_min` the newest commit version instead of the least of a connection's workers (and the drain's
//! own assertions out of the way), a subscription shows 20 where the counter was 30.

use crate::support::{
    counters::{COUNTERS, Counters, Told, counter},
    raw::Raw,
    server::block_on,
};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tidegate_client::Codec;
use tidegate_wire::protocol::ServerMessage;

#[test]
fn batches_precede_progress() {
    block_on(async {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counters = Counters::start().await;
        let mut watchers = Vec::new();
        for codec in Codec::ALL {
            let mut raw = Raw::hello(counters.server.addr(), codec, json!({})).await;
            for index in 0..COUNTERS {
                raw.subscribe(index as u64 + 1, counter(index)).await;
            }
            watchers.push((raw, Told::default()));
        }
        let mut releases = 0;
        for _ in 0..40 {
            let body = counters.next_commits(&mut rng, 25);
            counters.http.post_commits(body).await;
            // Something moves for certain, so that there is a release to wait for.
            let newest = loop {
                let commit = counters.next_commit(&mut rng);
                counters.http.commit([&commit]).await;
                if commit["ops"].as_array().is_some_and(|ops| !ops.is_empty()) {
                    break counters.newest();
                }
            };
            for (raw, told) in &mut watchers {
                // In the first round, some subscriptions may be hydrated later than others are released.
                while raw.laws.released() < Some(newest) || told.subs().count() < COUNTERS {
                    let message = raw.message().await;
                    told.take(&message);
                    let ServerMessage::Progress(progress) = message else { continue };
                    let (cv, expected) = (progress.cv_min.0, counters.at[&progress.cv_min.0]);
                    releases += 1;
                    for sub in told.subs() {
                        let shown = told.at(sub, cv);
                        assert_eq!(shown, Some(expected[sub as usize - 1]), "sub {sub} at cv_min {cv}");
                    }
                }
                assert_eq!(told.subs().count(), COUNTERS);
            }
        }
        assert!(releases > 80, "{releases} releases");
        drop(watchers);
        counters.server.stop().await;
    });
}
