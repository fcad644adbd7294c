//! A random server with one connection, whose client it watches: after every step all that the client shows has to be
//! what a fresh query at the released commit version gives. It keeps every version of every query for that.

use super::{
    super::{
        naive::{NaiveRow, result},
        random_query::{RandomQuery, RowChange},
    },
    player::Player,
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, Epoch, Fingerprint, Layout, Seq, SubId},
    protocol::{
        ErrorCode, ServerMessage,
        client::Resume,
        server::{Batch, ErrorMessage, Faulted, Progress, Subscribed},
    },
};

const SUBSCRIPTIONS_MAX: usize = 3;
const PLACES_MAX: usize = 4;
/// Rows that are tried for a query's first version, and for one commit.
const FIRST_ROWS: usize = 8;
const COMMIT_ROWS_MAX: usize = 4;

/// See the module.
pub(super) struct RandomServer {
    rng: StdRng,
    cv: Cv,
    /// The connection's last progress.
    cv_min: Cv,
    epoch: Epoch,
    subscriptions: BTreeMap<SubId, Served>,
    next_sub: SubId,
    /// One client of each codec, which have to agree.
    players: [Player; 2],
    lines: Vec<Json>,
}

struct Served {
    query: RandomQuery,
    versions: Vec<Version>,
    phase: Phase,
    epoch: Epoch,
    seq: Seq,
    /// The commit version of seq 0.
    answered_at: Cv,
}

struct Version {
    cv: Cv,
    layout: Layout,
    rows: Vec<NaiveRow>,
}

enum Phase {
    /// The client has asked, perhaps to continue.
    Asked(Option<Resume>),
    /// Parts of seq 0 are still to be sent.
    Answering(Vec<RowChange>),
    Live,
}

impl Served {
    fn fingerprint(&self) -> Fingerprint {
        self.query.layout.fingerprint(b"")
    }

    fn note(&mut self, cv: Cv) {
        let RandomQuery { layout, rows } = &self.query;
        self.versions.push(Version { cv, layout: layout.clone(), rows: rows.clone() });
    }

    /// What a fresh query gives at a commit version.
    fn version(&self, cv: Cv) -> &Version {
        self.versions.iter().rev().find(|version| version.cv <= cv).expect("a version from its beginning on")
    }
}

impl RandomServer {
    /// A whole session; the lines that record it.
    pub(super) fn session(seed: u64, steps: usize) -> Vec<Json> {
        let mut server = Self {
            rng: StdRng::seed_from_u64(seed),
            cv: Cv(10),
            cv_min: Cv(0),
            epoch: Epoch(0),
            subscriptions: BTreeMap::new(),
            next_sub: SubId(1),
            players: Codec::ALL.map(Player::new),
            lines: Vec::new(),
        };
        server.subscribe();
        server.subscribe();
        for _ in 0..steps {
            server.step();
        }
        server.settle();
        server.lines
    }

    fn step(&mut self) {
        match self.rng.random_range(0..30) {
            0 | 1 if self.subscriptions.len() < SUBSCRIPTIONS_MAX => self.subscribe(),
            2 => self.unsubscribe(),
            3 => self.reconnect(),
            4 => self.begin_anew(),
            5 => self.end(),
            _ => self.commit(),
        }
        for sub in self.subs() {
            if self.rng.random_bool(0.7) {
                self.answer(sub);
            }
        }
        if self.rng.random_bool(0.7) {
            self.progress();
        }
    }

    /// Sends everything that is under way: then everything is shown, at the newest commit.
    fn settle(&mut self) {
        while self.subscriptions.values().any(|served| !matches!(served.phase, Phase::Live)) {
            for sub in self.subs() {
                self.answer(sub);
            }
        }
        self.release(self.cv);
        assert_eq!(self.players[0].released(), self.cv);
        for sub in self.subs() {
            assert!(self.players[0].rows(sub).is_some(), "subscription {} is not shown", sub.0);
        }
    }

    // --- what the client does -------------------------------------------------------------------------------------

