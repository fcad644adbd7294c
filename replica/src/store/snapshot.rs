//! All tables at one commit version, and the editor that makes the next one.

use super::{
    CommitError, Delta, IndexId, IndexSpec, KeyBytes, Relation, RowChange, SchemaStep, TableChanges, TableId,
    catalog::{Catalog, Reference},
    tree::Tree,
    view::{ViewEntry, Views},
};
use std::{collections::BTreeSet, sync::Arc};
use tidegate_wire::model::{Cv, Row, TableSchema};

/// Immutable, cheap to clone and to keep, shared by all threads.
#[derive(Clone)]
pub struct Snapshot {
    cv: Cv,
    /// By id; `None` where the table has ended.
    tables: Vec<Option<Arc<Relation>>>,
    catalog: Arc<Catalog>,
    views: Arc<Views>,
}

impl Snapshot {
    /// The database before the first commit.
    #[must_use]
    pub fn empty() -> Self {
        Self { cv: Cv(0), tables: Vec::new(), catalog: Arc::default(), views: Arc::default() }
    }

    /// The commit version the tables stand at.
    #[must_use]
    pub fn cv(&self) -> Cv {
        self.cv
    }

    /// A table or a view's rows by id; `None` when it did not exist yet, or has ended.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<&Relation> {
        if id.is_view() {
            return self.views.relation(id);
        }
        self.tables.get(id.0 as usize)?.as_deref()
    }

    /// A table's id, or that of a view's rows if they are there, by name.
    #[must_use]
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        let of_view = || self.views.named(name)?.rows.as_ref().map(|rows| rows.id);
        self.catalog.table_id(name).or_else(of_view)
    }

    /// The materialized views, in the order of their creation.
    pub fn views(&self) -> impl Iterator<Item = &ViewEntry> {
        self.views.iter()
    }

    /// A materialized view by name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&ViewEntry> {
        self.views.named(name)
    }

    /// The same tables, with views that are read by their definitions: for what has written to tables and sees that.
    #[must_use]
    pub fn with_views_by_definition(&self) -> Self {
        let mut out = self.clone();
        if !out.views.is_empty() {
            out.views_mut().empty_all();
        }
        out
    }

    pub(super) fn views_mut(&mut self) -> &mut Views {
        Arc::make_mut(&mut self.views)
    }

    /// A table by name.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<(TableId, &Relation)> {
        let id = self.table_id(name)?;
        Some((id, self.table(id)?))
    }

    /// All tables in order of creation.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Relation)> {
        let tables = self.tables.iter().enumerate();
        tables.filter_map(|(index, table)| Some((TableId(index as u32), table.as_deref()?)))
    }

    /// The foreign keys of a table.
    #[must_use]
    pub fn references(&self, child: TableId) -> &[Arc<Reference>] {
        self.catalog.of_child(child)
    }

    /// The foreign keys that refer to a table.
    #[must_use]
    pub fn referrers(&self, parent: TableId) -> &[Arc<Reference>] {
        self.catalog.to_parent(parent)
    }

    /// Whether both have the same tables, with the same constraints and indexes of their own: `true` guarantees it.
    #[must_use]
    pub fn has_tables_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalog, &other.catalog)
    }

    /// Creates a table in place, for a replay that nobody watches.
    ///
    /// # Panics
    /// When a table of that name exists; callers check first.
    pub(super) fn create_in_place(&mut self, schema: TableSchema) -> TableId {
        assert!(self.table_id(&schema.name).is_none(), "table {} exists", schema.name);
        let id = self.push_table(|id| Relation::new(id, Arc::new(schema)));
        self.renew_catalog();
        id
    }

    /// Adds a table; the catalog is to be renewed.
    pub(super) fn push_table(&mut self, make: impl FnOnce(TableId) -> Relation) -> TableId {
        let id = TableId(u32::try_from(self.tables.len()).expect("fewer than 2^32 tables"));
        self.tables.push(Some(Arc::new(make(id))));
        id
    }

    /// Ends a table, if it is there; the catalog is to be renewed.
    pub(super) fn take_table(&mut self, id: TableId) -> Option<Arc<Relation>> {
        self.tables.get_mut(id.0 as usize)?.take()
    }

    /// Puts a table back; the catalog is to be renewed.
    pub(super) fn put_table(&mut self, id: TableId, table: Relation) {
        self.tables[id.0 as usize] = Some(Arc::new(table));
    }

    /// Takes note of what has become of the tables.
    pub(super) fn renew_catalog(&mut self) {
        self.catalog = Arc::new(Catalog::new(&self.tables));
    }

    /// A table to write to.
    ///
    /// # Panics
    /// When there is no such table.
    fn table_mut(&mut self, id: TableId) -> &mut Relation {
        if id.is_view() {
            return self.views_mut().relation_mut(id).expect("the view's rows are there");
        }
        Arc::make_mut(self.tables[id.0 as usize].as_mut().expect("the table is there"))
    }

    /// Writes a row in place, for a replay that nobody watches.
    ///
    /// # Panics
    /// When there is no such table.
    pub(super) fn set_in_place(&mut self, table: TableId, key: &[u8], new: Option<&Row>) -> Option<Row> {
        self.table_mut(table).set(key, new)
    }

    /// Steps to the next commit version in place.
    pub(super) fn advance_in_place(&mut self) {
        self.cv = self.cv.next();
    }

    /// Encoded bytes of all rows.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        self.tables().map(|(_, table)| table.row_bytes()).sum()
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
    /// Changes of tables, each with how many of the edits come before it.
    steps: Vec<(usize, SchemaStep)>,
    /// The tables that ended.
    altered: Vec<TableId>,
}

