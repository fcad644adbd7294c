//! The engine alone, on one thread: a snapshot that is edited by hand, and pipelines that are told of it.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value as Json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tidegate_replica::{
    pipeline::{Budget, Pipeline},
    query::{Parameters, Resolved, Shape, nest::nest, resolve, resolve_select},
    sql::bind,
    store::{Delta, IndexId, Snapshot, SnapshotEditor, TableId, key::row_key},
    worker::{BindingId, Change},
};
use tidegate_tests::row_changes::RowChange;
use tidegate_wire::model::{Cv, PlaceMask, Row, TableSchema, query::Query};

/// Tables at their newest commit version.
pub(crate) struct Engine {
    /// The newest snapshot.
    pub(crate) snapshot: Arc<Snapshot>,
    tables: Vec<TableId>,
    next_index: u64,
}

impl Engine {
    /// Empty tables.
    pub(crate) fn new(tables: Vec<TableSchema>) -> Self {
        let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
        let tables = tables.into_iter().map(|table| editor.create_table(table)).collect();
        Self { snapshot: editor.finish(Cv(1)).to, tables, next_index: 0 }
    }

    /// A table's id.
    pub(crate) fn table(&self, name: &str) -> TableId {
        self.snapshot.table_id(name).expect("figures name tables that they made")
    }

    /// Puts rows in one commit.
    pub(crate) fn put(&mut self, table: TableId, rows: impl IntoIterator<Item = Row>) -> Delta {
        let mut editor = SnapshotEditor::new(Arc::clone(&self.snapshot));
        let schema = Arc::clone(self.snapshot.table(table).expect("the table exists").schema());
        for row in rows {
            editor.set(table, &row_key(&row, &schema.primary_key), Some(row));
        }
        let delta = editor.finish(self.snapshot.cv().next());
        self.snapshot = Arc::clone(&delta.to);
        delta
    }

    /// Makes changes in one commit; their tables are those that the engine was made with, by position.
    pub(crate) fn apply(&mut self, changes: &[RowChange]) -> Delta {
        let mut editor = SnapshotEditor::new(Arc::clone(&self.snapshot));
        for change in changes {
            let table = self.tables[change.table];
            let relation = editor.snapshot().table(table).expect("the table exists");
            let row = change.new.as_ref().or(change.old.as_ref()).expect("a row comes or goes");
            let key = row_key(row, &relation.schema().primary_key);
            editor.set(table, &key, change.new.clone());
        }
        let delta = editor.finish(self.snapshot.cv().next());
        self.snapshot = Arc::clone(&delta.to);
        delta
    }

    /// Resolves a query and builds the indexes that it reads by.
    pub(crate) fn prepare(&mut self, query: &Json) -> anyhow::Result<Resolved> {
        let empty = Map::new();
        let parameters = Parameters { args: &empty, claims: &empty, declared: None };
        let resolved = resolve(&Query::from_json(query)?, &self.snapshot, &parameters)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        self.index(&resolved)?;
        Ok(resolved)
    }

    /// Plans a select without parameters and builds the indexes that it reads by.
    pub(crate) fn prepare_sql(&mut self, sql: &str) -> anyhow::Result<Resolved> {
        let empty = Map::new();
        let parameters = Parameters { args: &empty, claims: &empty, declared: None };
        let select =
            bind(sql, &self.snapshot, &parameters).map_err(|error| anyhow::anyhow!("{sql}: {error}"))?;
        let resolved = resolve_select(&select, &self.snapshot).map_err(|error| anyhow::anyhow!("{error}"))?;
        self.index(&resolved)?;
        Ok(resolved)
    }

    fn index(&mut self, resolved: &Resolved) -> anyhow::Result<()> {
        let mut editor = SnapshotEditor::new(Arc::clone(&self.snapshot));
        for spec in resolved.shape.indexes() {
            let table = editor.snapshot().table(spec.table).context("the index's table")?;
            if table.index_by(&spec).is_none() {
                let tree = table.build_index(&spec);
                editor.add_index(IndexId(self.next_index), spec, tree);
                self.next_index += 1;
            }
        }
        self.snapshot = editor.finish(self.snapshot.cv()).to;
        Ok(())
    }

