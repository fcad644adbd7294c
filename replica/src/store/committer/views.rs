//! Views on the store's thread: each delta goes through them, in an order in which each comes after those it reads, before
//! anybody sees it. So a commit and what follows from it are one version.

use super::{Answer, Committer, record};
use crate::store::{
    CommitError, Delta, IndexId, KeyBytes, Relation, RowChange, SchemaStep, Snapshot, SnapshotEditor,
    TableId, View, ViewDefinition,
    key::row_key,
    snapshot::net,
    tree::Tree,
    view::{RowPair, ViewRows},
};
use std::{collections::BTreeMap, sync::Arc};
use tidegate_wire::model::{Cv, Row, TableSchema};
use tokio::sync::oneshot;

/// Rows for a view: one that begins, or one that has none.
pub struct Materialization {
    /// The view.
    pub definition: ViewDefinition,
    /// Whether it begins.
    pub is_new: bool,
    /// The columns and the key of its rows.
    pub schema: TableSchema,
    /// What keeps them.
    pub view: Box<dyn View>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Where they were computed.
    pub at: Arc<Snapshot>,
    /// The indexes that keeping them reads; released with the rows.
    pub indexes: Vec<IndexId>,
}

/// What became of a [`Materialization`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaterializationOutcome {
    /// The rows are there, at this version.
    Done(Cv),
    /// The tables or views are no longer as they were; nothing has changed, and the indexes are released.
    Overtaken,
    /// Computing the rows failed; nothing has changed, and the indexes are released.
    Failed(String),
    /// The log does not take it.
    Refused(CommitError),
}

/// The views that have rows.
#[derive(Default)]
pub(super) struct LiveViews {
    views: Vec<LiveView>,
    /// How many there have been.
    made: u32,
}

struct LiveView {
    id: TableId,
    name: String,
    view: Box<dyn View>,
    indexes: Vec<IndexId>,
}

impl LiveViews {
    /// A delta with what it changes of the views. Indexes that are not needed any more are added to `released`.
    pub(super) fn derive(&mut self, mut delta: Delta, released: &mut Vec<IndexId>) -> Delta {
        if self.views.is_empty() {
            return delta;
        }
        self.views.retain_mut(|live| {
            let tables = live.view.tables();
            let is_dropped = delta.altered.contains(&live.id);
            let goes_on = if is_dropped {
                false
            } else if tables.iter().any(|table| delta.altered.contains(table)) {
                Self::empty(&mut delta, live, "what it reads has changed");
                false
            } else if delta.tables.iter().any(|changes| tables.contains(&changes.table)) {
                match live.view.advance(&delta) {
                    Ok(changes) => {
                        write(&mut delta, live.id, changes);
                        true
                    }
                    Err(problem) => {
                        Self::empty(&mut delta, live, &problem);
                        false
                    }
                }
            } else {
                true
            };
            if !goes_on {
                released.append(&mut live.indexes);
            }
            goes_on
        });
        delta.tables.sort_by_key(|changes| changes.table);
        delta
    }

    /// A view loses its rows and is read by its definition from there on.
    fn empty(delta: &mut Delta, live: &LiveView, problem: &str) {
        tracing::warn!(
            view = live.name,
            problem,
            "the view's rows cannot be kept; it is read by its definition"
        );
        Arc::make_mut(&mut delta.to).views_mut().empty(live.id);
        delta.altered.push(live.id);
    }

    /// Begins again where the rows that a snapshot holds are those of commits that came to be.
    pub(super) fn restore(&mut self, head: &mut Arc<Snapshot>, released: &mut Vec<IndexId>) {
        self.views.retain_mut(|live| {
            let goes_on = head.table(live.id).is_some() && live.view.hydrate(head).is_ok();
            if !goes_on {
                Arc::make_mut(head).views_mut().empty(live.id);
                released.append(&mut live.indexes);
            }
            goes_on
        });
    }
}

