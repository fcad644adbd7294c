//! The store's handle: opening, writing, reading, listening, closing. Any thread; cheap to clone.

use super::{
    CommitError, CommitLimits, Delta, Draft, IdempotencyEntry, IdempotencyTag, IndexError, IndexId,
    IndexSpec, Materialization, MaterializationOutcome, ReplayError, Snapshot,
    committer::{Committer, Shared, Submission, Transaction, TransactionOutcome},
    idempotency::IdempotencyKeys,
    journal::Journal,
    limits::{
        IDEMPOTENCY_KEYS_MAX_DEFAULT, INDEX_INLINE_ROWS_MAX_DEFAULT, SNAPSHOT_BYTES_MAX_DEFAULT,
        SNAPSHOTS_KEPT_MAX_DEFAULT, SUBMISSIONS_MAX_DEFAULT,
    },
    published::Published,
    replay::{Replay, Replayed},
};
use crate::commit_log::{self, CommitLog, LogOptions, ReplayProgress};
use crossbeam_channel::Receiver;
use parking_lot::Mutex;
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};
use tidegate_wire::model::{Cv, TableSchema};
use tokio::sync::{mpsc, oneshot};

/// Name of the log's directory within the store's.
const LOG_DIRECTORY: &str = "log";

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where the store lives; `None` keeps it in memory only, for tests and benchmarks.
    pub dir: Option<PathBuf>,
    /// Settings of the log.
    pub log: LogOptions,
    /// Limits on one commit.
    pub limits: CommitLimits,
    /// Submissions that wait for the store thread; more make their senders wait.
    pub submissions_max: usize,
    /// Snapshots kept, the newest included; at least 1.
    pub snapshots_kept_max: usize,
    /// Estimated bytes that kept snapshots may hold beyond the newest.
    pub snapshot_bytes_max: u64,
    /// Idempotency keys remembered.
    pub idempotency_keys_max: usize,
    /// Rows up to which an index is built on the store thread; larger ones are built aside.
    pub index_inline_rows_max: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            dir: None,
            log: LogOptions::default(),
            limits: CommitLimits::default(),
            submissions_max: SUBMISSIONS_MAX_DEFAULT,
            snapshots_kept_max: SNAPSHOTS_KEPT_MAX_DEFAULT,
            snapshot_bytes_max: SNAPSHOT_BYTES_MAX_DEFAULT,
            idempotency_keys_max: IDEMPOTENCY_KEYS_MAX_DEFAULT,
            index_inline_rows_max: INDEX_INLINE_ROWS_MAX_DEFAULT,
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log cannot be opened.
    #[error(transparent)]
    Log(commit_log::OpenError<ReplayError>),
    /// A record is not one that this build can replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The store thread cannot be started.
    #[error("cannot start the store thread")]
    Thread(#[source] io::Error),
}

/// The store is closed, or its thread is gone. Whether a write that was under way has been applied is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is closed")]
pub struct StoreClosed;

/// Commits to apply in order.
#[derive(Clone, Debug, Default)]
pub struct Commits {
    /// The commits.
    pub drafts: Vec<Draft>,
    /// The refusal of the commit that follows the last draft, found when it was parsed or resolved. It becomes the
    /// outcome's when all drafts are applied, and is remembered with the idempotency key.
    pub then_refused: Option<CommitError>,
    /// The idempotent body that they are part of, with the ordinal of the first.
    pub idempotency: Option<IdempotencyTag>,
}

/// What became of [`Commits`]. All that is applied is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitsOutcome {
    /// How many of the drafts are applied, those that a repeat found applied already included.
    pub applied: usize,
    /// The cv of the last one applied; the store's when there is none.
    pub cv: Cv,
    /// Why the next one is not.
    pub refused: Option<CommitError>,
}

/// What became of a declaration of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablesOutcome {
    /// The cv that created the missing ones; the store's when none was missing.
    pub cv: Cv,
    /// How many were created.
    pub created: usize,
}

/// One client's mutation.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The client.
    pub client_id: String,
    /// Its number, from 1, gapless per client.
    pub id: u64,
    /// The write, or why it could not be resolved.
    pub ops: Result<Draft, CommitError>,
}

/// What became of a [`Mutation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationOutcome {
    /// A cv at which its effect shows.
    pub cv: Cv,
    /// The effect.
    pub effect: MutationEffect,
}

/// The effect of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutationEffect {
    /// The write and the client's new last id are one commit.
    Applied,
    /// The id was taken before; nothing changes.
    Repeated,
    /// The write is refused; the client's last id has advanced all the same.
    Refused(CommitError),
    /// Nothing has changed, and the id is still to come: a gap, an id that cannot be, or a log that cannot be written.
    NotTaken(CommitError),
}

