//! Messages from a client to the server.

use crate::maps_only::maps_only;
use crate::model::{Cv, Epoch, Fingerprint, SubId, commit::RowOp, document};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// One message: a map with one key, its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientMessage {
    /// First, once.
    Hello(Hello),
    /// Asks for a query's result and everything that changes in it.
    Subscribe(Box<Subscribe>),
    /// Ends a subscription; there is no answer.
    Unsubscribe(Unsubscribe),
    /// Replaces the connection's token in place.
    Auth(Auth),
    /// Writes on the embedded store.
    Push(Push),
    /// Asks for a `pong`.
    Ping(Ping),
    /// Tells how far the client has applied what it got.
    Ack(Ack),
}

/// Opens the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Hello {
    /// Names the client across its connections; needed for mutations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// A JWT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A subscription. Exactly one of `query`, `sql` and `name` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Subscribe {
    /// Chosen by the client, 1 or more, never reused on the connection.
    pub sub: SubId,
    /// A query as JSON.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "document::optional_document"
    )]
    pub query: Option<Json>,
    /// A query as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The name of a named query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Parameters by name.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "document::documents")]
    pub args: Map<String, Json>,
    /// What the client holds from an earlier connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// A client's position in a subscription it had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Resume {
    /// The epoch it had.
    pub epoch: Epoch,
    /// The commit version its rows stand at.
    pub cv: Cv,
    /// The fingerprint its rows were sent under.
    pub fp: Fingerprint,
}

/// See [`ClientMessage::Unsubscribe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Unsubscribe {
    /// The subscription to end.
    pub sub: SubId,
}

/// See [`ClientMessage::Auth`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Auth {
    /// The new JWT.
    pub token: String,
}

/// See [`ClientMessage::Push`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Push {
    /// The mutations, ids ascending without a gap.
    pub mutations: Vec<Mutation>,
    /// Whether cells have the JSON form of their types in MessagePack too. For a sender that does not know the types:
    /// in the MessagePack form it could not write a `json` cell that is a string.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json_cells: bool,
}

/// One mutation: operations that are one commit, together with the client's new `last_mutation_id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Mutation {
    /// From 1, gapless per `client_id`.
    pub id: u64,
    /// What it writes.
    pub ops: Vec<RowOp>,
}

/// See [`ClientMessage::Ping`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Ping {
    /// Anything; comes back in the `pong`.
    #[serde(default, deserialize_with = "document::document")]
    pub t: Json,
}

/// See [`ClientMessage::Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Ack {
    /// Everything up to this commit version is applied.
    pub cv: Cv,
}

maps_only!(Hello, Subscribe, Resume, Unsubscribe, Auth, Push, Mutation, Ping, Ack);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use serde_json::json;

    fn decode(codec: Codec, message: &Json) -> Option<ClientMessage> {
        let bytes = match codec {
            Codec::Json => message.to_string().into_bytes(),
            Codec::MessagePack => rmp_serde::to_vec(message).expect("JSON has an encoding"),
        };
        let mut messages = Vec::new();
        codec.decode(&bytes, |message| messages.push(message)).ok()?;
        messages.pop()
    }

    #[test]
    fn both_codecs_take_the_same_messages() {
        for (message, taken) in [
            (json!({"hello": {}}), true),
            (json!({"hello": []}), false),
            (json!({"hello": ["c", "t"]}), false),
            (json!({"unsubscribe": [1]}), false),
            (json!({"subscribe": {"sub": 1, "name": "q", "args": null}}), true),
            (json!({"subscribe": {"sub": 1, "name": "q", "args": []}}), false),
            (json!({"subscribe": {"sub": 1, "name": "q", "resume": [7, 9, "00000000000000aa"]}}), false),
            (json!({"subscribe": {"sub": 1, "name": null, "query": {}, "resume": null}}), true),
            (json!({"push": {"mutations": [{"id": 1, "ops": [{"delete": "t", "key": {"id": 1}}]}]}}), true),
            (json!({"push": {"mutations": [[1, []]]}}), false),
            (json!({"push": {"mutations": [{"id": 1, "ops": [["t", {"id": 1}]]}]}}), false),
            (json!({"push": {"mutations": [{"id": 1, "ops": [{"delete": "t", "key": [1]}]}]}}), false),
        ] {
            for codec in Codec::ALL {
                assert_eq!(decode(codec, &message).is_some(), taken, "{codec:?} {message}");
            }
        }
    }

    #[test]
    fn what_is_no_number_keeps_its_name() {
        let mut bytes = Vec::new();
        let query = json!({"table": "t", "limit": null});
        Codec::MessagePack.encode(&json!({"subscribe": {"sub": 1, "query": query}}), &mut bytes);
        let nil = bytes.iter().position(|byte| *byte == 0xc0).expect("the limit");
        bytes.splice(nil..=nil, std::iter::once(0xcb).chain(f64::NEG_INFINITY.to_be_bytes()));
        let mut messages = Vec::new();
        Codec::MessagePack
            .decode(&bytes, |message: ClientMessage| messages.push(message))
            .expect("it decodes");
        let [ClientMessage::Subscribe(subscribe)] = messages.as_slice() else { panic!("{messages:?}") };
        assert_eq!(subscribe.query, Some(json!({"table": "t", "limit": "-Infinity"})));
    }
}
