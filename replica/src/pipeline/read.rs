//! Reading a snapshot: filters tested on rows, groups read in order, EXISTS answered by an early-out look-up.

use crate::{
    expr::{Condition, EvalError, ExistsProbe},
    query::shape::{Access, Exists, Filter, Place, Start},
    store::{IndexSpec, KeyBytes, Snapshot, TableId, tree::Tree},
};
use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    ops::{Bound, ControlFlow},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tidegate_wire::model::{ColumnType, Cv, Order, Row, TableSchema, ValueRef, key::encode_cell};

/// Bounds the time of one advance or hydration, and counts the rows it reads.
pub struct Budget {
    deadline: Instant,
    rows_max: u64,
    rows_read: Cell<u64>,
    /// Rows passed on between a select's operators.
    rows_passed: Cell<u64>,
    /// The row that could not be evaluated last.
    failed: RefCell<Option<FailedRow>>,
    /// Lives as long as someone waits for the outcome; `None` when that is not asked.
    wanted: Option<Weak<()>>,
    temporary: Option<RefCell<Vec<TemporaryIndex>>>,
}

/// An index that a snapshot lacked, with the version and the specification it was built for.
type TemporaryIndex = (Cv, Arc<IndexSpec>, Tree<Row>);

/// A row that could not be evaluated: its table, and its primary key as JSON.
pub(crate) type FailedRow = (String, String);

/// Most rows that a select's operators pass on in one step: some gigabytes.
pub(crate) const ROWS_PASSED_MAX: u64 = 10_000_000;

/// How many rows are read between two looks at the clock, and at whether anyone waits for the outcome.
const ROWS_PER_CLOCK: u64 = 1_024;

impl Budget {
    /// A budget that ends `limit` from now.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond the clock's range is no limit in practice; a century is in range everywhere.
        let century = Duration::from_secs(3_155_760_000);
        Self {
            deadline: now + limit.min(century),
            rows_max: u64::MAX,
            rows_read: Cell::new(0),
            rows_passed: Cell::new(0),
            failed: RefCell::default(),
            wanted: None,
            temporary: None,
        }
    }

    /// Like [`Budget::new`], ending also once more than `rows_max` rows are read.
    #[must_use]
    pub fn with_rows(limit: Duration, rows_max: u64) -> Self {
        Self { rows_max, ..Self::new(limit) }
    }

    /// Like [`Budget::new`], ending also once nothing keeps `wanted` alive, as if the time were over: nobody is left to be
    /// told otherwise.
    #[must_use]
    pub(crate) fn while_wanted(limit: Duration, wanted: Weak<()>) -> Self {
        Self { wanted: Some(wanted), ..Self::new(limit) }
    }

    /// Like [`Budget::new`], for reading once: an index that a snapshot lacks is built for the occasion, by reading
    /// the whole table.
    #[must_use]
    pub fn once(limit: Duration) -> Self {
        Self { temporary: Some(RefCell::default()), ..Self::new(limit) }
    }

    /// Whether several threads may share it: not where the rows that are read are counted against a limit.
    pub(crate) fn is_divisible(&self) -> bool {
        self.rows_max == u64::MAX
    }

    /// One for a thread that does a portion of the work.
    pub(crate) fn portion(&self) -> Self {
        Self {
            deadline: self.deadline,
            rows_max: u64::MAX,
            rows_read: Cell::new(0),
            rows_passed: Cell::new(0),
            failed: RefCell::default(),
            wanted: self.wanted.clone(),
            temporary: self.temporary.clone(),
        }
    }

    /// Counts what a portion of the work took.
    ///
    /// # Errors
    /// When that is more rows than operators may pass on.
    pub(crate) fn add(&self, portion: &Self) -> Result<(), EvalError> {
        self.rows_read.set(self.rows_read.get() + portion.rows_read.get());
        self.pass_all(portion.rows_passed.get())
    }

    /// Rows read so far.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.rows_read.get()
    }

    /// The row that could not be evaluated last, taken.
    pub(crate) fn take_failed(&self) -> Option<FailedRow> {
        self.failed.take()
    }

    pub(crate) fn set_failed(&self, row: Option<FailedRow>) {
        self.failed.replace(row);
    }

    /// Counts a row that an operator passes on.
    pub(crate) fn pass(&self) -> Result<(), EvalError> {
        self.pass_all(1)
    }

    fn pass_all(&self, rows: u64) -> Result<(), EvalError> {
        let rows = self.rows_passed.get() + rows;
        self.rows_passed.set(rows);
        if rows > ROWS_PASSED_MAX { Err(EvalError::TooManyRows(ROWS_PASSED_MAX)) } else { Ok(()) }
    }

    pub(crate) fn spend(&self) -> Result<(), EvalError> {
        let rows = self.rows_read.get() + 1;
        self.rows_read.set(rows);
        if rows > self.rows_max {
            return Err(EvalError::RowLimit);
        }
        if rows.is_multiple_of(ROWS_PER_CLOCK) && (Instant::now() >= self.deadline || self.is_unwanted()) {
            return Err(EvalError::Deadline);
        }
        Ok(())
    }

    fn is_unwanted(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.strong_count() == 0)
    }
}

