//! All tables at one commit version, and the editor that makes the next one.

use super::{Delta, IndexId, IndexSpec, KeyBytes, Relation, RowChange, TableChanges, TableId, tree::Tree};
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::model::{Cv, Row, TableSchema};

/// Immutable, cheap to clone and to keep, shared by all threads.
#[derive(Clone)]
pub struct Snapshot {
    cv: Cv,
    tables: Vec<Arc<Relation>>,
    names: Arc<HashMap<String, TableId>>,
}

impl Snapshot {
    /// The database before the first commit.
    #[must_use]
    pub fn empty() -> Self {
        Self { cv: Cv(0), tables: Vec::new(), names: Arc::default() }
    }

    /// The commit version the tables stand at.
    #[must_use]
    pub fn cv(&self) -> Cv {
        self.cv
    }

    /// A table by id; `None` when it did not exist yet.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<&Relation> {
        self.tables.get(id.0 as usize).map(Arc::as_ref)
    }

    /// A table's id by name.
    #[must_use]
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        self.names.get(name).copied()
    }

    /// All tables in order of creation.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Relation)> {
        self.tables.iter().enumerate().map(|(index, table)| (TableId(index as u32), table.as_ref()))
    }

    /// Creates a table in place, for a replay that nobody watches.
    ///
    /// # Panics
    /// When a table of that name exists; callers check first.
    pub(super) fn create_in_place(&mut self, schema: TableSchema) -> TableId {
        let id = TableId(u32::try_from(self.tables.len()).expect("fewer than 2^32 tables"));
        let previous = Arc::make_mut(&mut self.names).insert(schema.name.clone(), id);
        assert!(previous.is_none(), "table {} exists", schema.name);
        self.tables.push(Arc::new(Relation::new(Arc::new(schema))));
        id
    }

    /// Writes a row in place, for a replay that nobody watches.
    ///
    /// # Panics
    /// When there is no such table.
    pub(super) fn set_in_place(&mut self, table: TableId, key: &[u8], new: Option<&Row>) -> Option<Row> {
        Arc::make_mut(&mut self.tables[table.0 as usize]).set(key, new)
    }

    /// Steps to the next commit version in place.
    pub(super) fn advance_in_place(&mut self) {
        self.cv = self.cv.next();
    }

    /// Encoded bytes of all rows.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.row_bytes()).sum()
    }
}

/// Makes the next snapshot. Edits are the store thread's; nobody sees them before [`SnapshotEditor::finish`], and
/// dropping the editor undoes them.
pub struct SnapshotEditor {
    from: Arc<Snapshot>,
    to: Snapshot,
    /// Every edit in order; one key may occur several times. Netted at the end: most commits are too small for a map
    /// to pay.
    changes: Vec<(TableId, RowChange)>,
}

impl SnapshotEditor {
    /// Starts from a snapshot.
    #[must_use]
    pub fn new(from: Arc<Snapshot>) -> Self {
        let to = Snapshot::clone(&from);
        Self { from, to, changes: Vec::new() }
    }

    /// The tables as edited so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.to
    }

    /// Adds an empty table.
    ///
    /// # Panics
    /// When a table of that name exists; callers check first.
    pub fn create_table(&mut self, schema: TableSchema) -> TableId {
        self.to.create_in_place(schema)
    }

    /// Puts `new` under `key` or removes what is there; returns what was there. Changes are netted per key.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn set(&mut self, table: TableId, key: &[u8], new: Option<Row>) -> Option<Row> {
        let old = self.to.set_in_place(table, key, new.as_ref());
        let change = RowChange { key: KeyBytes::from_slice(key), old: old.clone(), new };
        self.changes.push((table, change));
        old
    }

    /// Adds an index whose tree holds exactly the table's present rows.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn add_index(&mut self, id: IndexId, spec: Arc<IndexSpec>, tree: Tree<Row>) {
        Arc::make_mut(&mut self.to.tables[spec.table.0 as usize]).add_index(id, spec, tree);
    }

    /// Drops an index.
    pub fn drop_index(&mut self, table: TableId, id: IndexId) {
        if let Some(table) = self.to.tables.get_mut(table.0 as usize) {
            Arc::make_mut(table).drop_index(id);
        }
    }

    /// A point in the edits to go back to.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Undoes the edits since a mark.
    pub(super) fn roll_back(&mut self, mark: usize) {
        for (table, change) in self.changes.drain(mark..).rev() {
            self.to.set_in_place(table, &change.key, change.old.as_ref());
        }
    }

    /// The net changes since a mark: one commit's, among those that are published together.
    pub(super) fn changes_since(&self, mark: usize) -> Vec<TableChanges> {
        net(self.changes[mark..].to_vec())
    }

    /// The next snapshot, stamped `cv`, and what leads to it: one change per key, those that change nothing left
    /// out. `cv` may be the old one when only indexes changed.
    ///
    /// # Panics
    /// When `cv` would go back or skip, or stays although rows changed (`log_is_gapless`).
    #[must_use]
    pub fn finish(self, cv: Cv) -> Delta {
        let commits = if cv == self.from.cv && self.changes.is_empty() { 0 } else { 1 };
        self.finish_run(cv, commits)
    }

    /// Like [`SnapshotEditor::finish`], for several commits that are published together, as one delta.
    ///
    /// # Panics
    /// When `cv` is not `commits` versions on (`log_is_gapless`).
    #[must_use]
    pub fn finish_run(mut self, cv: Cv, commits: u64) -> Delta {
        assert_eq!(
            cv.0,
            self.from.cv.0 + commits,
            "log_is_gapless: {commits} commits after {}",
            self.from.cv
        );
        self.to.cv = cv;
        Delta { from: self.from, to: Arc::new(self.to), tables: net(self.changes) }
    }
}

/// Edits in order, netted to one change per key. Key order makes everything downstream deterministic for one commit.
fn net(mut changes: Vec<(TableId, RowChange)>) -> Vec<TableChanges> {
    // The sort is stable, so of the edits of one key the first has the row before, and the last the row after.
    changes.sort_by(|(a_table, a), (b_table, b)| a_table.cmp(b_table).then_with(|| a.key.cmp(&b.key)));
    let mut tables: Vec<TableChanges> = Vec::new();
    let mut changes = changes.into_iter().peekable();
    while let Some((table, mut change)) = changes.next() {
        while let Some((_, later)) =
            changes.next_if(|(next, later)| *next == table && later.key == change.key)
        {
            change.new = later.new;
        }
        if change.old == change.new {
            continue;
        }
        match tables.last_mut().filter(|last| last.table == table) {
            Some(last) => last.rows.push(change),
            None => tables.push(TableChanges { table, rows: vec![change] }),
        }
    }
    tables
}
