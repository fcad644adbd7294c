//! The two encodings of protocol messages, and the fast path for batches: the row operations of one batch are
//! encoded once per codec and shared by all its subscribers; only the head of the message is each one's own.

use crate::model::{
    Cv, Epoch, Fingerprint, OpKind, PlaceMask, Seq, SubId, ValueRef, json_fault, json_levels, time, value,
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Serialize, de::DeserializeOwned};
use std::io::Write as _;

/// Deepest nesting of arrays and objects in a JSON message. Queries of the deepest allowed nesting fit.
pub const JSON_DEPTH_MAX: usize = 1_024;

/// How messages are encoded, chosen by the WebSocket subprotocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// `tidegate.v1+msgpack`: binary frames, any number of messages back to back.
    MessagePack,
    /// `tidegate.v1+json`: text frames, one message each.
    Json,
}

/// A message that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not MessagePack, or not a known message.
    #[error("cannot decode the MessagePack message: {0}")]
    MessagePack(#[from] rmp_serde::decode::Error),
    /// Not JSON, or not a known message.
    #[error("cannot decode the JSON message: {}", json_fault(.0))]
    Json(#[from] serde_json::Error),
    /// JSON nested beyond [`JSON_DEPTH_MAX`].
    #[error("the JSON message nests deeper than the limit of {JSON_DEPTH_MAX}")]
    TooDeep,
}

impl Codec {
    /// Every codec, the default first.
    pub const ALL: [Self; 2] = [Self::MessagePack, Self::Json];

    /// The WebSocket subprotocol's name.
    #[must_use]
    pub fn subprotocol(self) -> &'static str {
        match self {
            Self::MessagePack => "tidegate.v1+msgpack",
            Self::Json => "tidegate.v1+json",
        }
    }

    /// Appends a message's encoding.
    ///
    /// # Panics
    /// Never for the message types of this crate, whose serializers do not fail.
    pub fn encode<M: Serialize>(self, message: &M, out: &mut Vec<u8>) {
        match self {
            Self::MessagePack => {
                let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
                message.serialize(&mut serializer).expect("messages serialize");
            }
            Self::Json => serde_json::to_writer(out, message).expect("messages serialize"),
        }
    }

    /// Decodes all messages of one WebSocket message.
    ///
    /// # Errors
    /// At the first message that cannot be decoded; those before it are given to `each` all the same.
    pub fn decode<M: DeserializeOwned>(
        self,
        mut bytes: &[u8],
        mut each: impl FnMut(M),
    ) -> Result<(), DecodeError> {
        match self {
            Self::MessagePack => loop {
                each(rmp_serde::from_read(&mut bytes)?);
                if bytes.is_empty() {
                    return Ok(());
                }
            },
            Self::Json => {
                each(decode_json(bytes)?);
                Ok(())
            }
        }
    }
}

/// Decodes one JSON document with the nesting bounded by [`JSON_DEPTH_MAX`].
///
/// # Errors
/// When the text is not JSON, not an `M`, or nests too deep.
pub fn decode_json<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, DecodeError> {
    if json_levels(bytes) > JSON_DEPTH_MAX {
        return Err(DecodeError::TooDeep);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // The depth is bounded above; the library's own limit of 128 is below the nesting that queries may have.
    deserializer.disable_recursion_limit();
    let message = M::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(message)
}

/// Writes the operations of a batch in one codec. The bytes of [`OpsEncoder::finish`] follow a head written by
/// [`encode_batch_head`] and complete the message.
pub struct OpsEncoder {
    codec: Codec,
    body: Vec<u8>,
    count: u32,
}

impl OpsEncoder {
    /// No operations yet.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self { codec, body: Vec::new(), count: 0 }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether no operation was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends one operation. `cells` are the row's cells, or for [`OpKind::Remove`] (whose `places` do not travel)
    /// the key's.
    pub fn push<'a>(
        &mut self,
        kind: OpKind,
        table: usize,
        places: PlaceMask,
        cells: impl ExactSizeIterator<Item = ValueRef<'a>>,
    ) {
        let symbol = match kind {
            OpKind::Add => '+',
            OpKind::Edit => '~',
            OpKind::Remove => '-',
        };
        let out = &mut self.body;
        match self.codec {
            Codec::MessagePack => {
                out.push(if kind == OpKind::Remove { 0x93 } else { 0x94 });
                out.extend([0xa1, symbol as u8]);
                write_uint(out, table as u64);
                if kind != OpKind::Remove {
                    write_uint(out, places.0.into());
                }
                rmp::encode::write_array_len(out, cells.len() as u32).expect("a Vec takes every byte");
                cells.for_each(|cell| write_cell_msgpack(out, cell));
            }
            Codec::Json => {
                if self.count > 0 {
                    out.push(b',');
                }
                write!(out, "[\"{symbol}\",{table},").expect("a Vec takes every byte");
                if kind != OpKind::Remove {
                    write!(out, "{},", places.0).expect("a Vec takes every byte");
                }
                out.push(b'[');
                for (index, cell) in cells.enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_cell_json(out, cell);
                }
                out.extend(b"]]");
            }
        }
        self.count += 1;
    }

    /// The encoded `ops` value, with the end of the message.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.codec {
            Codec::MessagePack => {
                let mut out = Vec::with_capacity(self.body.len() + 5);
                rmp::encode::write_array_len(&mut out, self.count).expect("a Vec takes every byte");
                out.extend(self.body);
                out
            }
            Codec::Json => {
                let mut out = self.body;
                out.insert(0, b'[');
                out.extend(b"]}}");
                out
            }
        }
    }
}