/// Reads one snapshot.
pub(crate) struct Reader<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(crate) budget: &'s Budget,
}

impl<'s> Reader<'s> {
    /// A table's schema.
    ///
    /// # Panics
    /// When the table does not exist; shapes name only tables that do.
    pub(crate) fn schema(&self, table: TableId) -> &'s TableSchema {
        self.snapshot.table(table).expect("a shape's tables exist").schema()
    }

    /// Notes a row that could not be evaluated, for the fault's message.
    pub(crate) fn note_failure(&self, table: TableId, row: &Row) {
        let schema = self.schema(table);
        let key: Vec<_> = schema.primary_key.iter().map(|&column| row.cell(column).to_json()).collect();
        *self.budget.failed.borrow_mut() =
            Some((schema.name.clone(), serde_json::Value::from(key).to_string()));
    }

    /// The tree that an access path reads; `None` for a table younger than the snapshot.
    pub(crate) fn tree(
        &self,
        table: TableId,
        access: &Access,
    ) -> Result<Option<Cow<'s, Tree<Row>>>, EvalError> {
        let Some(relation) = self.snapshot.table(table) else { return Ok(None) };
        let spec = match access {
            Access::Primary => return Ok(Some(Cow::Borrowed(relation.rows()))),
            Access::Index(spec) => spec,
        };
        if let Some(tree) = relation.index_by(spec) {
            return Ok(Some(Cow::Borrowed(tree)));
        }
        let Some(temporary) = &self.budget.temporary else { return Err(EvalError::MissingIndex) };
        let cv = self.snapshot.cv();
        let mut temporary = temporary.borrow_mut();
        if let Some((.., tree)) = temporary.iter().find(|(at, own, _)| *at == cv && own == spec) {
            return Ok(Some(Cow::Owned(tree.clone())));
        }
        let tree = relation.build_index(spec);
        temporary.push((cv, Arc::clone(spec), tree.clone()));
        Ok(Some(Cow::Owned(tree)))
    }

    /// Whether a row passes a filter.
    pub(super) fn passes(&self, filter: &Filter, row: &Row) -> Result<bool, EvalError> {
        if let Some(start) = &filter.start
            && !beyond(start, row)
        {
            return Ok(false);
        }
        if filter.condition == Condition::Constant(Some(true)) {
            return Ok(true);
        }
        Ok(filter.condition.test(row, &Probe { reader: self, filter })? == Some(true))
    }

    /// The rows of a place under a key that pass its filter, in the order of the tree they are read by (the place's
    /// order, where the place has a limit), from the group's beginning or a bound on the tree's key.
    pub(super) fn group_rows(
        &self,
        place: &Place,
        key: &[u8],
        from: Option<Bound<&[u8]>>,
        mut each: impl FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), EvalError> {
        let Some(tree) = self.tree(place.table, &place.access)? else { return Ok(()) };
        let start;
        let from = match from {
            Some(from) => from,
            None => {
                start = self.start_key(place, key);
                Bound::Included(start.as_slice())
            }
        };
        for (row_key, row) in tree.prefix_from(key, from) {
            self.budget.spend()?;
            let passes =
                self.passes(&place.condition, row).inspect_err(|_| self.note_failure(place.table, row))?;
            if passes && each(row_key, row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Where a group's reading starts: at the cursor, when the tree is ordered by what the cursor speaks of.
    fn start_key(&self, place: &Place, key: &[u8]) -> KeyBytes {
        let mut from = KeyBytes::from_slice(key);
        if let Some(start) = &place.condition.start {
            let primary = self.schema(place.table).primary_key.iter().map(|&column| (column, Order::ASC));
            let order: Vec<(usize, Order)> = match &place.access {
                Access::Primary => primary.skip(place.group.len()).collect(),
                Access::Index(spec) => {
                    spec.columns[place.group.len()..].iter().copied().chain(primary).collect()
                }
            };
            if order.starts_with(&start.columns) {
                from.extend_from_slice(&start.key);
            }
        }
        from
    }

    /// The key under which an EXISTS looks for an outer row; `None` when no inner row can match.
    pub(super) fn exists_key(exists: &Exists, outer: &Row) -> Option<KeyBytes> {
        let mut key = Vec::with_capacity(9 * (exists.on.len() + exists.constants.len()));
        for pair in &exists.on {
            encode_converted(outer.cell(pair.outer), pair.outer_ty, pair.inner_ty, &mut key)?;
        }
        for (_, value) in &exists.constants {
            encode_cell(value.as_ref(), Order::ASC, &mut key);
        }
        Some(KeyBytes::from_slice(&key))
    }

    /// Whether an EXISTS finds a row under a key.
    pub(super) fn exists_under(&self, exists: &Exists, key: &[u8]) -> Result<bool, EvalError> {
        let Some(tree) = self.tree(exists.table, &exists.inner)? else { return Ok(false) };
        for (_, row) in tree.prefix(key) {
            self.budget.spend()?;
            if exists.filter.is_trivial() || self.passes(&exists.filter, row)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows of an outer table under an encoded key of an EXISTS's outer columns.
    pub(super) fn outer_rows(
        &self,
        table: TableId,
        exists: &Exists,
        key: &[u8],
        mut each: impl FnMut(&Row) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let Some(tree) = self.tree(table, &exists.outer)? else { return Ok(()) };
        for (_, row) in tree.prefix(key) {
            self.budget.spend()?;
            each(row)?;
        }
        Ok(())
    }
}

/// Appends a cell's key encoding in another column's type; `None` for NULL or when no value of that type equals it.
pub(super) fn encode_converted(
    cell: ValueRef<'_>,
    own: ColumnType,
    wanted: ColumnType,
    out: &mut Vec<u8>,
) -> Option<()> {
    if cell.is_null() {
        return None;
    }
    if own == wanted {
        encode_cell(cell, Order::ASC, out);
    } else {
        encode_cell(cell.convert_exact(wanted)?.as_ref(), Order::ASC, out);
    }
    Some(())
}

fn beyond(start: &Start, row: &Row) -> bool {
    let mut key = Vec::with_capacity(start.key.len() + 8);
    for &(column, order) in &start.columns {
        encode_cell(row.cell(column), order, &mut key);
    }
    if start.inclusive { key >= start.key } else { key > start.key }
}

struct Probe<'r, 's> {
    reader: &'r Reader<'s>,
    filter: &'r Filter,
}

impl ExistsProbe for Probe<'_, '_> {
    fn exists(&self, index: usize, row: &Row) -> Result<bool, EvalError> {
        let exists = &self.filter.exists[index];
        match Reader::exists_key(exists, row) {
            Some(key) => self.reader.exists_under(exists, &key),
            None => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_nobody_waits_for_ends_with_all_its_portions() {
        let wanted = Arc::new(());
        let budget = Budget::while_wanted(Duration::from_secs(3_600), Arc::downgrade(&wanted));
        let portion = budget.portion();
        let spend = |budget: &Budget| (0..ROWS_PER_CLOCK).try_for_each(|_| budget.spend());
        assert_eq!((spend(&budget), spend(&portion)), (Ok(()), Ok(())));
        drop(wanted);
        let ended = Err(EvalError::Deadline);
        assert_eq!((spend(&budget), spend(&portion)), (ended.clone(), ended));
    }
}
