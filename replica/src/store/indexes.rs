//! The secondary indexes in use: who needs which, and how a new one is built without stopping commits.
//!
//! The registry is the store thread's. A large index is built by a thread of its own, from a snapshot; it then
//! catches up by comparing that snapshot with the newest one, which costs what changed, until little is left for the
//! store thread to do when it publishes the index.

use super::{
    Delta, IndexId, IndexSpec, Relation, Snapshot, SnapshotEditor,
    committer::Submission,
    limits::{INDEX_BUILDS_MAX, INDEX_CATCH_UP_CHANGES_MAX, INDEX_CATCH_UP_ROUNDS_MAX},
    published::Published,
    tree::Tree,
};
use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tidegate_wire::model::Row;
use tokio::sync::{mpsc, oneshot};

/// Why there is no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The specification names no table of the store.
    #[error("there is no table {0} to index")]
    UnknownTable(u32),
    /// The specification names a column that the table does not have.
    #[error("table {table} has no column number {column} to index")]
    UnknownColumn {
        /// The table.
        table: String,
        /// The column's index.
        column: usize,
    },
    /// A defect, or no thread to build on.
    #[error("the index on table {table} could not be built; the log says why")]
    BuildFailed {
        /// The table.
        table: String,
    },
}

pub(super) type IndexAnswer = oneshot::Sender<Result<IndexId, IndexError>>;

/// An index built aside, exact at a snapshot.
pub(super) struct BuiltIndex {
    id: IndexId,
    /// `None` when building failed.
    built: Option<(Tree<Row>, Arc<Snapshot>)>,
}

impl BuiltIndex {
    pub(super) fn id(&self) -> IndexId {
        self.id
    }
}

/// See the module's description.
pub(super) struct Indexes {
    by_spec: HashMap<Arc<IndexSpec>, IndexId>,
    entries: HashMap<IndexId, Entry>,
    /// Ids begin at 1 and are not used again.
    last_id: u64,
    builds: usize,
    waiting: VecDeque<IndexId>,
    inline_rows_max: usize,
}

struct Entry {
    spec: Arc<IndexSpec>,
    users: u64,
    /// Who waits for it; `None` once it is published.
    building: Option<Vec<IndexAnswer>>,
}

impl Indexes {
    pub(super) fn new(inline_rows_max: usize) -> Self {
        Self {
            by_spec: HashMap::new(),
            entries: HashMap::new(),
            last_id: 0,
            builds: 0,
            waiting: VecDeque::new(),
            inline_rows_max,
        }
    }

    /// Answers with the index of a specification, at once or when it is built. Gives what to publish before the
    /// answer may go out.
    pub(super) fn ensure(
        &mut self,
        spec: IndexSpec,
        answer: IndexAnswer,
        head: &Arc<Snapshot>,
        aside: &Aside<'_>,
    ) -> Option<(Delta, IndexAnswer, IndexId)> {
        if let Err(error) = check(&spec, head) {
            let _ = answer.send(Err(error));
            return None;
        }
        let relation = head.table(spec.table).expect("checked above");
        let spec = Arc::new(spec);
        if relation.keeps_index(&spec) {
            let _ = answer.send(Ok(IndexId::KEPT));
            return None;
        }
        if let Some(&id) = self.by_spec.get(&spec) {
            let entry = self.entries.get_mut(&id).expect("a specification's index has an entry");
            entry.users += 1;
            match &mut entry.building {
                Some(waiters) => waiters.push(answer),
                None => {
                    if answer.send(Ok(id)).is_err() {
                        // Whoever asked is gone and will not release it. Others may use it.
                        entry.users -= 1;
                    }
                }
            }
            return None;
        }
        self.last_id += 1;
        let id = IndexId(self.last_id);
        self.by_spec.insert(Arc::clone(&spec), id);
        if relation.rows().len() <= self.inline_rows_max {
            let tree = relation.build_index(&spec);
            self.entries.insert(id, Entry { spec: Arc::clone(&spec), users: 1, building: None });
            return Some((with_index(head, id, spec, tree), answer, id));
        }
        self.entries.insert(id, Entry { spec, users: 1, building: Some(vec![answer]) });
        self.waiting.push_back(id);
        self.start_waiting(aside);
        None
    }

    /// Ends one use; with the last one the index is dropped. Gives what to publish.
    pub(super) fn release(&mut self, id: IndexId, head: &Arc<Snapshot>) -> Option<Delta> {
        let entry = self.entries.get_mut(&id)?;
        entry.users = entry.users.saturating_sub(1);
        // One that is being built goes when it is done.
        if entry.users > 0 || entry.building.is_some() {
            return None;
        }
        let spec = self.forget(id);
        let mut editor = SnapshotEditor::new(Arc::clone(head));
        editor.drop_index(spec.table, id);
        tracing::debug!(index = id.0, "index dropped");
        Some(editor.finish(head.cv()))
    }

