//! Rebuilds the store from its log: in place for all but the newest commits, which become kept snapshots, so that
//! clients resume across a restart.

use super::{
    Delta, IdempotencyEntry, IdempotencyTag, Snapshot, SnapshotEditor, TableId,
    idempotency::IdempotencyKeys,
    key::row_key,
    record::{Record, RecordError, RecordedChange, RecordedSegment, decode},
    system_tables::initial_snapshot,
};
use std::{collections::VecDeque, sync::Arc};
use tidegate_wire::model::{Cv, Row};

/// A record that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {sequence} of the commit log cannot be replayed: {problem}; run the version that wrote it, or restore \
     the log from a backup"
)]
pub struct ReplayError {
    /// The record's sequence in the log.
    pub sequence: u64,
    /// What is wrong with it.
    pub problem: RecordError,
}

/// Takes records in order; [`Replay::finish`] gives what they lead to.
pub(super) struct Replay {
    /// Everything but the records held back. Nobody else holds it, so it is changed in place.
    snapshot: Snapshot,
    /// The newest records, not applied yet.
    newest: VecDeque<(u64, Record)>,
    newest_bytes: u64,
    kept_max: usize,
    bytes_max: u64,
    sizes: VecDeque<u64>,
    keys: IdempotencyKeys,
}

/// What a replay leads to.
pub(super) struct Replayed {
    /// The snapshot that the deltas start from.
    pub(super) base: Arc<Snapshot>,
    /// The newest commits.
    pub(super) deltas: Vec<Arc<Delta>>,
    /// The idempotency keys.
    pub(super) keys: IdempotencyKeys,
}

impl Replay {
    pub(super) fn new(kept_max: usize, bytes_max: u64, keys: IdempotencyKeys) -> Self {
        Self {
            snapshot: Snapshot::clone(&initial_snapshot()),
            newest: VecDeque::new(),
            newest_bytes: 0,
            kept_max,
            bytes_max,
            sizes: VecDeque::new(),
            keys,
        }
    }

    /// The next record.
    pub(super) fn record(&mut self, sequence: u64, payload: &[u8]) -> Result<(), ReplayError> {
        let record = decode(payload).map_err(|problem| ReplayError { sequence, problem })?;
        self.newest.push_back((sequence, record));
        self.sizes.push_back(payload.len() as u64);
        self.newest_bytes += payload.len() as u64;
        while self.newest.len() >= self.kept_max || self.newest_bytes > self.bytes_max {
            let Some((sequence, record)) = self.newest.pop_front() else { break };
            self.newest_bytes -= self.sizes.pop_front().expect("a size for each record");
            self.apply_in_place(record).map_err(|problem| ReplayError { sequence, problem })?;
        }
        Ok(())
    }

    fn apply_in_place(&mut self, record: Record) -> Result<(), RecordError> {
        match record {
            Record::Commit { cv, idempotency, changes, .. } => {
                check_cv(self.snapshot.cv(), cv)?;
                for change in changes {
                    let (table, key, new) = checked(&self.snapshot, change)?;
                    self.snapshot.set_in_place(table, &key, new.as_ref());
                }
                note_commit(&mut self.keys, cv, idempotency);
                self.snapshot.advance_in_place();
            }
            Record::Tables { cv, schemas } => {
                check_cv(self.snapshot.cv(), cv)?;
                for schema in schemas {
                    check_name(&self.snapshot, &schema.name)?;
                    self.snapshot.create_in_place(schema);
                }
                self.snapshot.advance_in_place();
            }
            Record::Script { cv, segments } => {
                check_cv(self.snapshot.cv(), cv)?;
                for segment in segments {
                    match segment {
                        RecordedSegment::Rows(changes) => {
                            for change in changes {
                                let (table, key, new) = checked(&self.snapshot, change)?;
                                self.snapshot.set_in_place(table, &key, new.as_ref());
                            }
                        }
                        RecordedSegment::Step(step) => {
                            step.apply(&mut self.snapshot).map_err(|error| misfit(&error))?;
                        }
                    }
                }
                self.snapshot.advance_in_place();
            }
            Record::Outcome { cv, idempotency, refused } => {
                note_outcome(&mut self.keys, cv, idempotency, refused);
            }
        }
        Ok(())
    }

    /// Applies the records held back, each as a delta.
    pub(super) fn finish(mut self) -> Result<Replayed, ReplayError> {
        let newest = std::mem::take(&mut self.newest);
        let base = Arc::new(self.snapshot);
        let (mut head, mut deltas) = (Arc::clone(&base), Vec::new());
        for (sequence, record) in newest {
            let edited = edit(&head, record, &mut self.keys);
            if let Some(delta) = edited.map_err(|problem| ReplayError { sequence, problem })? {
                head = Arc::clone(&delta.to);
                deltas.push(Arc::new(delta));
            }
        }
        Ok(Replayed { base, deltas, keys: self.keys })
    }
}