/// Part of a commit that changes tables, in order.
pub(super) enum Segment<'e> {
    /// Rows, netted.
    Rows(Vec<TableChanges>),
    /// Tables.
    Step(&'e SchemaStep),
}

impl SnapshotEditor {
    /// Starts from a snapshot.
    #[must_use]
    pub fn new(from: Arc<Snapshot>) -> Self {
        let to = Snapshot::clone(&from);
        Self { from, to, changes: Vec::new(), steps: Vec::new(), altered: Vec::new() }
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

    /// Changes tables; gives the one that began or changed. After an error the editor is of no use.
    ///
    /// # Errors
    /// When the change does not fit what is there.
    pub fn step(&mut self, step: SchemaStep) -> Result<Option<TableId>, CommitError> {
        let done = step.apply(&mut self.to)?;
        self.altered.extend(done.ended);
        self.steps.push((self.changes.len(), step));
        Ok(done.table)
    }

    /// The snapshot it started from.
    #[must_use]
    pub fn origin(&self) -> &Arc<Snapshot> {
        &self.from
    }

    /// Whether nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.steps.is_empty()
    }

    /// Whether tables are changed, not only rows.
    pub(super) fn changes_tables(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The tables that were written to or changed, and those that new foreign keys refer to.
    #[must_use]
    pub fn written_tables(&self) -> BTreeSet<TableId> {
        let mut tables: BTreeSet<TableId> = self.changes.iter().map(|(table, _)| *table).collect();
        for (_, step) in &self.steps {
            let schema = match step {
                SchemaStep::Create { schema } => schema,
                SchemaStep::Drop { table } => {
                    tables.insert(*table);
                    continue;
                }
                SchemaStep::Replace { table, schema, .. } | SchemaStep::Amend { table, schema } => {
                    tables.insert(*table);
                    schema
                }
                SchemaStep::CreateView { .. } | SchemaStep::DropView { .. } => continue,
            };
            let parents = schema.rules.foreign_keys.iter();
            tables.extend(parents.filter_map(|key| self.from.table_id(&key.references)));
        }
        tables
    }

    /// What was written, in order.
    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let ends = self.steps.iter().map(|(at, _)| *at).chain([self.changes.len()]);
        let begins = std::iter::once(0).chain(self.steps.iter().map(|(at, _)| *at));
        let steps = self.steps.iter().map(|(_, step)| Some(Segment::Step(step))).chain([None]);
        begins
            .zip(ends)
            .zip(steps)
            .flat_map(|((begin, end), step)| {
                let rows = net(self.changes[begin..end].to_vec());
                [(!rows.is_empty()).then_some(Segment::Rows(rows)), step]
            })
            .flatten()
    }

    /// The same edits on another snapshot, in which all that they depend on is as it was.
    ///
    /// # Errors
    /// As of [`SnapshotEditor::step`].
    pub(super) fn replayed_on(&self, head: &Arc<Snapshot>) -> Result<Self, CommitError> {
        let mut again = Self::new(Arc::clone(head));
        for segment in self.segments() {
            match segment {
                Segment::Step(step) => {
                    again.step(step.clone())?;
                }
                Segment::Rows(tables) => {
                    for TableChanges { table, rows } in tables {
                        for change in rows {
                            again.set(table, &change.key, change.new);
                        }
                    }
                }
            }
        }
        Ok(again)
    }

    /// Adds an index whose tree holds exactly the table's present rows.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn add_index(&mut self, id: IndexId, spec: Arc<IndexSpec>, tree: Tree<Row>) {
        self.to.table_mut(spec.table).add_index(id, spec, tree);
    }

    /// Drops an index.
    pub fn drop_index(&mut self, table: TableId, id: IndexId) {
        if self.to.table(table).is_some() {
            self.to.table_mut(table).drop_index(id);
        }
    }

    /// A point in the edits to go back to.
    pub(super) fn mark(&self) -> usize {
        self.len()
    }

    /// Whether a table that was written to since a mark has constraints, or is referred to.
    pub(super) fn is_ruled_since(&self, mark: usize) -> bool {
        let mut last = None;
        self.changes[mark..].iter().any(|(table, _)| {
            if last.replace(*table) == Some(*table) {
                return false;
            }
            let rules = self.to.table(*table).map(Relation::rules);
            rules.is_some_and(|rules| !rules.is_empty())
                || !self.to.references(*table).is_empty()
                || !self.to.referrers(*table).is_empty()
        })
    }

    /// Undoes the edits since a mark.
    pub(super) fn roll_back(&mut self, mark: usize) {
        for (table, change) in self.changes.drain(mark..).rev() {
            self.to.set_in_place(table, &change.key, change.old.as_ref());
        }
    }

    /// How many edits there have been.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
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
        let commits = if cv == self.from.cv && self.is_empty() { 0 } else { 1 };
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
        let mut tables = net(self.changes);
        if !self.altered.is_empty() {
            tables.retain(|changes| self.to.table(changes.table).is_some());
        }
        Delta { from: self.from, to: Arc::new(self.to), tables, altered: self.altered }
    }
}

/// Edits in order, netted to one change per key. Key order makes everything downstream deterministic for one commit.
pub(super) fn net(mut changes: Vec<(TableId, RowChange)>) -> Vec<TableChanges> {
    // The sorts are stable, so of the edits of one key the first has the row before, and the last the row after. Apart,
    // they find the keys of a table in order where they came so.
    changes.sort_by_key(|(table, _)| *table);
    for table in changes.chunk_by_mut(|(a, _), (b, _)| a == b) {
        table.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key));
    }
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
