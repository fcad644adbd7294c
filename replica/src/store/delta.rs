//! What leads from one snapshot to a later one.

use super::{KeyBytes, Snapshot, TableId, tree::Tree};
use std::{collections::BTreeMap, sync::Arc};
use tidegate_wire::model::Row;

/// One key's change: insert (no old row), delete (no new row) or update. Old and new differ.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChange {
    /// The encoded primary key.
    pub key: KeyBytes,
    /// The row before.
    pub old: Option<Row>,
    /// The row after.
    pub new: Option<Row>,
}

/// One table's changes, one per key, in key order.
#[derive(Clone, Debug)]
pub struct TableChanges {
    /// The table.
    pub table: TableId,
    /// Its changes; never empty.
    pub rows: Vec<RowChange>,
}

/// The net changes of one commit, or of several merged. Both snapshots are complete, so that any operator can look
/// up either side.
#[derive(Clone)]
pub struct Delta {
    /// The tables before.
    pub from: Arc<Snapshot>,
    /// The tables after.
    pub to: Arc<Snapshot>,
    /// The changes by table, in table order.
    pub tables: Vec<TableChanges>,
    /// The tables that ended, dropped or replaced by one with other columns. Nothing of them is in `to`, and none of
    /// them is in `tables`.
    pub altered: Vec<TableId>,
}

impl Delta {
    /// A delta that changes nothing, at one snapshot.
    #[must_use]
    pub fn empty(at: Arc<Snapshot>) -> Self {
        Self { from: Arc::clone(&at), to: at, tables: Vec::new(), altered: Vec::new() }
    }

    /// What leads from one snapshot to another in some tables, which both have.
    #[must_use]
    pub fn between(from: Arc<Snapshot>, to: Arc<Snapshot>, tables: &[TableId]) -> Self {
        let mut delta =
            Self { from: Arc::clone(&from), to: Arc::clone(&to), tables: Vec::new(), altered: Vec::new() };
        for &table in tables {
            let (Some(before), Some(after)) = (from.table(table), to.table(table)) else { continue };
            let mut rows = Vec::new();
            Tree::diff(before.rows(), after.rows(), |key, old, new| {
                let key = KeyBytes::from_slice(key);
                rows.push(RowChange { key, old: old.cloned(), new: new.cloned() });
            });
            if !rows.is_empty() {
                delta.tables.push(TableChanges { table, rows });
            }
        }
        delta
    }

    /// The changes of one table, in key order.
    #[must_use]
    pub fn table(&self, table: TableId) -> &[RowChange] {
        self.tables.iter().find(|changes| changes.table == table).map_or(&[], |changes| &changes.rows)
    }

    /// Number of row changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(|changes| changes.rows.len()).sum()
    }

    /// Whether no row changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Merges consecutive deltas into one, netted per key.
    ///
    /// # Panics
    /// When there is none, or they do not follow each other (`log_is_gapless`).
    #[must_use]
    pub fn merge(deltas: &[Arc<Delta>]) -> Arc<Delta> {
        let (first, last) =
            (deltas.first().expect("a delta to merge"), deltas.last().expect("a delta to merge"));
        if deltas.len() == 1 {
            return Arc::clone(first);
        }
        for pair in deltas.windows(2) {
            assert_eq!(pair[0].to.cv(), pair[1].from.cv(), "log_is_gapless");
        }
        let mut tables: BTreeMap<TableId, BTreeMap<&KeyBytes, Sides<'_>>> = BTreeMap::new();
        for changes in deltas.iter().flat_map(|delta| &delta.tables) {
            let table = tables.entry(changes.table).or_default();
            for RowChange { key, old, new } in &changes.rows {
                table
                    .entry(key)
                    .and_modify(|change| change.1 = new.as_ref())
                    .or_insert((old.as_ref(), new.as_ref()));
            }
        }
        let tables = tables
            .into_iter()
            .map(|(table, rows)| TableChanges {
                table,
                rows: rows
                    .into_iter()
                    .filter(|(_, (old, new))| old != new)
                    .map(|(key, (old, new))| RowChange {
                        key: key.clone(),
                        old: old.cloned(),
                        new: new.cloned(),
                    })
                    .collect(),
            })
            .filter(|changes| !changes.rows.is_empty() && last.to.table(changes.table).is_some())
            .collect();
        let altered = deltas.iter().flat_map(|delta| delta.altered.iter().copied()).collect();
        Arc::new(Delta { from: Arc::clone(&first.from), to: Arc::clone(&last.to), tables, altered })
    }
}

/// A key's row before and after.
type Sides<'a> = (Option<&'a Row>, Option<&'a Row>);
