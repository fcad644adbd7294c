//! One table at one commit version: its rows by primary key, and its secondary indexes. Cheap to clone; a clone is
//! a frozen copy.

use super::{IndexId, IndexSpec, key::row_key, statistics::Statistics, tree::Tree};
use std::sync::Arc;
use tidegate_wire::model::{Row, TableSchema};

/// Names a table for as long as the process lives; never reused. Also its position among a snapshot's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// See the module's description.
#[derive(Clone)]
pub struct Relation {
    schema: Arc<TableSchema>,
    rows: Tree<Row>,
    indexes: Vec<(IndexId, Arc<IndexSpec>, Tree<Row>)>,
    row_bytes: u64,
    /// Shared by all versions.
    statistics: Arc<Statistics>,
}

impl Relation {
    /// An empty table.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>) -> Self {
        Self { schema, rows: Tree::new(), indexes: Vec::new(), row_bytes: 0, statistics: Arc::default() }
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

    /// Drops an index; later versions of the table do not have it.
    pub(super) fn drop_index(&mut self, id: IndexId) {
        self.indexes.retain(|(own, ..)| *own != id);
    }
}