    fn subscribe(&mut self) {
        let sub = self.next_sub;
        self.next_sub = sub.next();
        self.play(json!({"subscribe": sub}));
        let mut query = RandomQuery::new(PLACES_MAX, &mut self.rng);
        query.commit(FIRST_ROWS, &mut self.rng);
        let mut served = Served {
            query,
            versions: Vec::new(),
            phase: Phase::Asked(None),
            epoch: Epoch(0),
            seq: Seq(0),
            answered_at: Cv(0),
        };
        served.note(self.cv);
        self.subscriptions.insert(sub, served);
    }

    fn unsubscribe(&mut self) {
        let Some(sub) = self.some_sub(|_| true) else { return };
        self.play(json!({"unsubscribe": sub}));
        let mut served = self.subscriptions.remove(&sub).expect("known");
        if matches!(served.phase, Phase::Live) && self.rng.random() {
            // Under way when the client ended it.
            self.cv = self.cv.next();
            let changes = served.query.commit(2, &mut self.rng);
            self.send_batch(sub, &mut served, &changes, false);
        }
    }

    fn reconnect(&mut self) {
        let line = self.play(json!({"reconnect": true}));
        self.cv = self.cv.next();
        self.cv_min = Cv(0);
        for (sub, served) in &mut self.subscriptions {
            let resume = line["resumes"][sub.to_string()].clone();
            served.phase = Phase::Asked(serde_json::from_value(resume).expect("a resume or null"));
        }
    }

    // --- what the server does -------------------------------------------------------------------------------------

    fn commit(&mut self) {
        self.cv = self.cv.next();
        for sub in self.subs() {
            let mut served = self.subscriptions.remove(&sub).expect("known");
            // While seq 0 is under way its rows stay as they are.
            if !matches!(served.phase, Phase::Answering(_)) && self.rng.random_bool(0.7) {
                let count = self.rng.random_range(1..=COMMIT_ROWS_MAX);
                let changes = served.query.commit(count, &mut self.rng);
                served.note(self.cv);
                if matches!(served.phase, Phase::Live) && !changes.is_empty() {
                    self.send_batch(sub, &mut served, &changes, false);
                }
            }
            self.subscriptions.insert(sub, served);
        }
    }

    /// Begins an epoch, or sends the next part of its seq 0.
    fn answer(&mut self, sub: SubId) {
        let mut served = self.subscriptions.remove(&sub).expect("known");
        if let Phase::Asked(resume) = served.phase {
            let kept = resume.filter(|resume| resume.fp == served.fingerprint() && self.rng.random_bool(0.8));
            let changes = if let Some(resume) = kept {
                served.query.difference(&served.version(resume.cv).rows)
            } else {
                self.change_schema(&mut served, 0.2);
                served.query.snapshot()
            };
            self.begin(sub, &mut served, kept.is_some());
            served.phase = Phase::Answering(changes);
        } else {
            self.send_part(sub, &mut served);
        }
        self.subscriptions.insert(sub, served);
    }

    /// A new epoch of a live subscription, perhaps with another layout.
    fn begin_anew(&mut self) {
        let Some(sub) = self.some_sub(|served| matches!(served.phase, Phase::Live)) else { return };
        let mut served = self.subscriptions.remove(&sub).expect("known");
        self.cv = self.cv.next();
        self.change_schema(&mut served, 0.4);
        self.begin(sub, &mut served, false);
        served.phase = Phase::Answering(served.query.snapshot());
        self.subscriptions.insert(sub, served);
    }

    /// Refuses or faults a subscription.
    fn end(&mut self) {
        let Some(sub) = self.some_sub(|_| true) else { return };
        let served = self.subscriptions.remove(&sub).expect("known");
        let message = "a part of the session".to_owned();
        self.send(|_| match served.phase {
            Phase::Asked(_) => ServerMessage::Error(ErrorMessage {
                code: ErrorCode::BadQuery,
                message: message.clone(),
                sub: Some(sub),
            }),
            _ => ServerMessage::Faulted(Faulted {
                sub,
                code: ErrorCode::QueryFaulted,
                message: message.clone(),
                retry: false,
            }),
        });
    }

