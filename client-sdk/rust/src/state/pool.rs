//! The rows of all subscriptions of a connection, each once: per table and column set, by key, with a count of the
//! subscriptions that hold it.
//!
//! Subscriptions share a row only when the columns that travel are the same for both. Each keeps its own reference,
//! so that the pool decides about memory and never about what is shown.

use hashbrown::{HashMap, hash_map::EntryRef};
use std::sync::Arc;
use tidegate_wire::model::{Row, TableLayout};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    tables: Vec<Option<PooledTable>>,
}

/// A table of the pool; valid until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PooledTableId(usize);

#[derive(Debug)]
struct PooledTable {
    layout: TableLayout,
    /// Result trees that use the table.
    users: usize,
    rows: HashMap<Arc<[u8]>, PooledRow>,
}

#[derive(Debug)]
struct PooledRow {
    row: Row,
    /// Subscriptions that hold the key; never 0.
    count: usize,
}

impl Pool {
    /// The table of exactly this layout, for one more user.
    pub(crate) fn acquire(&mut self, layout: &TableLayout) -> PooledTableId {
        let same = |table: &Option<PooledTable>| table.as_ref().is_some_and(|table| table.layout == *layout);
        let index = self.tables.iter().position(same).unwrap_or_else(|| {
            let table = PooledTable { layout: layout.clone(), users: 0, rows: HashMap::new() };
            match self.tables.iter().position(Option::is_none) {
                Some(free) => {
                    self.tables[free] = Some(table);
                    free
                }
                None => {
                    self.tables.push(Some(table));
                    self.tables.len() - 1
                }
            }
        });
        self.table(PooledTableId(index)).users += 1;
        PooledTableId(index)
    }

    /// Gives up one use of a table, whose rows this user has all left.
    pub(crate) fn release(&mut self, id: PooledTableId) {
        let table = self.table(id);
        table.users -= 1;
        if table.users == 0 {
            debug_assert!(table.rows.is_empty(), "a row outlives its last subscription");
            self.tables[id.0] = None;
        }
    }

    /// A subscription takes a row that it did not hold; returns the shared key and row.
    pub(crate) fn enter(&mut self, id: PooledTableId, key: &[u8], row: Row) -> (Arc<[u8]>, Row) {
        match self.table(id).rows.entry_ref(key) {
            EntryRef::Occupied(mut entry) => {
                let key = Arc::clone(entry.key());
                let pooled = entry.get_mut();
                pooled.count += 1;
                (key, pooled.share(row))
            }
            EntryRef::Vacant(entry) => {
                let entry = entry.insert_entry(PooledRow { row: row.clone(), count: 1 });
                (Arc::clone(entry.key()), row)
            }
        }
    }

    /// A subscription holds new content under a key that it already holds; returns the shared row.
    pub(crate) fn change(&mut self, id: PooledTableId, key: &[u8], row: Row) -> Row {
        self.table(id).rows.get_mut(key).expect("a held key is in the pool").share(row)
    }

    /// A subscription gives a row up.
    pub(crate) fn leave(&mut self, id: PooledTableId, key: &[u8]) {
        let rows = &mut self.table(id).rows;
        let pooled = rows.get_mut(key).expect("a held key is in the pool");
        pooled.count -= 1;
        if pooled.count == 0 {
            rows.remove(key);
        }
    }

    /// Rows held, each counted once.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().flatten().map(|table| table.rows.len()).sum()
    }

    fn table(&mut self, id: PooledTableId) -> &mut PooledTable {
        self.tables[id.0].as_mut().expect("a pooled table in use")
    }
}

impl PooledRow {
    /// The pooled row when its content is the same, else the new one, which then is the pooled one.
    fn share(&mut self, row: Row) -> Row {
        if self.row != row {
            self.row = row;
        }
        self.row.clone()
    }
}