impl MutationEffect {
    /// The error to report, if any.
    #[must_use]
    pub fn error(&self) -> Option<&CommitError> {
        match self {
            Self::Applied | Self::Repeated => None,
            Self::Refused(error) | Self::NotTaken(error) => Some(error),
        }
    }
}

/// See the module's description. The last handle to go closes the store without waiting for it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    submissions: mpsc::Sender<Submission>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens a store, or creates it, replays its log and starts its thread. Blocks on the disk; `on_progress` is
    /// called during the replay.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        options: StoreOptions,
        mut on_progress: impl FnMut(ReplayProgress),
    ) -> Result<Self, OpenError> {
        let keys = IdempotencyKeys::new(options.idempotency_keys_max);
        let mut replay = Replay::new(options.snapshots_kept_max, options.snapshot_bytes_max, keys);
        let journal: Option<Box<dyn Journal>> = match &options.dir {
            None => None,
            Some(dir) => {
                let log = CommitLog::open(
                    &dir.join(LOG_DIRECTORY),
                    options.log,
                    |record| replay.record(record.sequence, record.payload),
                    &mut on_progress,
                );
                Some(Box::new(log.map_err(|error| match error {
                    commit_log::OpenError::Record { source, .. } => OpenError::Replay(source),
                    error => OpenError::Log(error),
                })?))
            }
        };
        Self::start(options, replay.finish()?, journal)
    }

    pub(super) fn start(
        options: StoreOptions,
        replayed: Replayed,
        journal: Option<Box<dyn Journal>>,
    ) -> Result<Self, OpenError> {
        let Replayed { base, deltas, keys } = replayed;
        let published = Published::new(base, options.snapshots_kept_max, options.snapshot_bytes_max);
        let closing = AtomicBool::new(false);
        for delta in deltas {
            published.publish(&delta, &closing);
        }
        let dir = options.dir.as_ref().map(|dir| tracing::field::display(dir.display()));
        tracing::info!(cv = published.newest().cv().0, dir, "store open");
        let shared = Arc::new(Shared {
            published: Arc::new(published),
            keys: Mutex::new(keys),
            released: Mutex::default(),
            closing,
            log_bytes: AtomicU64::new(journal.as_ref().map_or(0, |journal| journal.bytes())),
        });
        let (submissions, queue) = mpsc::channel(options.submissions_max.max(1));
        let committer = Committer::new(
            Arc::clone(&shared),
            journal,
            options.limits,
            options.index_inline_rows_max,
            submissions.clone(),
        );
        let thread = std::thread::Builder::new()
            .name("tidegate-store".to_owned())
            .spawn(move || committer.run(queue))
            .map_err(OpenError::Thread)?;
        Ok(Self { inner: Arc::new(Inner { shared, submissions, thread: Mutex::new(Some(thread)) }) })
    }

    /// Applies commits in order, up to the first that is refused, and answers when those are durable and sent to
    /// every listener. Once submitted they are applied also when the future is dropped.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn commit(&self, commits: Commits) -> Result<CommitsOutcome, StoreClosed> {
        self.submit(|answer| Submission::Commits(commits, answer)).await
    }

    /// [`Store::commit`] for threads.
    ///
    /// # Errors
    /// When the store is closed.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn commit_blocking(&self, commits: Commits) -> Result<CommitsOutcome, StoreClosed> {
        self.submit_blocking(|answer| Submission::Commits(commits, answer))
    }

    /// Creates those of the tables that do not exist, in one commit; with none missing there is none. A table that
    /// exists and differs is a `conflict`, and nothing is created then.
    ///
    /// # Errors
    /// The outer one when the store is closed, the inner one when the tables are refused.
    pub async fn create_tables(
        &self,
        schemas: Vec<TableSchema>,
    ) -> Result<Result<TablesOutcome, CommitError>, StoreClosed> {
        self.submit(|answer| Submission::CreateTables(schemas, answer)).await
    }

    /// [`Store::create_tables`] for threads.
    ///
    /// # Errors
    /// The outer one when the store is closed, the inner one when the tables are refused.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn create_tables_blocking(
        &self,
        schemas: Vec<TableSchema>,
    ) -> Result<Result<TablesOutcome, CommitError>, StoreClosed> {
        self.submit_blocking(|answer| Submission::CreateTables(schemas, answer))
    }

    /// Takes a client's mutation, exactly once per id.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn mutate(&self, mutation: Mutation) -> Result<MutationOutcome, StoreClosed> {
        self.submit(|answer| Submission::Mutation(mutation, answer)).await
    }

    /// [`Store::mutate`] for threads.
    ///
    /// # Errors
    /// When the store is closed.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn mutate_blocking(&self, mutation: Mutation) -> Result<MutationOutcome, StoreClosed> {
        self.submit_blocking(|answer| Submission::Mutation(mutation, answer))
    }

    /// Gives a view its rows, if what they follow from is still there; answers when they are there for all to see. The
    /// rows may be of a snapshot that is not the newest.
    ///
    /// # Errors
    /// When the store is closed.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn materialize_blocking(
        &self,
        materialization: Materialization,
    ) -> Result<MaterializationOutcome, StoreClosed> {
        self.submit_blocking(|answer| Submission::Materialize(Box::new(materialization), answer))
    }

    /// Takes a transaction if what it depends on has not changed since the snapshot it was written over; answers when it
    /// is durable and sent to every listener. For threads.
    ///
    /// # Errors
    /// When the store is closed.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn transact_blocking(&self, transaction: Transaction) -> Result<TransactionOutcome, StoreClosed> {
        self.submit_blocking(|answer| Submission::Transaction(transaction, answer))
    }

    /// The index of a specification, built if there is none. Listeners get a delta at an unchanged cv whose `to` has
    /// it. The caller owes one [`Store::release_index`]. A future dropped before it is done releases by itself.
    ///
    /// # Errors
    /// The outer one when the store is closed, the inner one when there can be no such index.
    pub async fn ensure_index(&self, spec: IndexSpec) -> Result<Result<IndexId, IndexError>, StoreClosed> {
        self.submit(|answer| Submission::EnsureIndex(spec, answer)).await
    }

    /// [`Store::ensure_index`] for threads. A thread that reads a listener must not call it: the store may wait for
    /// that listener first.
    ///
    /// # Errors
    /// The outer one when the store is closed, the inner one when there can be no such index.
    ///
    /// # Panics
    /// Within an asynchronous task.
    pub fn ensure_index_blocking(&self, spec: IndexSpec) -> Result<Result<IndexId, IndexError>, StoreClosed> {
        self.submit_blocking(|answer| Submission::EnsureIndex(spec, answer))
    }

    /// Ends one use of an index. With the last one it is dropped: listeners get a delta at an unchanged cv whose `to`
    /// does not have it. Never waits.
    pub fn release_index(&self, id: IndexId) {
        self.inner.shared.released.lock().push(id);
        self.inner.wake();
    }

    /// The newest snapshot, which is durable.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.shared.published.newest()
    }

    /// The snapshot at a cv, when it is kept.
    #[must_use]
    pub fn snapshot_at(&self, cv: Cv) -> Option<Arc<Snapshot>> {
        self.inner.shared.published.at(cv)
    }

    /// Bytes of the log; 0 for a store in memory.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.inner.shared.log_bytes.load(Ordering::Relaxed)
    }

    /// How many snapshots are kept, and the estimated bytes they hold beyond the newest.
    #[must_use]
    pub fn snapshots_kept(&self) -> (usize, u64) {
        self.inner.shared.published.kept()
    }

    /// A channel of every delta from now on, in order and without a gap, and the snapshot that the first one starts
    /// from. A full channel makes the store wait; dropping the receiver ends it.
    #[must_use]
    pub fn listen(&self, capacity: usize) -> (Arc<Snapshot>, Receiver<Arc<Delta>>) {
        self.inner.shared.published.listen(capacity)
    }

    /// What is durable of the body under an idempotency key.
    #[must_use]
    pub fn idempotency_entry(&self, key: &str) -> Option<IdempotencyEntry> {
        self.inner.shared.keys.lock().get(key).cloned()
    }

    /// Finishes what has been submitted, then stops the thread and waits for it. Listeners that are full and not
    /// read are given up after a second. Blocks; further calls do nothing.
    pub fn close(&self) {
        self.inner.begin_closing();
        let thread = self.inner.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store thread panicked");
        }
    }

    async fn submit<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Submission) -> Result<T, StoreClosed> {
        let (sender, receiver) = oneshot::channel();
        self.inner.submissions.send(make(sender)).await.map_err(|_| StoreClosed)?;
        receiver.await.map_err(|_| StoreClosed)
    }

    fn submit_blocking<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<T>) -> Submission,
    ) -> Result<T, StoreClosed> {
        let (sender, receiver) = oneshot::channel();
        self.inner.submissions.blocking_send(make(sender)).map_err(|_| StoreClosed)?;
        receiver.blocking_recv().map_err(|_| StoreClosed)
    }
}

impl Inner {
    /// A full queue wakes the thread as well.
    fn wake(&self) {
        let _ = self.submissions.try_send(Submission::Wake);
    }

    fn begin_closing(&self) {
        self.shared.closing.store(true, Ordering::Release);
        self.wake();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.begin_closing();
    }
}