    fn progress(&mut self) {
        let least = self.cv_min.0.max(self.cv.0.saturating_sub(3));
        let to = if self.rng.random_bool(0.6) { self.cv.0 } else { self.rng.random_range(least..=self.cv.0) };
        self.release(Cv(to));
    }

    fn release(&mut self, cv_min: Cv) {
        self.cv_min = cv_min;
        self.send(|_| ServerMessage::Progress(Progress { cv_min }));
    }

    // --- how it does it -------------------------------------------------------------------------------------------

    fn change_schema(&mut self, served: &mut Served, probability: f64) {
        if self.rng.random_bool(probability) {
            served.query = RandomQuery::new(PLACES_MAX, &mut self.rng);
            served.query.commit(FIRST_ROWS, &mut self.rng);
            // The client stands before it until it is released.
            self.cv = self.cv.next();
            served.note(self.cv);
        }
    }

    fn begin(&mut self, sub: SubId, served: &mut Served, resumed: bool) {
        self.epoch = self.epoch.next();
        (served.epoch, served.seq, served.answered_at) = (self.epoch, Seq(0), self.cv);
        let Layout { tables, places } = served.query.layout.clone();
        let (epoch, fp) = (served.epoch, served.fingerprint());
        let subscribed = Subscribed { sub, epoch, fp, tables, places, resumed };
        self.send(|_| ServerMessage::Subscribed(subscribed.clone()));
    }

    fn send_part(&mut self, sub: SubId, served: &mut Served) {
        let Phase::Answering(changes) = &mut served.phase else { return };
        let whole = self.rng.random_bool(0.5);
        let rest = changes.split_off(if whole { changes.len() } else { changes.len() / 2 });
        let part = std::mem::replace(changes, rest);
        let more = !changes.is_empty();
        self.send_batch(sub, served, &part, more);
        if !more {
            served.phase = Phase::Live;
        }
    }

    fn send_batch(&mut self, sub: SubId, served: &mut Served, changes: &[RowChange], more: bool) {
        let cv = if matches!(served.phase, Phase::Answering(..)) { served.answered_at } else { self.cv };
        let (epoch, seq, fp) = (served.epoch, served.seq, served.fingerprint());
        served.seq = seq.next();
        self.send(|codec| {
            let ops = changes.iter().map(|change| change.op(codec)).collect();
            ServerMessage::Batch(Batch { sub, epoch, seq, cv, fp, more, ops })
        });
    }

    fn send(&mut self, message: impl Fn(Codec) -> ServerMessage) {
        let [json, msgpack] = [Codec::Json, Codec::MessagePack].map(|codec| {
            let mut bytes = Vec::new();
            codec.encode(&message(codec), &mut bytes);
            bytes
        });
        let json = String::from_utf8(json).expect("JSON is UTF-8");
        self.play(json!({"json": json, "msgpack": BASE64.encode(msgpack)}));
    }

    /// Has the client take a step, and compares all that it shows.
    fn play(&mut self, step: Json) -> Json {
        let [line, other] = self.players.each_mut().map(|player| player.play(&step));
        assert_eq!(line.to_string(), other.to_string(), "the codecs agree");
        let released = self.players[0].released();
        for (&sub, served) in &self.subscriptions {
            let Some(rows) = self.players[0].rows(sub) else { continue };
            let Version { layout, rows: fresh, .. } = served.version(released);
            let fresh = result(layout, fresh);
            assert_eq!(
                rows.to_json().to_string(),
                fresh.to_string(),
                "subscription {} at {}",
                sub.0,
                released.0
            );
        }
        self.lines.push(line.clone());
        line
    }

    fn subs(&self) -> Vec<SubId> {
        self.subscriptions.keys().copied().collect()
    }

    fn some_sub(&mut self, fits: impl Fn(&Served) -> bool) -> Option<SubId> {
        let fitting: Vec<SubId> =
            self.subscriptions.iter().filter(|(_, served)| fits(served)).map(|(&sub, _)| sub).collect();
        fitting.choose(&mut self.rng).copied()
    }
}
