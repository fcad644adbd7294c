//! One table at one commit version: its rows by primary key, and its secondary indexes. Cheap to clone; a clone is
//! a frozen copy.

use super::{IndexId, IndexSpec, key::row_key, rules::Rules, statistics::Statistics, tree::Tree};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegate_wire::model::{Row, TableSchema, ValueRef};

/// Names a table with the columns it has, for as long as the log lives; never reused. Also its position among a
/// snapshot's tables. A table whose columns or name change goes on under another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableId(pub u32);

/// See the module's description.
#[derive(Clone)]
pub struct Relation {
    schema: Arc<TableSchema>,
    rules: Arc<Rules>,
    rows: Tree<Row>,
    indexes: Vec<(IndexId, Arc<IndexSpec>, Tree<Row>)>,
    row_bytes: u64,
    /// The highest number that a row has had, where rows are numbered.
    last_row_id: i64,
    /// Shared by all versions.
    statistics: Arc<Statistics>,
}

impl Relation {
    /// An empty table, with the indexes it keeps.
    #[must_use]
    pub fn new(id: TableId, schema: Arc<TableSchema>) -> Self {
        Self::with_rows(id, schema, Tree::new(), 0)
    }

    /// A table of rows that fit its schema, with the indexes it keeps.
    pub(super) fn with_rows(
        id: TableId,
        schema: Arc<TableSchema>,
        rows: Tree<Row>,
        last_row_id: i64,
    ) -> Self {
        let rules = Arc::new(Rules::new(id, &schema));
        let row_bytes = rows.iter().map(|(_, row)| row.as_bytes().len() as u64).sum();
        let mut table = Self {
            schema,
            rules: Arc::clone(&rules),
            rows,
            indexes: Vec::new(),
            row_bytes,
            last_row_id,
            statistics: Arc::default(),
        };
        for spec in &rules.kept {
            let tree = table.build_index(spec);
            table.add_index(IndexId::KEPT, Arc::clone(spec), tree);
        }
        table
    }

    /// The table with those indexes of another version of it, of the same rows, that it does not keep by itself.
    pub(super) fn with_indexes_of(mut self, other: &Self) -> Self {
        for (id, spec, tree) in &other.indexes {
            if *id != IndexId::KEPT {
                self.indexes.push((*id, Arc::clone(spec), tree.clone()));
            }
        }
        self
    }

    /// What the table asks of its rows.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The highest number that a row has had, where the table numbers its rows.
    #[must_use]
    pub fn last_row_id(&self) -> i64 {
        self.last_row_id
    }

    /// The table's schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The rows by encoded primary key.
    #[must_use]
    pub fn rows(&self) -> &Tree<Row> {
        &self.rows
    }

    /// The row under an encoded primary key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Row> {
        self.rows.get(key)
    }

    /// The rows by an index's key, or `None` when this version of the table does not have the index.
    #[must_use]
    pub fn index(&self, id: IndexId) -> Option<&Tree<Row>> {
        self.indexes.iter().find(|(own, ..)| *own == id).map(|(.., tree)| tree)
    }

    /// The rows by the key of the index that `spec` describes, or `None` when this version of the table lacks it.
    #[must_use]
    pub fn index_by(&self, spec: &Arc<IndexSpec>) -> Option<&Tree<Row>> {
        self.indexes.iter().find(|(_, own, _)| Arc::ptr_eq(own, spec) || own == spec).map(|(.., tree)| tree)
    }

    /// Whether the table keeps the index that `spec` describes by itself.
    pub(super) fn keeps_index(&self, spec: &IndexSpec) -> bool {
        self.rules.kept.iter().any(|kept| **kept == *spec)
    }

    /// Ids and specifications of the indexes.
    pub fn indexes(&self) -> impl Iterator<Item = (IndexId, &Arc<IndexSpec>)> {
        self.indexes.iter().map(|(id, spec, _)| (*id, spec))
    }

    /// Encoded bytes of the rows.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// About how many different values some columns have together; 1 when there are no rows.
    #[must_use]
    pub fn distinct(&self, columns: &[usize]) -> f64 {
        self.statistics.distinct(&self.rows, columns)
    }

    /// Bytes of the trees' nodes, approximately; walks them.
    #[must_use]
    pub fn node_bytes(&self) -> usize {
        self.rows.heap_bytes() + self.indexes.iter().map(|(.., tree)| tree.heap_bytes()).sum::<usize>()
    }

    /// Puts `new` under `key` or, with `None`, removes what is there; returns what was there. The indexes follow.
    ///
    /// # Panics
    /// In debug builds, when `key` is not the new row's.
    pub(super) fn set(&mut self, key: &[u8], new: Option<&Row>) -> Option<Row> {
        let old = match new {
            Some(row) => {
                debug_assert_eq!(row_key(row, &self.schema.primary_key).as_slice(), key);
                self.row_bytes += row.as_bytes().len() as u64;
                if self.schema.rules.row_id
                    && let ValueRef::Int8(id) = row.cell(row.len() - 1)
                {
                    self.last_row_id = self.last_row_id.max(id);
                }
                self.rows.insert(key, row.clone())
            }
            None => self.rows.remove(key),
        };
        if let Some(old) = &old {
            self.row_bytes -= old.as_bytes().len() as u64;
        }
        let mut buffer = Vec::new();
        for (_, spec, tree) in &mut self.indexes {
            match (&old, new) {
                (Some(old), new) if !new.is_some_and(|new| spec.same_key(old, new)) => {
                    buffer.clear();
                    spec.encode(&self.schema, old, &mut buffer);
                    tree.remove(&buffer);
                }
                _ => {}
            }
            if let Some(new) = new {
                buffer.clear();
                spec.encode(&self.schema, new, &mut buffer);
                tree.insert(&buffer, new.clone());
            }
        }
        old
    }

    /// Builds an index's tree over the present rows, without adding it.
    #[must_use]
    pub fn build_index(&self, spec: &IndexSpec) -> Tree<Row> {
        let mut entries: Vec<_> =
            self.rows.iter().map(|(_, row)| (spec.key(&self.schema, row), row.clone())).collect();
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Tree::from_sorted(entries.into_iter())
    }

    /// Adds an index whose tree holds exactly the present rows.
    pub(super) fn add_index(&mut self, id: IndexId, spec: Arc<IndexSpec>, tree: Tree<Row>) {
        debug_assert_eq!(tree.len(), self.rows.len(), "an index holds every row");
        self.indexes.push((id, spec, tree));
    }

    /// Drops an index; later versions of the table do not have it. Those that the table keeps by itself stay.
    pub(super) fn drop_index(&mut self, id: IndexId) {
        self.indexes.retain(|(own, ..)| *own != id || id == IndexId::KEPT);
    }
}
