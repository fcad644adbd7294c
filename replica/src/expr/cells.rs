//! What expressions read: cells by position, of one row or of several side by side.

use tidegate_wire::model::{
    Row, ValueRef,
    row::{COLUMNS_MAX, RowEncoder},
};

/// Cells by position.
pub trait Cells {
    /// The cell at a position.
    ///
    /// # Panics
    /// When there is none.
    fn cell(&self, position: usize) -> ValueRef<'_>;

    /// Adds the cell at a position to a row under construction.
    ///
    /// # Panics
    /// When there is none.
    fn copy(&self, position: usize, to: &mut RowEncoder);
}

impl Cells for Row {
    #[inline]
    fn cell(&self, position: usize) -> ValueRef<'_> {
        Row::cell(self, position)
    }

    fn copy(&self, position: usize, to: &mut RowEncoder) {
        to.copy(self, position);
    }
}

/// How far the positions of two neighbouring rows are apart; a power of two, so that dividing by it is cheap.
const STRIDE: usize = 1 << 11;

const _: () = assert!(COLUMNS_MAX <= STRIDE);

/// The position of a column of the row with a number. Those of row 0 are its columns' own numbers.
#[must_use]
pub fn beside(row: usize, column: usize) -> usize {
    row * STRIDE + column
}

/// The number of the row that a position is in, and the column: what [`beside`] was given.
#[must_use]
pub fn row_and_column(position: usize) -> (usize, usize) {
    (position / STRIDE, position % STRIDE)
}

/// Rows side by side, without being copied into one.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'r> {
    row: &'r Row,
    /// How many are before it.
    number: usize,
    before: Option<&'r Beside<'r>>,
}

impl<'r> Beside<'r> {
    /// One row.
    #[must_use]
    pub fn one(row: &'r Row) -> Self {
        Self { row, number: 0, before: None }
    }

    /// With one row more.
    #[must_use]
    pub fn and<'s>(&'s self, row: &'s Row) -> Beside<'s> {
        Beside { row, number: self.number + 1, before: Some(self) }
    }

    /// The first row.
    #[must_use]
    pub fn first(&self) -> &'r Row {
        self.row(0)
    }

    #[inline]
    fn row(&self, number: usize) -> &'r Row {
        debug_assert!(number <= self.number, "row {number} of {}", self.number + 1);
        let mut at = self;
        while at.number > number
            && let Some(before) = at.before
        {
            at = before;
        }
        at.row
    }
}

impl Cells for Beside<'_> {
    #[inline]
    fn cell(&self, position: usize) -> ValueRef<'_> {
        self.row(position / STRIDE).cell(position % STRIDE)
    }

    fn copy(&self, position: usize, to: &mut RowEncoder) {
        to.copy(self.row(position / STRIDE), position % STRIDE);
    }
}
