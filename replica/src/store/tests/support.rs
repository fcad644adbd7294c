//! Stores to test, and short ways to write to them.

use crate::{
    commit_log::CommitLog,
    store::{
        CommitError, Commits, CommitsOutcome, Draft, IdempotencyTag, Snapshot, Store, StoreOptions,
        commit_error, handle, idempotency::IdempotencyKeys, journal::Journal, replay::Replay,
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tidegate_wire::model::{TableSchema, commit::TablesLine};

pub(super) fn tables() -> Vec<TableSchema> {
    let line = br#"{"tables":[
        {"name":"items","primary_key":["id"],"columns":[{"name":"id","type":"int8"},{"name":"name","type":"text"},
            {"name":"n","type":"int8","nullable":true}]},
        {"name":"pairs","primary_key":["b","a"],"columns":[{"name":"a","type":"int8"},{"name":"b","type":"text"},
            {"name":"c","type":"text","nullable":true}]}]}"#;
    serde_json::from_slice::<TablesLine>(line).expect("tables").tables
}

pub(super) fn options(dir: Option<&Path>) -> StoreOptions {
    StoreOptions { dir: dir.map(Path::to_owned), ..StoreOptions::default() }
}

pub(super) fn open_with(options: StoreOptions) -> Store {
    let store = Store::open(options, |_| ()).expect("a store opens");
    store.create_tables_blocking(tables()).expect("open").expect("tables");
    store
}

pub(super) fn open(dir: Option<&Path>) -> Store {
    open_with(options(dir))
}

pub(super) fn draft(store: &Store, ops: &str) -> Draft {
    let line = format!("{{\"ops\":[{ops}]}}");
    Draft::parse(line.as_bytes(), &store.snapshot(), &Default::default()).expect(&line)
}

pub(super) fn insert(id: i64, name: &str) -> String {
    format!(r#"{{"insert":"items","row":{{"id":{id},"name":"{name}"}}}}"#)
}

pub(super) fn update(id: i64, name: &str) -> String {
    format!(r#"{{"update":"items","key":{{"id":{id}}},"set":{{"name":"{name}"}}}}"#)
}

pub(super) fn delete(id: i64) -> String {
    format!(r#"{{"delete":"items","key":{{"id":{id}}}}}"#)
}

/// One commit for each text.
pub(super) fn drafts(store: &Store, commits: &[String]) -> Vec<Draft> {
    commits.iter().map(|ops| draft(store, ops)).collect()
}

pub(super) fn write(store: &Store, commits: &[String]) -> CommitsOutcome {
    let drafts = drafts(store, commits);
    store.commit_blocking(Commits { drafts, ..Commits::default() }).expect("open")
}

pub(super) fn write_tagged(
    store: &Store,
    commits: &[String],
    key: &str,
    hash: u128,
    ordinal: u64,
) -> CommitsOutcome {
    let idempotency = Some(IdempotencyTag { key: key.into(), body_hash: hash, ordinal });
    let drafts = drafts(store, commits);
    store.commit_blocking(Commits { drafts, idempotency, then_refused: None }).expect("open")
}

/// All rows of all tables as text, and the cv.
pub(super) fn contents(snapshot: &Snapshot) -> Vec<String> {
    let mut out = vec![format!("cv {}", snapshot.cv())];
    for (_, table) in snapshot.tables() {
        out.push(format!("{:?}", table.schema()));
        out.extend(table.rows().iter().map(|(key, row)| format!("{key:?} {row:?}")));
        out.push(format!("{} bytes", table.row_bytes()));
    }
    out
}

/// A log that refuses to sync on demand, as on a full disk; the records of a failed sync are dropped.
pub(super) struct FailingJournal {
    log: CommitLog,
    buffered: Vec<Vec<u8>>,
    full: Arc<AtomicBool>,
}

impl Journal for FailingJournal {
    fn append(&mut self, payload: &[u8]) -> Result<u64, CommitError> {
        self.buffered.push(payload.to_vec());
        Ok(self.log.durable_sequence() + self.buffered.len() as u64)
    }

    fn sync(&mut self) -> Result<(), CommitError> {
        let buffered = std::mem::take(&mut self.buffered);
        if self.full.load(Ordering::SeqCst) && !buffered.is_empty() {
            let text = "cannot write to /data/log/1.log: no space left on device".to_owned();
            return Err(commit_error::CommitProblem::LogUnwritable(text).into());
        }
        for payload in buffered {
            Journal::append(&mut self.log, &payload)?;
        }
        Journal::sync(&mut self.log)
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn durable_sequence(&self) -> u64 {
        self.log.durable_sequence()
    }
}

/// A store on a disk that fills up while the flag is set.
pub(super) fn open_failing(dir: &Path) -> (Store, Arc<AtomicBool>) {
    let options = options(Some(dir));
    let mut replay = Replay::new(100, u64::MAX, IdempotencyKeys::new(100));
    let log = CommitLog::open(
        &dir.join("log"),
        options.log,
        |record| replay.record(record.sequence, record.payload),
        |_| (),
    );
    let full = Arc::new(AtomicBool::new(false));
    let journal = FailingJournal { log: log.expect("opens"), buffered: Vec::new(), full: Arc::clone(&full) };
    let replayed = replay.finish().expect("replays");
    let store = handle::Store::start(options, replayed, Some(Box::new(journal))).expect("starts");
    store.create_tables_blocking(tables()).expect("open").expect("tables");
    (store, full)
}
