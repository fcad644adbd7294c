//! Messages from a client to the server.

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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub struct Unsubscribe {
    /// The subscription to end.
    pub sub: SubId,
}

/// See [`ClientMessage::Auth`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// The new JWT.
    pub token: String,
}

/// See [`ClientMessage::Push`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// The mutations, ids ascending without a gap.
    pub mutations: Vec<Mutation>,
}

/// One mutation: operations that are one commit, together with the client's new `last_mutation_id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// From 1, gapless per `client_id`.
    pub id: u64,
    /// What it writes.
    pub ops: Vec<RowOp>,
}

/// See [`ClientMessage::Ping`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Anything; comes back in the `pong`.
    #[serde(default, deserialize_with = "document::document")]
    pub t: Json,
}

/// See [`ClientMessage::Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// Everything up to this commit version is applied.
    pub cv: Cv,
}
