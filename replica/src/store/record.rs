//! The records of the log: their bytes, written by the store thread and read on replay.
//!
//! A record is `version kind cv …`; integers are LEB128, signed ones zigzag. A commit or a creation of tables takes
//! the cv after the one before it; the outcome of an idempotent body takes none and names the cv it was given at, so
//! a record's cv is not its sequence in the log. A commit's rows are netted, one change per key: replay needs no
//! rules.

use super::{
    CommitError, IdempotencyTag, KeyBytes, SchemaStep, SnapshotEditor, TableChanges, TableId,
    snapshot::Segment,
};
use tidegate_wire::model::{Cv, Row, TableSchema};

const VERSION: u8 = 1;
const KIND_COMMIT: u8 = 1;
const KIND_TABLES: u8 = 2;
const KIND_OUTCOME: u8 = 3;
const KIND_SCRIPT: u8 = 4;
const HAS_AT: u8 = 1;
const HAS_IDEMPOTENCY: u8 = 2;
const ROW_INSERTED: u8 = 1;
const ROW_UPDATED: u8 = 2;
const ROW_DELETED: u8 = 3;
const SEGMENT_ROWS: u8 = 1;
const SEGMENT_STEP: u8 = 2;

/// A record, read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    /// A commit.
    Commit {
        cv: Cv,
        at: Option<i64>,
        /// The idempotent body it is part of, with its ordinal there.
        idempotency: Option<IdempotencyTag>,
        changes: Vec<RecordedChange>,
    },
    /// Tables created by one commit.
    Tables { cv: Cv, schemas: Vec<TableSchema> },
    /// A commit that changes tables, and rows between that.
    Script { cv: Cv, segments: Vec<RecordedSegment> },
    /// The refusal that ended an idempotent body, or the end of one that has no commits; the tag's ordinal is the
    /// number of commits applied before it.
    Outcome { cv: Cv, idempotency: IdempotencyTag, refused: Option<CommitError> },
}

/// Part of a commit that changes tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordedSegment {
    /// Rows.
    Rows(Vec<RecordedChange>),
    /// Tables.
    Step(Box<SchemaStep>),
}

/// One row's change as recorded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordedChange {
    /// A new row.
    Inserted(TableId, Row),
    /// A row in the place of one of the same key.
    Updated(TableId, Row),
    /// The end of the row of an encoded key.
    Deleted(TableId, KeyBytes),
}

/// Why a record cannot be read or does not fit what came before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Written by another version.
    #[error("its format version is {found}, and this build reads version {VERSION}")]
    Version {
        /// The version in the record.
        found: u8,
    },
    /// The bytes end early, go on too long, or hold what no record holds.
    #[error("its {part} is malformed")]
    Malformed {
        /// The part at fault.
        part: &'static str,
    },
    /// A cv that does not follow (`log_is_gapless`).
    #[error("it holds cv {found}, but {expected} comes next")]
    Cv {
        /// The cv that comes next.
        expected: Cv,
        /// The cv in the record.
        found: Cv,
    },
    /// A change that does not fit the tables.
    #[error("a change to table {table} does not fit what is there: {problem}")]
    Change {
        /// The table's name, or its number when there is none.
        table: String,
        /// What does not fit.
        problem: &'static str,
    },
}

/// Appends a commit's record.
pub(super) fn encode_commit(
    cv: Cv,
    tables: &[TableChanges],
    at: Option<i64>,
    idempotency: Option<&IdempotencyTag>,
    out: &mut Vec<u8>,
) {
    out.extend([VERSION, KIND_COMMIT]);
    put_integer(cv.0, out);
    out.push(if at.is_some() { HAS_AT } else { 0 } | if idempotency.is_some() { HAS_IDEMPOTENCY } else { 0 });
    if let Some(at) = at {
        put_integer(((at << 1) ^ (at >> 63)) as u64, out);
    }
    if let Some(tag) = idempotency {
        put_tag(tag, out);
    }
    put_tables(tables, out);
}

/// Appends the record of a commit that changes tables.
pub(super) fn encode_script(cv: Cv, editor: &SnapshotEditor, out: &mut Vec<u8>) {
    out.extend([VERSION, KIND_SCRIPT]);
    put_integer(cv.0, out);
    put_integer(editor.segments().count() as u64, out);
    for segment in editor.segments() {
        match segment {
            Segment::Rows(tables) => {
                out.push(SEGMENT_ROWS);
                put_tables(&tables, out);
            }
            Segment::Step(step) => {
                out.push(SEGMENT_STEP);
                put_bytes(&serde_json::to_vec(step).expect("a step has a JSON form"), out);
            }
        }
    }
}