fn edit(
    head: &Arc<Snapshot>,
    record: Record,
    keys: &mut IdempotencyKeys,
) -> Result<Option<Delta>, RecordError> {
    let mut editor = SnapshotEditor::new(Arc::clone(head));
    let cv = match record {
        Record::Commit { cv, idempotency, changes, .. } => {
            check_cv(head.cv(), cv)?;
            for change in changes {
                let (table, key, new) = checked(editor.snapshot(), change)?;
                editor.set(table, &key, new);
            }
            note_commit(keys, cv, idempotency);
            cv
        }
        Record::Tables { cv, schemas } => {
            check_cv(head.cv(), cv)?;
            for schema in schemas {
                check_name(editor.snapshot(), &schema.name)?;
                editor.create_table(schema);
            }
            cv
        }
        Record::Script { cv, segments } => {
            check_cv(head.cv(), cv)?;
            for segment in segments {
                match segment {
                    RecordedSegment::Rows(changes) => {
                        for change in changes {
                            let (table, key, new) = checked(editor.snapshot(), change)?;
                            editor.set(table, &key, new);
                        }
                    }
                    RecordedSegment::Step(step) => {
                        editor.step(*step).map_err(|error| misfit(&error))?;
                    }
                }
            }
            cv
        }
        Record::Outcome { cv, idempotency, refused } => {
            note_outcome(keys, cv, idempotency, refused);
            return Ok(None);
        }
    };
    Ok(Some(editor.finish(cv)))
}

fn note_commit(keys: &mut IdempotencyKeys, cv: Cv, tag: Option<IdempotencyTag>) {
    if let Some(IdempotencyTag { key, body_hash, ordinal }) = tag {
        keys.put(key, IdempotencyEntry { body_hash, applied: ordinal.saturating_add(1), cv, refused: None });
    }
}

fn note_outcome(
    keys: &mut IdempotencyKeys,
    cv: Cv,
    tag: IdempotencyTag,
    refused: Option<super::CommitError>,
) {
    let IdempotencyTag { key, body_hash, ordinal } = tag;
    keys.put(key, IdempotencyEntry { body_hash, applied: ordinal, cv, refused });
}

/// `log_is_gapless`, across restarts.
fn check_cv(before: Cv, found: Cv) -> Result<(), RecordError> {
    let expected = before.next();
    if found == expected { Ok(()) } else { Err(RecordError::Cv { expected, found }) }
}

fn misfit(error: &super::CommitError) -> RecordError {
    let table = error.place.table.clone().unwrap_or_else(|| "?".to_owned());
    RecordError::Change { table, problem: "a change of it does not fit what is there" }
}

fn check_name(snapshot: &Snapshot, name: &str) -> Result<(), RecordError> {
    match snapshot.table_id(name) {
        None => Ok(()),
        Some(_) => Err(RecordError::Change { table: name.to_owned(), problem: "it exists already" }),
    }
}

type Write = (TableId, super::KeyBytes, Option<Row>);

/// The write that a recorded change stands for, if it fits.
fn checked(snapshot: &Snapshot, change: RecordedChange) -> Result<Write, RecordError> {
    let (RecordedChange::Inserted(table, _)
    | RecordedChange::Updated(table, _)
    | RecordedChange::Deleted(table, _)) = change;
    let Some(relation) = snapshot.table(table) else {
        return Err(RecordError::Change { table: table.0.to_string(), problem: "there is no such table" });
    };
    let schema = relation.schema();
    let refuse = |problem| Err(RecordError::Change { table: schema.name.clone(), problem });
    let (key, new, existed) = match change {
        RecordedChange::Deleted(_, key) => (key, None, true),
        RecordedChange::Inserted(_, row) | RecordedChange::Updated(_, row)
            if row.len() != schema.columns.len()
                || schema.columns.iter().zip(row.cells()).any(|(column, cell)| {
                    match cell.column_type() {
                        None => !column.nullable,
                        Some(ty) => ty != column.ty,
                    }
                }) =>
        {
            return refuse("a row is not of the table's columns");
        }
        RecordedChange::Inserted(_, row) => (row_key(&row, &schema.primary_key), Some(row), false),
        RecordedChange::Updated(_, row) => (row_key(&row, &schema.primary_key), Some(row), true),
    };
    match (relation.get(&key).is_some(), existed) {
        (true, false) => refuse("a row of an inserted key exists"),
        (false, true) => refuse("no row has the key of an updated or deleted one"),
        _ => Ok((table, key, new)),
    }
}