/// The head of a batch message: everything but its operations.
#[derive(Clone, Copy, Debug)]
pub struct BatchHead {
    /// The subscription.
    pub sub: SubId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The batch's number in the epoch.
    pub seq: Seq,
    /// The commit version the operations lead to.
    pub cv: Cv,
    /// The layout's fingerprint.
    pub fp: Fingerprint,
    /// Whether a further part of the same snapshot follows.
    pub more: bool,
}

/// Appends the head of a batch message up to and including the key `ops`; the bytes of an [`OpsEncoder`] of the
/// same codec complete it.
pub fn encode_batch_head(codec: Codec, head: &BatchHead, out: &mut Vec<u8>) {
    let BatchHead { sub, epoch, seq, cv, fp, more } = *head;
    match codec {
        Codec::MessagePack => {
            out.push(0x81);
            write_text(out, "batch");
            out.push(if more { 0x87 } else { 0x86 });
            for (key, value) in [("sub", sub.0), ("epoch", epoch.0), ("seq", seq.0), ("cv", cv.0)] {
                write_text(out, key);
                write_uint(out, value);
            }
            write_text(out, "fp");
            out.push(0xb0);
            write!(out, "{fp}").expect("a Vec takes every byte");
            if more {
                write_text(out, "more");
                out.push(0xc3);
            }
            write_text(out, "ops");
        }
        Codec::Json => {
            write!(
                out,
                "{{\"batch\":{{\"sub\":{sub},\"epoch\":{epoch},\"seq\":{seq},\"cv\":{cv},\"fp\":\"{fp}\","
            )
            .expect("a Vec takes every byte");
            if more {
                out.extend(b"\"more\":true,");
            }
            out.extend(b"\"ops\":");
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(out, text).expect("a Vec takes every byte");
}

fn write_uint(out: &mut Vec<u8>, value: u64) {
    rmp::encode::write_uint(out, value).expect("a Vec takes every byte");
}

fn write_sint(out: &mut Vec<u8>, value: i64) {
    rmp::encode::write_sint(out, value).expect("a Vec takes every byte");
}

fn write_bin(out: &mut Vec<u8>, bytes: &[u8]) {
    rmp::encode::write_bin(out, bytes).expect("a Vec takes every byte");
}

fn write_cell_msgpack(out: &mut Vec<u8>, cell: ValueRef<'_>) {
    match cell {
        ValueRef::Null => out.push(0xc0),
        ValueRef::Bool(v) => out.push(if v { 0xc3 } else { 0xc2 }),
        ValueRef::Int8(v) | ValueRef::Timestamptz(v) => write_sint(out, v),
        ValueRef::Date(v) => write_sint(out, v.into()),
        ValueRef::Float8(v) => {
            out.push(0xcb);
            out.extend(v.to_be_bytes());
        }
        ValueRef::Text(v) | ValueRef::Json(v) => write_text(out, v),
        ValueRef::Numeric(value::NumericRef::Text(v)) => write_text(out, v),
        ValueRef::Numeric(value::NumericRef::Parsed(v)) => write_text(out, &v.to_string()),
        ValueRef::Bytea(v) => write_bin(out, v),
        ValueRef::Uuid(v) => write_bin(out, v.as_bytes()),
    }
}

/// Appends the JSON form of a cell.
fn write_cell_json(out: &mut Vec<u8>, cell: ValueRef<'_>) {
    fn quoted(out: &mut Vec<u8>, text: &str) {
        serde_json::to_writer(out, text).expect("a Vec takes every byte");
    }
    match cell {
        ValueRef::Null => out.extend(b"null"),
        ValueRef::Bool(v) => out.extend(if v { &b"true"[..] } else { b"false" }),
        ValueRef::Int8(v) => write!(out, "{v}").expect("a Vec takes every byte"),
        ValueRef::Float8(v) if v.is_finite() => {
            serde_json::to_writer(out, &v).expect("a Vec takes every byte")
        }
        ValueRef::Float8(v) => quoted(out, value::non_finite_name(v)),
        ValueRef::Text(v) | ValueRef::Numeric(value::NumericRef::Text(v)) => quoted(out, v),
        ValueRef::Numeric(value::NumericRef::Parsed(v)) => quoted(out, &v.to_string()),
        ValueRef::Timestamptz(v) => quoted(out, &time::format_timestamptz(v)),
        ValueRef::Date(v) => quoted(out, &time::format_date(v)),
        ValueRef::Uuid(v) => write!(out, "\"{}\"", v.hyphenated()).expect("a Vec takes every byte"),
        ValueRef::Bytea(v) => write!(out, "\"{}\"", BASE64.encode(v)).expect("a Vec takes every byte"),
        ValueRef::Json(v) => out.extend(v.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{ColumnType, Value},
        protocol::{Cell, ClientMessage, ServerMessage, server::Op},
    };

    fn values() -> Vec<(ColumnType, Value)> {
        let json = |ty, text: &str| {
            let value = Value::from_json(ty, &serde_json::from_str(text).expect("test JSON")).expect(text);
            (ty, value)
        };
        vec![
            json(ColumnType::Int8, "-9223372036854775808"),
            json(ColumnType::Float8, "5"),
            json(ColumnType::Float8, "\"-Infinity\""),
            json(ColumnType::Text, "\"a\\\"b\""),
            json(ColumnType::Bytea, "\"AP8=\""),
            json(ColumnType::Timestamptz, "\"2013-02-04T05:00:00.123456Z\""),
            json(ColumnType::Date, "\"1969-12-31\""),
            json(ColumnType::Uuid, "\"67e55044-10b1-426f-9247-bb680e5fe0c8\""),
            json(ColumnType::Numeric, "\"-12.500\""),
            json(ColumnType::Json, "{\"a\":[1,null]}"),
            json(ColumnType::Json, "[1]"),
            (ColumnType::Bool, Value::Bool(true)),
            (ColumnType::Text, Value::Null),
        ]
    }

    #[test]
    fn the_fast_path_writes_what_the_messages_read() {
        for codec in Codec::ALL {
            for more in [false, true] {
                let head = BatchHead {
                    sub: SubId(3),
                    epoch: Epoch(7),
                    seq: Seq(300),
                    cv: Cv(1 << 40),
                    fp: Fingerprint(0xabc),
                    more,
                };
                let values = values();
                let mut ops = OpsEncoder::new(codec);
                let cells = || values.iter().map(|(_, value)| value.as_ref());
                ops.push(OpKind::Add, 0, PlaceMask(5), cells());
                ops.push(OpKind::Edit, 1, PlaceMask(u32::MAX), cells());
                ops.push(OpKind::Remove, 2, PlaceMask(0), cells().take(2));
                let mut message = Vec::new();
                encode_batch_head(codec, &head, &mut message);
                message.extend(ops.finish());
                let mut decoded = Vec::new();
                codec.decode(&message, |m: ServerMessage| decoded.push(m)).expect("decodes");
                let [ServerMessage::Batch(batch)] = decoded.as_slice() else { panic!("{decoded:?}") };
                assert_eq!((batch.sub, batch.seq, batch.cv, batch.more), (head.sub, head.seq, head.cv, more));
                let Op::Edit { table: 1, places: PlaceMask(u32::MAX), cells } = &batch.ops[1] else {
                    panic!("{:?}", batch.ops[1])
                };
                for (cell, (ty, value)) in cells.iter().zip(&values) {
                    assert_eq!(&cell.to_value(*ty, codec).expect("typed"), value, "{codec:?} {ty}");
                    assert_eq!(Cell::from_value(value, codec), *cell, "{codec:?} {ty}");
                }
                // The general serializer reads back to the same message.
                let mut again = Vec::new();
                codec.encode(&decoded[0], &mut again);
                codec.decode(&again, |m: ServerMessage| assert_eq!(m, decoded[0])).expect("decodes");
            }
        }
    }

    #[test]
    fn a_cell_may_have_more_levels_than_a_document_that_is_given() {
        let value = Value::Json(format!("{}{}", "[".repeat(120), "]".repeat(120)).into());
        for codec in Codec::ALL {
            let read = Cell::from_value(&value, codec).to_value(ColumnType::Json, codec);
            assert_eq!(read.as_ref(), Ok(&value), "{codec:?}");
        }
        assert!(Value::from_json(ColumnType::Json, &value.to_json()).is_err());
    }

    #[test]
    fn json_nesting_is_bounded() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(decode_json::<serde_json::Value>(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let error = decode_json::<serde_json::Value>(nested(JSON_DEPTH_MAX + 1).as_bytes());
        assert!(matches!(error, Err(DecodeError::TooDeep)));
    }

    #[test]
    fn msgpack_nesting_is_bounded() {
        let mut bytes = vec![0x91; 100_000];
        bytes.push(0xc0);
        assert!(Codec::MessagePack.decode(&bytes, |_: ClientMessage| ()).is_err());
    }
}