fn put_tables(tables: &[TableChanges], out: &mut Vec<u8>) {
    put_integer(tables.len() as u64, out);
    for changes in tables {
        put_integer(u64::from(changes.table.0), out);
        put_integer(changes.rows.len() as u64, out);
        for change in &changes.rows {
            let (kind, bytes) = match (&change.old, &change.new) {
                (None, Some(new)) => (ROW_INSERTED, new.as_bytes()),
                (Some(_), Some(new)) => (ROW_UPDATED, new.as_bytes()),
                // A row's key follows from the row, so only a delete names it.
                (_, None) => (ROW_DELETED, change.key.as_slice()),
            };
            out.push(kind);
            put_bytes(bytes, out);
        }
    }
}

/// Appends the record of created tables.
pub(super) fn encode_tables(cv: Cv, schemas: &[TableSchema], out: &mut Vec<u8>) {
    out.extend([VERSION, KIND_TABLES]);
    put_integer(cv.0, out);
    put_bytes(&serde_json::to_vec(schemas).expect("a checked schema has a JSON form"), out);
}

/// Appends the record of an idempotent body's refusal, or of its end without one.
pub(super) fn encode_outcome(cv: Cv, tag: &IdempotencyTag, refused: Option<&CommitError>, out: &mut Vec<u8>) {
    out.extend([VERSION, KIND_OUTCOME]);
    put_integer(cv.0, out);
    put_tag(tag, out);
    put_bytes(&serde_json::to_vec(&refused).expect("an error has a JSON form"), out);
}

