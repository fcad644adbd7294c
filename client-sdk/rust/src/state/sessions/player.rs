//! Plays a session's lines through a state machine. A line is one step, followed by what came of it; the words are
//! those of `wire/vectors/README.md`.

use super::super::{Effect, Rows, State, StateOptions, result_tree::ResultTree};
use crate::query::Query;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, SubId},
    protocol::{ClientMessage, ServerMessage},
};

/// See the module.
pub(super) struct Player {
    state: State,
    codec: Codec,
    /// What each live subscription shows, as text.
    shown: BTreeMap<SubId, String>,
}

impl Player {
    /// A client on its first connection.
    pub(super) fn new(codec: Codec) -> Self {
        let options = StateOptions { client_id: None, mutations_max: 1, waiting_ops_max: 100_000 };
        let mut state = State::new(options);
        state.connect(codec, None, &mut Vec::new());
        Self { state, codec, shown: BTreeMap::new() }
    }

    /// Takes a line's step; returns the line with what came of it.
    pub(super) fn play(&mut self, line: &Json) -> Json {
        let mut played = Map::new();
        let mut effects = Vec::new();
        let mut take = |name: &str| {
            let value = line.get(name)?;
            played.insert(name.to_owned(), value.clone());
            Some(value)
        };
        if let Some(sub) = take("subscribe") {
            assert_eq!(json!(self.state.subscribe(Query::named("q"), &mut effects)), *sub);
        } else if let Some(sub) = take("unsubscribe") {
            let sub = serde_json::from_value(sub.clone()).expect("a number");
            self.shown.remove(&sub);
            self.state.unsubscribe(sub, &mut effects);
        } else if take("reconnect").is_some() {
            self.state.disconnect();
            self.state.connect(self.codec, None, &mut effects);
            played.insert("resumes".to_owned(), resumes(&effects));
        } else {
            let [json, msgpack] =
                ["json", "msgpack"].map(|name| take(name).and_then(Json::as_str).expect(name));
            let bytes = if self.codec == Codec::Json {
                json.as_bytes().to_vec()
            } else {
                BASE64.decode(msgpack).expect("base64")
            };
            let receive = |message: ServerMessage| self.state.receive(message, &mut effects);
            self.codec.decode(&bytes, receive).expect("decodes");
        }
        self.outcome(&effects, &mut played);
        Json::Object(played)
    }

    /// The commit version that everything shown stands at.
    pub(super) fn released(&self) -> Cv {
        self.state.released()
    }

    /// What a subscription shows; `None` before its first release.
    pub(super) fn rows(&self, sub: SubId) -> Option<Rows> {
        self.state.subscriptions.get(&sub)?.tree.as_ref().map(ResultTree::rows)
    }

    fn outcome(&mut self, effects: &[Effect], played: &mut Map<String, Json>) {
        let mut ended = Vec::new();
        for effect in effects {
            match effect {
                Effect::Violation(violation) => panic!("{violation}"),
                Effect::Ended { sub, .. } => {
                    self.shown.remove(sub);
                    ended.push(json!(sub));
                }
                Effect::Released(release) => {
                    played.insert("cv".to_owned(), json!(release.cv));
                }
                _ => {}
            }
        }
        if !ended.is_empty() {
            played.insert("ended".to_owned(), ended.into());
        }
        let subs: Vec<SubId> = self.state.subscriptions.keys().copied().collect();
        let mut shows = Map::new();
        for sub in subs {
            let Some(rows) = self.rows(sub).map(|rows| rows.to_json()) else { continue };
            let text = rows.to_string();
            if self.shown.get(&sub) != Some(&text) {
                self.shown.insert(sub, text);
                shows.insert(sub.to_string(), rows);
            }
        }
        if !shows.is_empty() {
            played.insert("shows".to_owned(), shows.into());
        }
    }
}

/// Where each subscription asks to be continued from; null for one that asks for a snapshot.
fn resumes(effects: &[Effect]) -> Json {
    let resumes = effects.iter().filter_map(|effect| match effect {
        Effect::Send(ClientMessage::Subscribe(subscribe)) => {
            Some((subscribe.sub.to_string(), json!(subscribe.resume)))
        }
        _ => None,
    });
    Json::Object(resumes.collect())
}