    /// Takes an index that was built aside: brings it up to date and gives what to publish, and who waits for it.
    pub(super) fn built(
        &mut self,
        built: BuiltIndex,
        head: &Arc<Snapshot>,
        aside: &Aside<'_>,
    ) -> Option<(Delta, Vec<IndexAnswer>)> {
        let BuiltIndex { id, built } = built;
        self.builds -= 1;
        let entry = self.entries.get_mut(&id).expect("an index has an entry until it is built");
        let waiters = entry.building.take().expect("it was being built");
        let spec = Arc::clone(&entry.spec);
        let result = match built {
            _ if entry.users == 0 => {
                self.forget(id);
                None
            }
            // Those who wait are told that there is no such table any more.
            _ if head.table(spec.table).is_none() => {
                self.forget(id);
                for waiter in waiters {
                    let _ = waiter.send(Err(IndexError::UnknownTable(spec.table.0)));
                }
                None
            }
            None => {
                self.forget(id);
                let table = head.table(spec.table).map(|table| table.schema().name.clone());
                let error = IndexError::BuildFailed { table: table.unwrap_or_default() };
                for waiter in waiters {
                    let _ = waiter.send(Err(error.clone()));
                }
                None
            }
            Some((mut tree, at)) => {
                if let (Some(before), Some(after)) = (at.table(spec.table), head.table(spec.table)) {
                    catch_up(&mut tree, &spec, before, after);
                }
                Some((with_index(head, id, spec, tree), waiters))
            }
        };
        self.start_waiting(aside);
        result
    }

    fn forget(&mut self, id: IndexId) -> Arc<IndexSpec> {
        let entry = self.entries.remove(&id).expect("it has an entry");
        self.by_spec.remove(&entry.spec);
        entry.spec
    }

    fn start_waiting(&mut self, aside: &Aside<'_>) {
        while self.builds < INDEX_BUILDS_MAX {
            let Some(id) = self.waiting.pop_front() else { return };
            let spec = Arc::clone(&self.entries[&id].spec);
            self.builds += 1;
            aside.build(id, spec);
        }
    }
}

fn check(spec: &IndexSpec, snapshot: &Snapshot) -> Result<(), IndexError> {
    let table = snapshot.table(spec.table).ok_or(IndexError::UnknownTable(spec.table.0))?;
    let columns = table.schema().columns.len();
    match spec.columns.iter().find(|(column, _)| *column >= columns) {
        Some(&(column, _)) => Err(IndexError::UnknownColumn { table: table.schema().name.clone(), column }),
        None => Ok(()),
    }
}

fn with_index(head: &Arc<Snapshot>, id: IndexId, spec: Arc<IndexSpec>, tree: Tree<Row>) -> Delta {
    let mut editor = SnapshotEditor::new(Arc::clone(head));
    tracing::debug!(index = id.0, rows = tree.len(), "index published");
    editor.add_index(id, spec, tree);
    editor.finish(head.cv())
}

/// What building aside needs of the store.
pub(super) struct Aside<'a> {
    pub(super) published: &'a Arc<Published>,
    pub(super) submissions: &'a mpsc::Sender<Submission>,
}

impl Aside<'_> {
    fn build(&self, id: IndexId, spec: Arc<IndexSpec>) {
        let (published, submissions) = (Arc::clone(self.published), self.submissions.clone());
        let work = move || {
            let built = catch_unwind(AssertUnwindSafe(|| build(&spec, &published)));
            if built.is_err() {
                tracing::error!(index = id.0, "building an index panicked");
            }
            let built = built.ok().flatten();
            // The store may have closed meanwhile.
            let _ = submissions.blocking_send(Submission::IndexBuilt(BuiltIndex { id, built }));
        };
        if let Err(error) = std::thread::Builder::new().name("tidegate-index".to_owned()).spawn(work) {
            tracing::error!(%error, "no thread to build an index on");
            let submissions = self.submissions.clone();
            // The store thread is the one that would make room in a full queue, so it must not wait here.
            let failed = Submission::IndexBuilt(BuiltIndex { id, built: None });
            if submissions.try_send(failed).is_err() {
                tracing::error!(index = id.0, "the failure of an index could not be reported");
            }
        }
    }
}

/// Builds from the newest snapshot and catches up with those that follow, until little is missing. `None` when the table
/// ends meanwhile.
fn build(spec: &IndexSpec, published: &Published) -> Option<(Tree<Row>, Arc<Snapshot>)> {
    let mut at = published.newest();
    let mut tree = at.table(spec.table)?.build_index(spec);
    for _ in 0..INDEX_CATCH_UP_ROUNDS_MAX {
        let newest = published.newest();
        let changes = catch_up(&mut tree, spec, at.table(spec.table)?, newest.table(spec.table)?);
        at = newest;
        if changes <= INDEX_CATCH_UP_CHANGES_MAX {
            break;
        }
    }
    Some((tree, at))
}

/// Leads an index from one version of its table to a later one; the number of rows that changed.
fn catch_up(tree: &mut Tree<Row>, spec: &IndexSpec, before: &Relation, after: &Relation) -> usize {
    let schema = after.schema();
    let mut changes = 0;
    let mut key = Vec::new();
    Tree::diff(before.rows(), after.rows(), |_, old, new| {
        changes += 1;
        if let Some(old) = old
            && !new.is_some_and(|new| spec.same_key(old, new))
        {
            key.clear();
            spec.encode(schema, old, &mut key);
            tree.remove(&key);
        }
        if let Some(new) = new {
            key.clear();
            spec.encode(schema, new, &mut key);
            tree.insert(&key, new.clone());
        }
    });
    changes
}