fn put_tag(tag: &IdempotencyTag, out: &mut Vec<u8>) {
    put_bytes(tag.key.as_bytes(), out);
    out.extend(tag.body_hash.to_le_bytes());
    put_integer(tag.ordinal, out);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_integer(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_integer(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a record. Whether it fits the tables is for the replay to see.
pub(super) fn decode(payload: &[u8]) -> Result<Record, RecordError> {
    let mut reader = Reader { rest: payload };
    let version = reader.byte("version")?;
    if version != VERSION {
        return Err(RecordError::Version { found: version });
    }
    let kind = reader.byte("kind")?;
    let cv = Cv(reader.integer("cv")?);
    let record = match kind {
        KIND_COMMIT => {
            let flags = reader.byte("flags")?;
            if flags & !(HAS_AT | HAS_IDEMPOTENCY) != 0 {
                return Err(RecordError::Malformed { part: "flags" });
            }
            let at = if flags & HAS_AT == 0 {
                None
            } else {
                let zigzag = reader.integer("time")?;
                Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
            };
            let idempotency = if flags & HAS_IDEMPOTENCY == 0 { None } else { Some(reader.tag()?) };
            Record::Commit { cv, at, idempotency, changes: reader.changes()? }
        }
        KIND_TABLES => Record::Tables { cv, schemas: reader.json("table schemas")? },
        KIND_SCRIPT => {
            let mut segments = Vec::new();
            for _ in 0..reader.integer("segment count")? {
                segments.push(match reader.byte("segment")? {
                    SEGMENT_ROWS => RecordedSegment::Rows(reader.changes()?),
                    SEGMENT_STEP => RecordedSegment::Step(reader.json("schema step")?),
                    _ => return Err(RecordError::Malformed { part: "segment" }),
                });
            }
            Record::Script { cv, segments }
        }
        KIND_OUTCOME => Record::Outcome { cv, idempotency: reader.tag()?, refused: reader.json("refusal")? },
        _ => return Err(RecordError::Malformed { part: "kind" }),
    };
    if reader.rest.is_empty() { Ok(record) } else { Err(RecordError::Malformed { part: "end" }) }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, part: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(RecordError::Malformed { part })?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self, part: &'static str) -> Result<u8, RecordError> {
        Ok(self.take(1, part)?[0])
    }

    fn integer(&mut self, part: &'static str) -> Result<u64, RecordError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(part)?;
            // The tenth byte has one bit left to give.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::Malformed { part })
    }

    fn bytes(&mut self, part: &'static str) -> Result<&'a [u8], RecordError> {
        let length = usize::try_from(self.integer(part)?).map_err(|_| RecordError::Malformed { part })?;
        self.take(length, part)
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self, part: &'static str) -> Result<T, RecordError> {
        serde_json::from_slice(self.bytes(part)?).map_err(|_| RecordError::Malformed { part })
    }

    fn tag(&mut self) -> Result<IdempotencyTag, RecordError> {
        let part = "idempotency key";
        let key = std::str::from_utf8(self.bytes(part)?).map_err(|_| RecordError::Malformed { part })?;
        let hash = self.take(16, "body hash")?;
        let body_hash = u128::from_le_bytes(hash.try_into().expect("16 bytes"));
        Ok(IdempotencyTag { key: key.into(), body_hash, ordinal: self.integer("ordinal")? })
    }

    fn changes(&mut self) -> Result<Vec<RecordedChange>, RecordError> {
        let mut changes = Vec::new();
        for _ in 0..self.integer("table count")? {
            let table = u32::try_from(self.integer("table")?).map(TableId);
            let table = table.map_err(|_| RecordError::Malformed { part: "table" })?;
            for _ in 0..self.integer("row count")? {
                changes.push(self.change(table)?);
            }
        }
        Ok(changes)
    }

    fn change(&mut self, table: TableId) -> Result<RecordedChange, RecordError> {
        let kind = self.byte("row change")?;
        let bytes = self.bytes("row change")?;
        let row = || Row::from_bytes(bytes).ok_or(RecordError::Malformed { part: "row" });
        match kind {
            ROW_INSERTED => Ok(RecordedChange::Inserted(table, row()?)),
            ROW_UPDATED => Ok(RecordedChange::Updated(table, row()?)),
            ROW_DELETED => Ok(RecordedChange::Deleted(table, KeyBytes::from_slice(bytes))),
            _ => Err(RecordError::Malformed { part: "row change" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Delta;
    use crate::store::{CommitProblem, Snapshot};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn tag() -> IdempotencyTag {
        IdempotencyTag { key: "k-é".into(), body_hash: u128::MAX - 5, ordinal: 300 }
    }

    #[test]
    fn an_outcome_comes_back_with_its_kind_and_message() {
        let refused = CommitError::new(CommitProblem::RowExists)
            .at_op(3)
            .in_table("flights")
            .of_key("{\"id\":1}")
            .of_column("id");
        let mut bytes = Vec::new();
        encode_outcome(Cv(77), &tag(), Some(&refused), &mut bytes);
        let Ok(Record::Outcome { cv, idempotency, refused: Some(read) }) = decode(&bytes) else {
            panic!("an outcome");
        };
        assert_eq!((cv, idempotency), (Cv(77), tag()));
        assert_eq!((read.code(), read.to_string()), (refused.code(), refused.to_string()));
        bytes.clear();
        encode_outcome(Cv(77), &tag(), None, &mut bytes);
        assert_eq!(decode(&bytes), Ok(Record::Outcome { cv: Cv(77), idempotency: tag(), refused: None }));
    }

    #[test]
    fn integers_come_back_and_overlong_ones_are_refused() {
        for at in [None, Some(0), Some(i64::MIN), Some(i64::MAX), Some(-1)] {
            let mut bytes = Vec::new();
            let delta = Delta::empty(Arc::new(Snapshot::empty()));
            encode_commit(delta.to.cv(), &delta.tables, at, Some(&tag()), &mut bytes);
            let read = decode(&bytes).expect("well-formed");
            let expected = Record::Commit { cv: Cv(0), at, idempotency: Some(tag()), changes: Vec::new() };
            assert_eq!(read, expected);
            bytes.push(0);
            assert_eq!(decode(&bytes), Err(RecordError::Malformed { part: "end" }));
        }
        let mut overlong = vec![VERSION, KIND_COMMIT];
        overlong.extend([0xff; 10]);
        assert_eq!(decode(&overlong), Err(RecordError::Malformed { part: "cv" }));
        assert_eq!(decode(&[9, 1, 1]), Err(RecordError::Version { found: 9 }));
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(
            kind in 0_u8..6,
            bytes in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..60),
        ) {
            let mut record = vec![VERSION, kind];
            record.extend(bytes);
            let _ = decode(&record);
        }
    }
}