/// Writes what a delta changes of a view into it.
fn write(delta: &mut Delta, id: TableId, changes: Vec<RowPair>) {
    if changes.is_empty() {
        return;
    }
    let to = Arc::make_mut(&mut delta.to);
    let key = to.table(id).map(|relation| relation.schema().primary_key.clone()).unwrap_or_default();
    let mut edits = Vec::with_capacity(changes.len());
    let mut edit = |row: &Row, new: Option<Row>| {
        let key = row_key(row, &key);
        let old = to.set_in_place(id, &key, new.as_ref());
        edits.push((id, RowChange { key, old, new }));
    };
    // What goes is gone before what comes under the same key.
    changes.iter().filter_map(|(old, _)| old.as_ref()).for_each(|old| edit(old, None));
    changes.iter().filter_map(|(_, new)| new.as_ref()).for_each(|new| edit(new, Some(new.clone())));
    delta.tables.extend(net(edits));
}

impl Committer {
    pub(super) fn materialize(
        &mut self,
        materialization: Materialization,
        to: oneshot::Sender<MaterializationOutcome>,
    ) {
        let _ = self.flush();
        let indexes = materialization.indexes.clone();
        let outcome = self.fill(materialization);
        if !matches!(outcome, MaterializationOutcome::Done(_)) {
            self.release(indexes);
        }
        self.group.answers.push(Answer::Materialized { to, outcome });
    }

    fn fill(&mut self, materialization: Materialization) -> MaterializationOutcome {
        let Materialization { definition, is_new, schema, mut view, rows, at, indexes } = materialization;
        let head = Arc::clone(&self.head);
        let name = definition.name.clone();
        let is_as_expected = match head.view(&name) {
            None => is_new && head.table_id(&name).is_none(),
            Some(entry) => !is_new && entry.rows.is_none() && *entry.definition == definition,
        };
        let reads_what_is_there = view.tables().iter().all(|&table| head.table(table).is_some());
        if !is_as_expected || !reads_what_is_there {
            return MaterializationOutcome::Overtaken;
        }
        let key = schema.primary_key.clone();
        let mut by_key: BTreeMap<KeyBytes, Row> =
            rows.into_iter().map(|row| (row_key(&row, &key), row)).collect();
        let since = Delta::between(at, Arc::clone(&head), view.tables());
        if !since.is_empty() {
            match view.advance(&since) {
                Err(problem) => return MaterializationOutcome::Failed(problem),
                Ok(changes) => {
                    for old in changes.iter().filter_map(|(old, _)| old.as_ref()) {
                        by_key.remove(&row_key(old, &key));
                    }
                    for new in changes.into_iter().filter_map(|(_, new)| new) {
                        by_key.insert(row_key(&new, &key), new);
                    }
                }
            }
        }
        let mut editor = SnapshotEditor::new(Arc::clone(&head));
        let mut cv = head.cv();
        if is_new {
            cv = cv.next();
            let step = SchemaStep::CreateView { view: definition };
            let logged =
                editor.step(step).and_then(|_| self.append(|out| record::encode_script(cv, &editor, out)));
            if let Err(error) = logged {
                return MaterializationOutcome::Refused(error);
            }
        }
        self.views.made += 1;
        let id = TableId::of_view(self.views.made);
        let rows = Tree::from_sorted(by_key.into_iter());
        let relation = Arc::new(Relation::with_rows(id, Arc::new(schema), rows, 0));
        let mut delta = editor.finish(cv);
        Arc::make_mut(&mut delta.to).views_mut().fill(&name, ViewRows { id, relation });
        tracing::info!(view = name, cv = cv.0, "the view has its rows");
        self.views.views.push(LiveView { id, name, view, indexes });
        self.head = Arc::clone(&delta.to);
        if is_new {
            self.group.commits += 1;
        }
        self.group.deltas.push(Arc::new(delta));
        MaterializationOutcome::Done(cv)
    }
}
