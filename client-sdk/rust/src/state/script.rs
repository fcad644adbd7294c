//! A scripted server for tests of the state machine: messages written as JSON, results read as JSON.

use super::{Effect, Release, State, StateOptions, Violation};
use crate::query::Query;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, Layout, SubId},
    protocol::{ClientMessage, ServerMessage},
};

pub(super) struct Script {
    pub(super) state: State,
    layouts: BTreeMap<u64, Layout>,
}

pub(super) fn layout(json: Json) -> Layout {
    serde_json::from_value(json).expect("a layout")
}

impl Script {
    /// A client with a connection.
    pub(super) fn new() -> Self {
        Self::with(None)
    }

    pub(super) fn with(client_id: Option<&str>) -> Self {
        let options = StateOptions {
            client_id: client_id.map(str::to_owned),
            mutations_max: 4,
            waiting_ops_max: 100_000,
        };
        let mut script = Self { state: State::new(options), layouts: BTreeMap::new() };
        script.connect();
        script
    }

    /// A new connection; returns what the client sends, as JSON.
    pub(super) fn connect(&mut self) -> Vec<Json> {
        let mut effects = Vec::new();
        self.state.connect(Codec::Json, None, &mut effects);
        sent(&effects)
    }

    pub(super) fn subscribe(&mut self) -> u64 {
        self.state.subscribe(Query::sql("select"), &mut Vec::new()).0
    }

    pub(super) fn send(&mut self, message: Json) -> Vec<Effect> {
        let message: ServerMessage = serde_json::from_value(message).expect("a server message");
        let mut effects = Vec::new();
        self.state.receive(message, &mut effects);
        effects
    }

    pub(super) fn subscribed(&mut self, sub: u64, epoch: u64, layout: &Layout, resumed: bool) -> Vec<Effect> {
        self.layouts.insert(sub, layout.clone());
        let fp = layout.fingerprint(b"");
        let Layout { tables, places } = layout;
        self.send(json!({"subscribed": {"sub": sub, "epoch": epoch, "fp": fp, "tables": tables,
            "places": places, "resumed": resumed}}))
    }

    pub(super) fn batch(&mut self, sub: u64, epoch: u64, seq: u64, cv: u64, ops: Json) -> Vec<Effect> {
        self.part(sub, epoch, seq, cv, false, ops)
    }

    pub(super) fn part(
        &mut self,
        sub: u64,
        epoch: u64,
        seq: u64,
        cv: u64,
        more: bool,
        ops: Json,
    ) -> Vec<Effect> {
        let fp = self.layouts.get(&sub).map_or_else(|| "0".repeat(16), |l| l.fingerprint(b"").to_string());
        self.send(json!({"batch": {"sub": sub, "epoch": epoch, "seq": seq, "cv": cv, "fp": fp, "more": more,
            "ops": ops}}))
    }

    pub(super) fn progress(&mut self, cv: u64) -> Vec<Effect> {
        self.send(json!({"progress": {"cv_min": cv}}))
    }

    /// What a subscription shows.
    pub(super) fn rows(&self, sub: u64) -> super::Rows {
        let subscription = self.state.subscriptions.get(&SubId(sub)).expect("subscribed");
        subscription.tree.as_ref().map(super::result_tree::ResultTree::rows).unwrap_or_default()
    }

    /// What a subscription shows, as JSON; null before its first release.
    pub(super) fn shown(&self, sub: u64) -> Json {
        match self.state.subscriptions.get(&SubId(sub)).and_then(|s| s.tree.as_ref()) {
            Some(tree) => tree.rows().to_json(),
            None => Json::Null,
        }
    }

    pub(super) fn cv(&self) -> Cv {
        self.state.released()
    }
}

pub(super) fn sent(effects: &[Effect]) -> Vec<Json> {
    let messages = effects.iter().filter_map(|effect| match effect {
        Effect::Send(message) => Some(message),
        _ => None,
    });
    messages.map(|message: &ClientMessage| serde_json::to_value(message).expect("serializes")).collect()
}

/// The one violation among the effects.
pub(super) fn violation(effects: &[Effect]) -> &'static str {
    match effects {
        [Effect::Violation(violation)] => Violation::invariant(violation),
        other => panic!("no violation but {other:?}"),
    }
}

/// The one release among the effects: its changes by subscription.
pub(super) fn changes(effects: Vec<Effect>) -> Json {
    let mut releases = effects.into_iter().filter_map(|effect| match effect {
        Effect::Released(release) => Some(release),
        _ => None,
    });
    let Release { results, .. } = releases.next().expect("a release");
    assert!(releases.next().is_none(), "one release");
    let json = |r: super::ReleasedResult| {
        let changes: Vec<_> = r.changes.into_sorted().iter().map(super::Change::to_json).collect();
        (r.sub.to_string(), Json::from(changes))
    };
    Json::Object(results.into_iter().map(json).collect())
}
