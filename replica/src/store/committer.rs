//! The store thread: takes submissions from a bounded queue, applies them in order, makes what they wrote durable in
//! groups, publishes, and only then answers.
//!
//! A group is the submissions that waited when the thread looked. Its commits are applied one after the other, each
//! to the snapshot of the one before it; one sync makes them all durable; then their deltas go to the listeners, in
//! order, and then the answers. When the sync fails the group's commits are as if they had never been: the next one
//! starts from the last durable snapshot again. A full listener makes the thread wait, and so, in the end, the
//! writers: that is the back-pressure chain.

mod mutation;
mod transaction;
mod views;

pub use transaction::{Transaction, TransactionOutcome};
pub use views::{Materialization, MaterializationOutcome};

use super::{
    Commits, CommitsOutcome, Delta, Draft, IdempotencyEntry, IdempotencyTag, IndexId, IndexSpec, Mutation,
    MutationEffect, MutationOutcome, Snapshot, SnapshotEditor, TablesOutcome,
    apply::{apply_to, check_rules, missing_tables},
    commit_error::{CommitError, CommitErrorKind, CommitProblem},
    draft::CommitLimits,
    idempotency::IdempotencyKeys,
    indexes::{Aside, BuiltIndex, IndexAnswer, Indexes},
    journal::Journal,
    limits::{GROUP_BYTES_MAX, GROUP_COMMITS_MAX, REFUSALS_KEPT_MAX, RUN_BODY_MIN, RUN_COMMITS_MAX},
    published::Published,
    record,
    refusals::{Refusal, Refusals},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tidegate_wire::model::{Cv, TableSchema};
use tokio::sync::{mpsc, oneshot};
use views::LiveViews;

/// What the store thread is asked to do.
pub(super) enum Submission {
    Commits(Commits, oneshot::Sender<CommitsOutcome>),
    CreateTables(Vec<TableSchema>, oneshot::Sender<Result<TablesOutcome, CommitError>>),
    Mutation(Mutation, oneshot::Sender<MutationOutcome>),
    Transaction(Transaction, oneshot::Sender<TransactionOutcome>),
    Materialize(Box<Materialization>, oneshot::Sender<MaterializationOutcome>),
    EnsureIndex(IndexSpec, IndexAnswer),
    IndexBuilt(BuiltIndex),
    /// Look at what is asked for beside the queue: releases and closing.
    Wake,
}

/// What the store thread and the store's handles share.
pub(super) struct Shared {
    pub(super) published: Arc<Published>,
    /// Durable entries only.
    pub(super) keys: Mutex<IdempotencyKeys>,
    /// Indexes that their users are done with. Beside the queue, so that releasing never waits.
    pub(super) released: Mutex<Vec<IndexId>>,
    pub(super) closing: AtomicBool,
    /// Bytes of the log as of the last sync.
    pub(super) log_bytes: AtomicU64,
}

/// The store thread's state.
pub(super) struct Committer {
    shared: Arc<Shared>,
    /// `None`: nothing is kept.
    journal: Option<Box<dyn Journal>>,
    limits: CommitLimits,
    indexes: Indexes,
    /// For threads that report back. Keeps the queue open, so closing is by [`Shared::closing`].
    submissions: mpsc::Sender<Submission>,
    views: LiveViews,
    refusals: Refusals,
    /// The tables after the last commit applied, which may not be durable yet.
    head: Arc<Snapshot>,
    group: Group,
    /// Reused for every record.
    buffer: Vec<u8>,
}

/// What was applied since the last sync.
#[derive(Default)]
struct Group {
    commits: usize,
    deltas: Vec<Arc<Delta>>,
    keys: HashMap<Arc<str>, IdempotencyEntry>,
    refusals: Vec<Refusal>,
    record_bytes: usize,
    last_sequence: u64,
    answers: Vec<Answer>,
}

/// Commits of one body that are published together, as one delta: copying the paths to what they touch costs once per
/// run, not once per commit, and nobody could see the versions between them for longer than it takes to apply the rest.
struct Run {
    editor: SnapshotEditor,
    /// How many are in it.
    commits: u64,
    from: Cv,
}

impl Run {
    fn new(head: &Arc<Snapshot>) -> Self {
        Self { editor: SnapshotEditor::new(Arc::clone(head)), commits: 0, from: head.cv() }
    }

    /// The commit version of the last.
    fn cv(&self) -> Cv {
        Cv(self.from.0 + self.commits)
    }
}

/// An answer that waits for the sync. Commits also hold what is true when that fails.
enum Answer {
    Commits {
        to: oneshot::Sender<CommitsOutcome>,
        outcome: CommitsOutcome,
        durable: CommitsOutcome,
    },
    Tables {
        to: oneshot::Sender<Result<TablesOutcome, CommitError>>,
        outcome: Result<TablesOutcome, CommitError>,
    },
    Mutation {
        to: oneshot::Sender<MutationOutcome>,
        outcome: MutationOutcome,
    },
    Transaction {
        to: oneshot::Sender<TransactionOutcome>,
        outcome: TransactionOutcome,
    },
    Materialized {
        to: oneshot::Sender<MaterializationOutcome>,
        outcome: MaterializationOutcome,
    },
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        journal: Option<Box<dyn Journal>>,
        limits: CommitLimits,
        index_inline_rows_max: usize,
        submissions: mpsc::Sender<Submission>,
    ) -> Self {
        let head = shared.published.newest();
        Self {
            shared,
            journal,
            limits,
            indexes: Indexes::new(index_inline_rows_max),
            submissions,
            views: LiveViews::default(),
            refusals: Refusals::new(REFUSALS_KEPT_MAX),
            head,
            group: Group::default(),
            buffer: Vec::new(),
        }
    }

    /// Runs until the store is closed and everything that waited then is done.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Submission>) {
        while let Some(submission) = queue.blocking_recv() {
            self.take(submission);
            while !self.group_is_full()
                && let Ok(submission) = queue.try_recv()
            {
                self.take(submission);
            }
            // A failure has been logged, and told to everyone whose commits it took.
            let _ = self.flush();
            self.release_indexes();
            if self.shared.closing.load(Ordering::Acquire) {
                queue.close();
            }
        }
        tracing::debug!(cv = self.head.cv().0, "store closed");
    }

    fn take(&mut self, submission: Submission) {
        match submission {
            Submission::Commits(commits, to) => self.commits(commits, to),
            Submission::CreateTables(schemas, to) => {
                let outcome = self.create_tables(schemas);
                self.group.answers.push(Answer::Tables { to, outcome });
            }
            Submission::Mutation(mutation, to) => {
                let effect = self.mutation(mutation);
                let outcome = MutationOutcome { cv: self.head.cv(), effect };
                self.group.answers.push(Answer::Mutation { to, outcome });
            }
            Submission::Transaction(transaction, to) => self.transaction(transaction, to),
            Submission::Materialize(materialization, to) => self.materialize(*materialization, to),
            Submission::EnsureIndex(spec, answer) => self.ensure_index(spec, answer),
            Submission::IndexBuilt(built) => self.index_built(built),
            Submission::Wake => {}
        }
    }

    fn group_is_full(&self) -> bool {
        let Group { commits, record_bytes, answers, .. } = &self.group;
        *commits >= GROUP_COMMITS_MAX
            || *record_bytes >= GROUP_BYTES_MAX
            || answers.len() >= GROUP_COMMITS_MAX
    }

    /// Applies commits in order up to the first refusal. A long run of them is made durable in several groups.
    fn commits(&mut self, commits: Commits, to: oneshot::Sender<CommitsOutcome>) {
        let Commits { drafts, then_refused, idempotency } = commits;
        let mut outcome = CommitsOutcome { applied: 0, cv: self.head.cv(), refused: None };
        // What is true whatever becomes of the group.
        let durable_cv = self.group.deltas.first().map_or(self.head.cv(), |first| first.from.cv());
        let mut durable = CommitsOutcome { applied: 0, cv: durable_cv, refused: None };

        let (mut skipped, mut replayed_refusal) = (0, None);
        if let Some(tag) = &idempotency {
            match self.recorded(tag) {
                Err(problem) => {
                    outcome.refused = Some(problem.into());
                    self.group.answers.push(Answer::Commits { to, outcome, durable });
                    return;
                }
                Ok(None) => {}
                Ok(Some(entry)) => {
                    let done = usize::try_from(entry.applied - tag.ordinal).unwrap_or(usize::MAX);
                    skipped = done.min(drafts.len());
                    (outcome.applied, outcome.cv) = (skipped, entry.cv);
                    // A refusal further on in the body is for the part that reaches it.
                    replayed_refusal = entry.refused.filter(|_| done <= drafts.len());
                    if !self.group.keys.contains_key(&tag.key) {
                        durable = outcome.clone();
                    }
                }
            }
        }
        if replayed_refusal.is_some() {
            outcome.refused = replayed_refusal;
            self.group.answers.push(Answer::Commits { to, outcome, durable });
            return;
        }
        let run_max = if drafts.len() > RUN_BODY_MIN { RUN_COMMITS_MAX } else { 1 };
        let mut run = Run::new(&self.head);
        for (index, draft) in drafts.iter().enumerate().skip(skipped) {
            if run.commits == run_max {
                run = self.end_run(run);
            }
            if self.group_is_full() {
                run = self.end_run(run);
                if let Err(error) = self.flush() {
                    let _ = to.send(CommitsOutcome { refused: Some(error), ..durable });
                    return;
                }
                durable = outcome.clone();
            }
            let tag = idempotency
                .as_ref()
                .map(|tag| IdempotencyTag { ordinal: tag.ordinal + index as u64, ..tag.clone() });
            match self.commit(draft, tag.as_ref(), &mut run) {
                Ok(cv) => (outcome.applied, outcome.cv) = (outcome.applied + 1, cv),
                Err(error) => {
                    outcome.refused = Some(error);
                    break;
                }
            }
        }
        let _ = self.end_run(run);
        if outcome.refused.is_none() {
            outcome.refused = then_refused;
        }
        if let Some(tag) = idempotency {
            let ordinal = tag.ordinal + outcome.applied as u64;
            let is_outcome = match &outcome.refused {
                Some(refused) => is_final(refused),
                // A body's commits tell of it themselves; one without any is told of by its end.
                None => drafts.is_empty() && ordinal == 0,
            };
            if is_outcome {
                let refused = outcome.refused.clone();
                let tag = IdempotencyTag { ordinal, ..tag };
                if let Err(error) = self.record_outcome(tag, outcome.cv, refused) {
                    outcome.refused = Some(error);
                }
            }
        }
        self.group.answers.push(Answer::Commits { to, outcome, durable });
    }

    /// What is known of a body, when it can be continued or answered from there.
    fn recorded(&self, tag: &IdempotencyTag) -> Result<Option<IdempotencyEntry>, CommitProblem> {
        tag.check()?;
        let entry = match self.group.keys.get(&tag.key) {
            Some(entry) => Some(entry.clone()),
            None => self.shared.keys.lock().get(&tag.key).cloned(),
        };
        let recorded = entry.as_ref().map_or(0, |entry| entry.applied);
        match entry {
            Some(entry) if entry.body_hash != tag.body_hash => Err(CommitProblem::OtherBody),
            // A refused body is answered as it was, however it was cut up.
            Some(entry) if entry.refused.is_some() => {
                Ok(Some(IdempotencyEntry { applied: entry.applied.max(tag.ordinal), ..entry }))
            }
            _ if recorded < tag.ordinal => Err(CommitProblem::BodyGap { recorded, ordinal: tag.ordinal }),
            entry => Ok(entry),
        }
    }

    /// Applies one commit of a run and appends its record; a refused one leaves the run as it was.
    fn commit(
        &mut self,
        draft: &Draft,
        tag: Option<&IdempotencyTag>,
        run: &mut Run,
    ) -> Result<Cv, CommitError> {
        let mark = run.editor.mark();
        apply_to(draft, &mut run.editor, &self.limits)?;
        let cv = run.cv().next();
        if self.journal.is_some() {
            let changes = run.editor.changes_since(mark);
            if let Err(error) = self.append(|out| record::encode_commit(cv, &changes, draft.at, tag, out)) {
                run.editor.roll_back(mark);
                return Err(error);
            }
        }
        if let Some(tag) = tag {
            let entry =
                IdempotencyEntry { body_hash: tag.body_hash, applied: tag.ordinal + 1, cv, refused: None };
            self.group.keys.insert(Arc::clone(&tag.key), entry);
        }
        run.commits += 1;
        self.group.commits += 1;
        Ok(cv)
    }

    /// Makes a run's commits the head, if there are any, and begins the next.
    fn end_run(&mut self, run: Run) -> Run {
        if run.commits > 0 {
            let cv = run.cv();
            self.advance(run.editor.finish_run(cv, run.commits));
            return Run::new(&self.head);
        }
        run
    }

    /// Ends a commit: stamps it, appends its record, and makes it the head.
    fn finish(
        &mut self,
        editor: SnapshotEditor,
        at: Option<i64>,
        tag: Option<&IdempotencyTag>,
    ) -> Result<Cv, CommitError> {
        let cv = self.head.cv().next();
        let delta = editor.finish(cv);
        self.append(|out| record::encode_commit(cv, &delta.tables, at, tag, out))?;
        self.group.commits += 1;
        if let Some(tag) = tag {
            let entry =
                IdempotencyEntry { body_hash: tag.body_hash, applied: tag.ordinal + 1, cv, refused: None };
            self.group.keys.insert(Arc::clone(&tag.key), entry);
        }
        self.advance(delta);
        Ok(cv)
    }

    fn advance(&mut self, delta: Delta) {
        let mut released = Vec::new();
        let delta = self.views.derive(delta, &mut released);
        self.release(released);
        self.head = Arc::clone(&delta.to);
        self.group.deltas.push(Arc::new(delta));
    }

    fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), CommitError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        self.buffer.clear();
        encode(&mut self.buffer);
        self.group.last_sequence = journal.append(&self.buffer)?;
        self.group.record_bytes += self.buffer.len();
        // One huge commit must not hold its memory for good.
        self.buffer.shrink_to(GROUP_BYTES_MAX);
        Ok(())
    }

    /// How a body ended is remembered with it, so that a repeat gets the same answer.
    fn record_outcome(
        &mut self,
        tag: IdempotencyTag,
        cv: Cv,
        refused: Option<CommitError>,
    ) -> Result<(), CommitError> {
        self.append(|out| record::encode_outcome(cv, &tag, refused.as_ref(), out))?;
        let IdempotencyTag { key, body_hash, ordinal } = tag;
        let entry = IdempotencyEntry { body_hash, applied: ordinal, cv, refused };
        self.group.keys.insert(key, entry);
        Ok(())
    }

    fn create_tables(&mut self, schemas: Vec<TableSchema>) -> Result<TablesOutcome, CommitError> {
        let missing = missing_tables(schemas, &self.head)?;
        let created = missing.len();
        if created > 0 {
            let cv = self.head.cv().next();
            let mut editor = SnapshotEditor::new(Arc::clone(&self.head));
            let tables: Vec<_> = missing.iter().map(|schema| editor.create_table(schema.clone())).collect();
            for table in tables {
                check_rules(editor.snapshot(), table)?;
            }
            self.append(|out| record::encode_tables(cv, &missing, out))?;
            for schema in missing {
                tracing::info!(table = schema.name, cv = cv.0, "table created");
            }
            self.advance(editor.finish(cv));
        }
        Ok(TablesOutcome { cv: self.head.cv(), created })
    }

    /// Makes the group durable, publishes it, and answers; on failure undoes it and says so.
    fn flush(&mut self) -> Result<(), CommitError> {
        let group = std::mem::take(&mut self.group);
        let synced = match &mut self.journal {
            Some(journal) => journal.sync(),
            None => Ok(()),
        };
        if let Err(error) = synced {
            let durable = self.shared.published.newest();
            tracing::error!(
                error = %error,
                commits_refused = group.commits,
                cv = durable.cv().0,
                "the commit log could not be written; its commits are refused"
            );
            self.head = durable;
            self.restore_views();
            for answer in group.answers {
                answer.fail(&error, self.head.cv());
            }
            return Err(error);
        }
        if let Some(journal) = &self.journal {
            assert!(journal.durable_sequence() >= group.last_sequence, "acknowledged_is_durable");
            self.shared.log_bytes.store(journal.bytes(), Ordering::Relaxed);
        }
        if !group.keys.is_empty() {
            let mut keys = self.shared.keys.lock();
            for (key, entry) in group.keys {
                keys.put(key, entry);
            }
        }
        self.refusals.extend(group.refusals);
        for delta in &group.deltas {
            self.publish(delta);
        }
        for answer in group.answers {
            answer.send();
        }
        Ok(())
    }

    /// Ends uses of indexes. The list is locked for no longer than that, as whoever releases one must not wait.
    fn release(&self, indexes: Vec<IndexId>) {
        if !indexes.is_empty() {
            self.shared.released.lock().extend(indexes);
        }
    }

    /// Views have seen commits that never came to be.
    fn restore_views(&mut self) {
        let durable = Arc::clone(&self.head);
        let mut released = Vec::new();
        self.views.restore(&mut self.head, &mut released);
        self.release(released);
        if !Arc::ptr_eq(&durable, &self.head) {
            let altered = durable.views().filter_map(|view| view.rows.as_ref()).map(|rows| rows.id);
            let altered = altered.filter(|&id| self.head.table(id).is_none()).collect();
            let (from, to) = (durable, Arc::clone(&self.head));
            self.publish(&Arc::new(Delta { from, to, tables: Vec::new(), altered }));
        }
    }

    fn publish(&self, delta: &Arc<Delta>) {
        self.shared.published.publish(delta, &self.shared.closing);
    }

    /// Publishes what changes only indexes; nothing of a group waits then.
    fn publish_indexes(&mut self, delta: Delta) {
        self.head = Arc::clone(&delta.to);
        self.publish(&Arc::new(delta));
    }

    fn ensure_index(&mut self, spec: IndexSpec, answer: IndexAnswer) {
        let _ = self.flush();
        let aside = Aside { published: &self.shared.published, submissions: &self.submissions };
        if let Some((delta, answer, id)) = self.indexes.ensure(spec, answer, &self.head, &aside) {
            self.publish_indexes(delta);
            self.answer_index(answer, id);
        }
    }

    fn index_built(&mut self, built: BuiltIndex) {
        let _ = self.flush();
        let aside = Aside { published: &self.shared.published, submissions: &self.submissions };
        let id = built.id();
        if let Some((delta, waiters)) = self.indexes.built(built, &self.head, &aside) {
            self.publish_indexes(delta);
            for answer in waiters {
                self.answer_index(answer, id);
            }
        }
    }

    fn answer_index(&self, answer: IndexAnswer, id: IndexId) {
        if answer.send(Ok(id)).is_err() {
            // Whoever asked is gone and will not release it.
            self.shared.released.lock().push(id);
        }
    }

    fn release_indexes(&mut self) {
        let released = std::mem::take(&mut *self.shared.released.lock());
        for id in released {
            if let Some(delta) = self.indexes.release(id, &self.head) {
                self.publish_indexes(delta);
            }
        }
    }
}

