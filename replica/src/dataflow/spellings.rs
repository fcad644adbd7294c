//! How a row is spelled that stands for all that are equal to it: numerics 1 and 1.0, or floats 0 and −0, are one value.
//!
//! Of the spellings that are there it is the least by its bytes, so that it depends on these alone, and not on which of
//! them came first.

use super::bag::ByBytes;
use std::collections::BTreeMap;
use tidegate_wire::model::{Row, ValueRef};

/// See the module's description. How many equal rows there are in all, its owner counts.
#[derive(Debug)]
pub(super) struct Spellings {
    row: Row,
    /// How many rows have each spelling, where there are several.
    #[expect(
        clippy::box_collection,
        reason = "rows with one spelling, which are nearly all, are smaller for it"
    )]
    counts: Option<Box<BTreeMap<ByBytes, i64>>>,
}

impl Spellings {
    /// Rows that are all spelled like this one.
    pub(super) fn of(row: Row) -> Self {
        Self { row, counts: None }
    }

    /// The row as it is spelled; where there is none, as one was.
    pub(super) fn row(&self) -> &Row {
        &self.row
    }

    /// Whether there are several spellings.
    pub(super) fn are_several(&self) -> bool {
        self.counts.is_some()
    }

    /// Whether some of the rows are spelled like one.
    pub(super) fn contain(&self, row: &Row) -> bool {
        match &self.counts {
            Some(counts) => counts.contains_key(&ByBytes(row.clone())),
            None => self.row.as_bytes() == row.as_bytes(),
        }
    }

    /// Notes that a row with these cells comes or goes so many times, where there were `known` rows.
    pub(super) fn add<'a>(
        &mut self,
        cells: impl Iterator<Item = ValueRef<'a>> + Clone,
        weight: i64,
        known: i64,
    ) {
        if self.are_several() || !self.row.cells().zip(cells.clone()).all(|(own, cell)| own.is_same(cell)) {
            self.count(ByBytes(Row::encode(cells)), weight, known);
        }
    }

    /// Notes what another has noted of `others` rows.
    pub(super) fn merge(&mut self, other: Self, known: i64, others: i64) {
        match other.counts {
            Some(counts) => {
                let mut known = known;
                for (row, count) in *counts {
                    self.count(row, count, known);
                    known += count;
                }
            }
            None => self.add(other.row.cells(), others, known),
        }
    }

    fn count(&mut self, row: ByBytes, weight: i64, known: i64) {
        let own = &self.row;
        let counts =
            self.counts.get_or_insert_with(|| Box::new(BTreeMap::from([(ByBytes(own.clone()), known)])));
        *counts.entry(row).or_default() += weight;
        counts.retain(|_, count| *count != 0);
        if let Some((least, _)) = counts.first_key_value() {
            self.row = least.0.clone();
        }
        if counts.len() < 2 {
            self.counts = None;
        }
    }
}
