//! Messages from the server to a client.

use super::{Cell, ErrorCode};
use crate::model::{Cv, Epoch, Fingerprint, PlaceLayout, PlaceMask, Seq, SubId, TableLayout};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// One message: a map with one key, its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// Answers `hello`.
    Welcome(Welcome),
    /// Answers `subscribe`, and announces a new epoch of a live subscription.
    Subscribed(Subscribed),
    /// Row operations of one query for one commit version.
    Batch(Batch),
    /// Releases everything delivered up to a commit version.
    Progress(Progress),
    /// Ends one subscription.
    Faulted(Faulted),
    /// Refuses one message; the connection goes on unless it is closed right after.
    Error(ErrorMessage),
    /// Answers one mutation.
    PushResult(PushResult),
    /// Announces that the server closes the connection.
    Goaway(Goaway),
    /// Answers `ping`.
    Pong(Pong),
}

/// See [`ServerMessage::Welcome`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`super::PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Server name and version.
    pub server: String,
    /// The connection's id, for logs.
    pub conn: String,
    /// The newest commit version.
    pub cv: Cv,
    /// The limits of `limits` in `docs/operations.md`, by name.
    pub limits: Map<String, Json>,
}

/// See [`ServerMessage::Subscribed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscribed {
    /// The subscription.
    pub sub: SubId,
    /// The epoch that its batches now carry.
    pub epoch: Epoch,
    /// The fingerprint of the layout.
    pub fp: Fingerprint,
    /// The tables whose rows travel.
    pub tables: Vec<TableLayout>,
    /// The result's tree.
    pub places: Vec<PlaceLayout>,
    /// Whether seq 0 is the difference from what the client resumed with, rather than a snapshot.
    pub resumed: bool,
}

/// See [`ServerMessage::Batch`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The subscription.
    pub sub: SubId,
    /// Its epoch.
    pub epoch: Epoch,
    /// 0, 1, 2, … within the epoch.
    pub seq: Seq,
    /// The commit version the operations lead to.
    pub cv: Cv,
    /// The fingerprint of the layout.
    pub fp: Fingerprint,
    /// Whether a further part of the same snapshot follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The operations.
    pub ops: Vec<Op>,
}

/// One operation on a row of `tables[table]`; travels as `["+"|"~", table, places, [cells…]]` or
/// `["-", table, [key cells…]]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The row enters, standing at `places`.
    Add {
        /// Index into the layout's tables.
        table: usize,
        /// Where it stands.
        places: PlaceMask,
        /// The row's cells.
        cells: Vec<Cell>,
    },
    /// The row's content or places changed; this is the whole new row.
    Edit {
        /// Index into the layout's tables.
        table: usize,
        /// Where it stands now.
        places: PlaceMask,
        /// The row's cells.
        cells: Vec<Cell>,
    },
    /// The row stands nowhere any more.
    Remove {
        /// Index into the layout's tables.
        table: usize,
        /// The key's cells.
        key: Vec<Cell>,
    },
}

impl Serialize for Op {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Add { table, places, cells } => ("+", table, places, cells).serialize(serializer),
            Self::Edit { table, places, cells } => ("~", table, places, cells).serialize(serializer),
            Self::Remove { table, key } => ("-", table, key).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Op;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("[\"+\"|\"~\", table, places, [cells…]] or [\"-\", table, [key cells…]]")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Op, A::Error> {
                use serde::de::Error as _;
                fn item<'de, T: Deserialize<'de>, A: serde::de::SeqAccess<'de>>(
                    seq: &mut A,
                    index: usize,
                ) -> Result<T, A::Error> {
                    seq.next_element()?.ok_or_else(|| A::Error::invalid_length(index, &"a longer operation"))
                }
                let kind: std::borrow::Cow<'de, str> = item(&mut seq, 0)?;
                let table = item(&mut seq, 1)?;
                Ok(match kind.as_ref() {
                    "+" => Op::Add { table, places: item(&mut seq, 2)?, cells: item(&mut seq, 3)? },
                    "~" => Op::Edit { table, places: item(&mut seq, 2)?, cells: item(&mut seq, 3)? },
                    "-" => Op::Remove { table, key: item(&mut seq, 2)? },
                    other => return Err(A::Error::custom(format!("unknown operation \"{other}\""))),
                })
            }
        }

        deserializer.deserialize_seq(Visitor)
    }
}

/// See [`ServerMessage::Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Everything delivered with a cv up to this becomes visible now, together.
    pub cv_min: Cv,
}

/// See [`ServerMessage::Faulted`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faulted {
    /// The subscription that ended.
    pub sub: SubId,
    /// Why.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
    /// Whether subscribing again may succeed without the query or the data being changed.
    pub retry: bool,
}

/// See [`ServerMessage::Error`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// What kind of fault.
    pub code: ErrorCode,
    /// What is at fault and what to do, for people.
    pub message: String,
    /// The subscription concerned, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<SubId>,
}

/// See [`ServerMessage::PushResult`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushResult {
    /// The mutation's id.
    pub id: u64,
    /// `None` when it was applied (now or earlier).
    pub error: Option<PushError>,
}

/// Why a mutation was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushError {
    /// What kind of fault.
    pub code: ErrorCode,
    /// What is at fault, for people.
    pub message: String,
}

/// See [`ServerMessage::Goaway`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goaway {
    /// Why.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
    /// How long to wait before reconnecting, milliseconds.
    pub retry_after_ms: u64,
}

/// See [`ServerMessage::Pong`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pong {
    /// What the `ping` carried.
    pub t: Json,
}