impl Answer {
    /// Nobody may be waiting any more; what was written stays written.
    fn send(self) {
        match self {
            Self::Commits { to, outcome, .. } => drop(to.send(outcome)),
            Self::Tables { to, outcome } => drop(to.send(outcome)),
            Self::Mutation { to, outcome } => drop(to.send(outcome)),
            Self::Transaction { to, outcome } => drop(to.send(outcome)),
            Self::Materialized { to, outcome } => drop(to.send(outcome)),
        }
    }

    fn fail(self, error: &CommitError, durable_cv: Cv) {
        match self {
            Self::Commits { to, durable, .. } => {
                drop(to.send(CommitsOutcome { refused: Some(error.clone()), ..durable }));
            }
            Self::Tables { to, .. } => drop(to.send(Err(error.clone()))),
            Self::Transaction { to, .. } => drop(to.send(TransactionOutcome::Refused(error.clone()))),
            Self::Materialized { to, .. } => {
                drop(to.send(MaterializationOutcome::Refused(error.clone())));
            }
            Self::Mutation { to, .. } => {
                let effect = MutationEffect::NotTaken(error.clone());
                drop(to.send(MutationOutcome { cv: durable_cv, effect }));
            }
        }
    }
}

/// Whether the same commit would be refused again, so that the refusal may be recorded.
fn is_final(error: &CommitError) -> bool {
    !matches!(
        error.code(),
        CommitErrorKind::NotReady | CommitErrorKind::SchemaChanged | CommitErrorKind::Internal
    )
}
