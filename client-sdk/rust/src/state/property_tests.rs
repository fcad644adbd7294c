//! Random layouts, rows and operations against a result built from scratch.

use super::{
    Changes, Effect, State, StateOptions,
    naive::result,
    random_query::{RandomQuery, RowChange},
};
use crate::query::Query;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value as Json;
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::{
    codec::Codec,
    model::{Cv, Epoch, Fingerprint, Layout, Seq, SubId},
    protocol::{
        ClientMessage, ServerMessage,
        server::{Batch, Progress, Subscribed},
    },
};

const PLACES_MAX: usize = 6;

/// A server with one query, and a client that follows it.
struct Run {
    rng: StdRng,
    query: RandomQuery,
    codec: Codec,
    state: State,
    sub: SubId,
    epoch: Epoch,
    seq: Seq,
    cv: Cv,
    /// The root rows that the client was told of.
    told: HashMap<Arc<[u8]>, Json>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let query = RandomQuery::new(PLACES_MAX, &mut rng);
        let codec = Codec::ALL[rng.random_range(0..2)];
        let options = StateOptions { client_id: None, mutations_max: 1, waiting_ops_max: 1 << 20 };
        let mut state = State::new(options);
        let sub = state.subscribe(Query::named("q"), &mut Vec::new());
        state.connect(codec, None, &mut Vec::new());
        let told = HashMap::new();
        Self { rng, query, codec, state, sub, epoch: Epoch(0), seq: Seq(0), cv: Cv(0), told }
    }

    fn receive(&mut self, message: &ServerMessage) -> Vec<Effect> {
        // Through the codec, so that cells come in their travelling forms.
        let mut bytes = Vec::new();
        self.codec.encode(message, &mut bytes);
        let mut effects = Vec::new();
        let state = &mut self.state;
        self.codec.decode(&bytes, |message| state.receive(message, &mut effects)).expect("decodes");
        assert!(!effects.iter().any(|e| matches!(e, Effect::Violation(_))), "{effects:?}");
        effects
    }

    /// Changes some rows, each at most once.
    fn commit(&mut self, count: usize) -> Vec<RowChange> {
        self.query.commit(count, &mut self.rng)
    }

    fn subscribed(&mut self, resumed: bool) {
        self.epoch = self.epoch.next();
        self.seq = Seq(0);
        let Layout { tables, places } = self.query.layout.clone();
        let (sub, epoch, fp) = (self.sub, self.epoch, Fingerprint(1));
        self.receive(&ServerMessage::Subscribed(Subscribed { sub, epoch, fp, tables, places, resumed }));
    }

    fn batch(&mut self, more: bool, changes: &[RowChange]) {
        let ops = changes.iter().map(|change| change.op(self.codec)).collect();
        let (sub, epoch, seq, cv, fp) = (self.sub, self.epoch, self.seq, self.cv, Fingerprint(1));
        self.receive(&ServerMessage::Batch(Batch { sub, epoch, seq, cv, fp, more, ops }));
        self.seq = seq.next();
    }

    fn snapshot(&mut self) {
        self.subscribed(false);
        let changes = self.query.snapshot();
        if self.rng.random() {
            let (first, rest) = changes.split_at(self.rng.random_range(0..=changes.len()));
            self.batch(true, first);
            self.batch(false, rest);
        } else {
            self.batch(false, &changes);
        }
    }

    fn progress(&mut self) {
        let before = self.shown();
        let effects = self.receive(&ServerMessage::Progress(Progress { cv_min: self.cv }));
        let [Effect::Released(release)] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(release.cv, self.cv);
        let after = self.shown();
        assert_eq!(after.to_json(), result(&self.query.layout, &self.query.rows), "{:?}", self.query.layout);
        let Some(Effect::Released(release)) = effects.into_iter().next() else { unreachable!() };
        let changes = release.results.into_iter().next().map_or_else(Changes::default, |r| r.changes);
        let mut changed = 0;
        for change in changes.into_sorted() {
            changed += 1;
            let old = change.old.map(|node| node.to_json());
            let new = change.new.map(|node| node.to_json());
            let told = match new {
                Some(new) => self.told.insert(change.key, new),
                None => self.told.remove(&change.key),
            };
            assert_eq!(told, old);
        }
        let mut told: Vec<String> = self.told.values().map(Json::to_string).collect();
        let mut shown: Vec<String> = after.iter().map(|node| node.to_json().to_string()).collect();
        told.sort();
        shown.sort();
        assert_eq!(told, shown);
        // Whatever no change names is the same node in both versions.
        let kept = after.iter().filter(|node| before.iter().any(|other| Arc::ptr_eq(node, other))).count();
        assert!(kept + changed >= after.len(), "{kept} kept, {changed} changed, {} rows", after.len());
    }

    fn shown(&self) -> super::Rows {
        let subscription = self.state.subscriptions.get(&self.sub).expect("subscribed");
        subscription.tree.as_ref().map(super::result_tree::ResultTree::rows).unwrap_or_default()
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            // A new epoch, perhaps with an unreleased batch before it.
            0 => {
                self.cv = self.cv.next();
                self.commit(10);
                self.snapshot();
            }
            // A lost connection, continued.
            1 => {
                self.progress();
                let before = self.query.rows.clone();
                for _ in 0..self.rng.random_range(0..3) {
                    self.commit(3);
                }
                self.state.disconnect();
                let mut effects = Vec::new();
                self.state.connect(self.codec, None, &mut effects);
                let resume = effects.iter().find_map(|effect| match effect {
                    Effect::Send(ClientMessage::Subscribe(subscribe)) => subscribe.resume,
                    _ => None,
                });
                let resume = resume.expect("a released subscription resumes");
                assert_eq!((resume.epoch, resume.cv), (self.epoch, self.cv));
                self.cv = self.cv.next();
                if self.rng.random_bool(0.8) {
                    let difference = self.query.difference(&before);
                    self.subscribed(true);
                    self.batch(false, &difference);
                } else {
                    self.snapshot();
                }
            }
            _ => {
                self.cv = self.cv.next();
                let count = self.rng.random_range(1..6);
                let changes = self.commit(count);
                self.batch(false, &changes);
            }
        }
        if self.rng.random_bool(0.7) {
            self.progress();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn view_equals_fresh_query(seed in any::<u64>()) {
        let mut run = Run::new(seed);
        run.commit(20);
        run.cv = Cv(1);
        run.snapshot();
        run.progress();
        for _ in 0..40 {
            run.step();
        }
        run.progress();
        // Nothing is left behind once the subscription ends.
        run.state.unsubscribe(run.sub, &mut Vec::new());
        prop_assert_eq!(run.state.rows_held(), 0);
    }
}