    /// Binds a query's values in a pipeline of its shape; its result is added to `folded` when there is one.
    pub(crate) fn bind(
        &self,
        pipeline: &mut Pipeline,
        binding: BindingId,
        resolved: &Resolved,
        folded: Option<&mut Folded>,
    ) -> anyhow::Result<()> {
        let mut out = Vec::new();
        pipeline
            .bind(binding, resolved.values.clone().into(), &self.snapshot, &budget(), &mut out)
            .map_err(|fault| anyhow::anyhow!("hydrating faulted: {fault:?}"))?;
        if let Some(folded) = folded {
            folded.fold(&resolved.shape, &out)?;
        }
        Ok(())
    }

    /// Compares a maintained result with the query run from scratch.
    ///
    /// # Errors
    /// When they differ.
    pub(crate) fn check(&self, resolved: &Resolved, maintained: &Folded) -> anyhow::Result<()> {
        let mut fresh = Folded::default();
        let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
        self.bind(&mut pipeline, BindingId(0), resolved, Some(&mut fresh))?;
        let (fresh, maintained) = (fresh.result(&resolved.shape), maintained.result(&resolved.shape));
        ensure!(!fresh.is_empty(), "an empty result proves nothing");
        ensure!(fresh == maintained, "the maintained result differs from a fresh one");
        Ok(())
    }
}

/// One binding's result, folded from changes.
#[derive(Default)]
pub(crate) struct Folded {
    rows: HashMap<(usize, Vec<u8>), (PlaceMask, Row)>,
}

impl Folded {
    /// Folds changes of one commit, in which no row changes twice at a place.
    ///
    /// # Errors
    /// When a row leaves a place where it does not stand, or enters one where it does.
    pub(crate) fn fold(&mut self, shape: &Shape, changes: &[Change]) -> anyhow::Result<()> {
        for change in changes {
            let place = usize::from(change.place);
            let table = shape.output.layout.places[place].table;
            let key = |row: &Row| (table, row_key(row, &shape.output.tables[table].key).to_vec());
            if let Some(old) = &change.old {
                let (mask, _) = self.rows.get_mut(&key(old)).context("a row leaves that is not there")?;
                ensure!(mask.contains(place), "a row leaves a place where it does not stand");
                mask.0 &= !(1 << place);
                if mask.is_empty() {
                    self.rows.remove(&key(old));
                }
            }
            if let Some(new) = &change.new {
                let (mask, row) = self.rows.entry(key(new)).or_insert_with(|| (PlaceMask(0), new.clone()));
                ensure!(!mask.contains(place), "a row enters a place where it stands");
                mask.0 |= 1 << place;
                *row = new.clone();
            }
        }
        Ok(())
    }

    /// The rows, in no order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().map(|(_, row)| row)
    }

    /// The ordered, nested result.
    pub(crate) fn result(&self, shape: &Shape) -> Vec<Json> {
        nest(&shape.output, self.rows.iter().map(|((table, _), (mask, row))| (*table, *mask, row)))
    }
}

/// More time than any step needs.
pub(crate) fn budget() -> Budget {
    Budget::new(Duration::from_secs(60))
}

/// Advances a pipeline.
///
/// # Errors
/// When it faults.
pub(crate) fn advance(pipeline: &mut Pipeline, delta: &Delta, out: &mut Vec<Change>) -> anyhow::Result<()> {
    let faults = pipeline
        .advance(delta, &budget(), out)
        .map_err(|fault| anyhow::anyhow!("the pipeline faulted: {fault:?}"))?;
    ensure!(faults.is_empty(), "a binding faulted: {faults:?}");
    Ok(())
}
