//! A row: one immutable, reference-counted, compactly encoded value, shared by every index, snapshot, footprint
//! and batch that holds it.
//!
//! Layout: two bytes `columns | width << 14`, then each cell's end offset in `1 << width` bytes, then the cells.
//! A NULL is an empty cell; any other starts with its type's tag. Integers drop their redundant leading bytes.

use super::{Value, ValueRef, value::NumericRef};
use smallvec::SmallVec;
use std::fmt;
use triomphe::ThinArc;
use uuid::Uuid;

/// Most columns a row can have; PostgreSQL stops at 1,600.
pub const COLUMNS_MAX: usize = 1_600;

mod tag {
    pub(super) const FALSE: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const INT8: u8 = 2;
    pub(super) const FLOAT8: u8 = 3;
    pub(super) const TEXT: u8 = 4;
    pub(super) const BYTEA: u8 = 5;
    pub(super) const TIMESTAMPTZ: u8 = 6;
    pub(super) const DATE: u8 = 7;
    pub(super) const UUID: u8 = 8;
    pub(super) const NUMERIC: u8 = 9;
    pub(super) const JSON: u8 = 10;
}

/// An encoded row. Cloning counts a reference.
#[derive(Clone)]
pub struct Row(ThinArc<(), u8>);

impl Row {
    /// Encodes the cells.
    ///
    /// # Panics
    /// With more than [`COLUMNS_MAX`] cells, or more than 4 GiB of them; schemas and message limits keep both out.
    #[must_use]
    pub fn encode<'a>(cells: impl IntoIterator<Item = ValueRef<'a>>) -> Self {
        let mut encoder = RowEncoder::default();
        cells.into_iter().for_each(|cell| encoder.push(cell));
        encoder.finish()
    }

    /// Encodes owned values.
    #[must_use]
    pub fn from_values(values: &[Value]) -> Self {
        Self::encode(values.iter().map(Value::as_ref))
    }

    /// The row whose encoding `bytes` is, or `None` when it is not a well-formed one. Reads what a log holds.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let head = u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]);
        let (columns, width) = (usize::from(head & 0x3fff), usize::from(head >> 14));
        let start = 2 + (columns << width);
        if width > 2 || bytes.len() < start {
            return None;
        }
        let row = Self(ThinArc::from_header_and_slice((), bytes));
        let mut previous = 0;
        for index in 0..columns {
            let end = row.end(index, width);
            if end < previous || start + end > bytes.len() || !is_cell(&bytes[start + previous..start + end])
            {
                return None;
            }
            previous = end;
        }
        (start + previous == bytes.len()).then_some(row)
    }

    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.slice
    }

    /// How many cells the row has.
    #[must_use]
    pub fn len(&self) -> usize {
        let bytes = self.as_bytes();
        usize::from(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x3fff)
    }

    /// Whether the row has no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell of a column.
    ///
    /// # Panics
    /// When the row has no such column.
    #[must_use]
    #[inline]
    pub fn cell(&self, column: usize) -> ValueRef<'_> {
        decode_cell(self.cell_bytes(column))
    }

    /// The cell's encoding; equal bytes mean identical values (the reverse does not hold: −0 and 0).
    #[inline]
    fn cell_bytes(&self, column: usize) -> &[u8] {
        let bytes = self.as_bytes();
        let head = u16::from_le_bytes([bytes[0], bytes[1]]);
        let (columns, width) = (usize::from(head & 0x3fff), usize::from(head >> 14));
        assert!(column < columns, "column {column} of a row of {columns}");
        let start = 2 + (columns << width);
        let from = if column == 0 { 0 } else { self.end(column - 1, width) };
        &bytes[start + from..start + self.end(column, width)]
    }

    /// All cells in order.
    pub fn cells(&self) -> impl Iterator<Item = ValueRef<'_>> + Clone {
        (0..self.len()).map(|column| self.cell(column))
    }

    /// Whether two rows hold identical values in `columns`.
    #[must_use]
    pub fn same_cells(&self, other: &Self, columns: &[usize]) -> bool {
        self.0.as_ptr() == other.0.as_ptr()
            || columns.iter().all(|&column| self.cell_bytes(column) == other.cell_bytes(column))
    }

    #[inline]
    fn end(&self, index: usize, width: usize) -> usize {
        let bytes = self.as_bytes();
        let at = 2 + (index << width);
        match width {
            0 => usize::from(bytes[at]),
            1 => usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
            _ => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize,
        }
    }
}

/// Encodes a row cell by cell. Rows of common length cost one allocation.
#[derive(Debug, Default)]
pub struct RowEncoder {
    body: Bytes,
    ends: SmallVec<[u32; 24]>,
}

/// Bytes of a row under construction.
type Bytes = SmallVec<[u8; 256]>;

impl RowEncoder {
    /// Adds a cell.
    ///
    /// # Panics
    /// With more than 4 GiB of cells; schemas and message limits keep that out.
    pub fn push(&mut self, cell: ValueRef<'_>) {
        encode_cell(cell, &mut self.body);
        self.end_cell();
    }

    /// Adds the cell of a row's column, as it is encoded there.
    ///
    /// # Panics
    /// As [`RowEncoder::push`], and when the row has no such column.
    pub fn copy(&mut self, row: &Row, column: usize) {
        self.body.extend_from_slice(row.cell_bytes(column));
        self.end_cell();
    }

    fn end_cell(&mut self) {
        self.ends.push(u32::try_from(self.body.len()).expect("a row is below 4 GiB"));
    }

    /// The row.
    ///
    /// # Panics
    /// With more than [`COLUMNS_MAX`] cells.
    #[must_use]
    pub fn finish(self) -> Row {
        let Self { body, ends } = self;
        assert!(ends.len() <= COLUMNS_MAX, "a row has at most {COLUMNS_MAX} columns");
        let width: usize = match body.len() {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            _ => 2,
        };
        let mut bytes = Bytes::with_capacity(2 + (ends.len() << width) + body.len());
        bytes.extend_from_slice(&(ends.len() as u16 | (width as u16) << 14).to_le_bytes());
        match width {
            0 => bytes.extend(ends.iter().map(|end| *end as u8)),
            width => ends.iter().for_each(|end| bytes.extend_from_slice(&end.to_le_bytes()[..1 << width])),
        }
        bytes.extend_from_slice(&body);
        Row(ThinArc::from_header_and_slice((), &bytes))
    }
}

impl PartialEq for Row {
    /// Identical encodings.
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr() || self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Row {}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cells()).finish()
    }
}

fn encode_cell(cell: ValueRef<'_>, out: &mut Bytes) {
    match cell {
        ValueRef::Null => {}
        ValueRef::Bool(v) => out.push(if v { tag::TRUE } else { tag::FALSE }),
        ValueRef::Int8(v) => encode_integer(tag::INT8, v, out),
        ValueRef::Float8(v) => {
            out.push(tag::FLOAT8);
            // There is one NaN, whichever way it was computed.
            let v = if v.is_nan() { f64::NAN } else { v };
            out.extend_from_slice(&v.to_le_bytes());
        }
        ValueRef::Text(v) => {
            out.push(tag::TEXT);
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Bytea(v) => {
            out.push(tag::BYTEA);
            out.extend_from_slice(v);
        }
        ValueRef::Timestamptz(v) => encode_integer(tag::TIMESTAMPTZ, v, out),
        ValueRef::Date(v) => encode_integer(tag::DATE, v.into(), out),
        ValueRef::Uuid(v) => {
            out.push(tag::UUID);
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Numeric(NumericRef::Text(v)) => {
            out.push(tag::NUMERIC);
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Numeric(NumericRef::Parsed(v)) => {
            out.push(tag::NUMERIC);
            out.extend_from_slice(v.to_string().as_bytes());
        }
        ValueRef::Json(v) => {
            out.push(tag::JSON);
            out.extend_from_slice(v.as_bytes());
        }
    }
}

fn encode_integer(tag: u8, value: i64, out: &mut Bytes) {
    out.push(tag);
    let redundant = if value < 0 { (!value).leading_zeros() } else { value.leading_zeros() } - 1;
    let length = 8 - (redundant / 8) as usize;
    out.extend_from_slice(&value.to_le_bytes()[..length]);
}

/// The integer of 1 to 8 bytes. It is put together from a load at either end: copying so few bytes would be a call.
#[inline]
fn decode_integer(bytes: &[u8]) -> i64 {
    let length = bytes.len();
    let number = if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (8 * (length - 4))
    } else if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u16::from_le_bytes(*low)) | u64::from(u16::from_le_bytes(*high)) << (8 * (length - 2))
    } else {
        u64::from(bytes[0])
    };
    let redundant = 64 - 8 * length;
    (number << redundant) as i64 >> redundant
}

/// Whether the bytes are a cell's encoding, so that [`decode_cell`] cannot fail on it.
fn is_cell(bytes: &[u8]) -> bool {
    let Some((&tag, payload)) = bytes.split_first() else { return true };
    match tag {
        tag::FALSE | tag::TRUE => payload.is_empty(),
        tag::INT8 | tag::TIMESTAMPTZ => (1..=8).contains(&payload.len()),
        tag::DATE => (1..=4).contains(&payload.len()),
        tag::FLOAT8 => payload.len() == 8,
        tag::UUID => payload.len() == 16,
        tag::BYTEA => true,
        tag::TEXT | tag::NUMERIC | tag::JSON => std::str::from_utf8(payload).is_ok(),
        _ => false,
    }
}

/// The value of a cell. Integers, which most cells are that are computed with, are decoded without a call.
#[inline]
fn decode_cell(bytes: &[u8]) -> ValueRef<'_> {
    match bytes {
        [tag::INT8, payload @ ..] => ValueRef::Int8(decode_integer(payload)),
        [tag::TIMESTAMPTZ, payload @ ..] => ValueRef::Timestamptz(decode_integer(payload)),
        [] => ValueRef::Null,
        [tag, payload @ ..] => decode_other(*tag, payload),
    }
}

fn decode_other(tag: u8, payload: &[u8]) -> ValueRef<'_> {
    // SAFETY: a `Row` is made only by `encode`, which wrote these bytes from a `str`, or by `from_bytes`, which
    // checked them.
    let text = || unsafe { std::str::from_utf8_unchecked(payload) };
    match tag {
        tag::FALSE => ValueRef::Bool(false),
        tag::TRUE => ValueRef::Bool(true),
        tag::FLOAT8 => ValueRef::Float8(f64::from_le_bytes(payload.try_into().expect("8 bytes"))),
        tag::TEXT => ValueRef::Text(text()),
        tag::BYTEA => ValueRef::Bytea(payload),
        tag::DATE => ValueRef::Date(decode_integer(payload) as i32),
        tag::UUID => ValueRef::Uuid(Uuid::from_bytes_ref(payload.try_into().expect("16 bytes"))),
        tag::NUMERIC => ValueRef::Numeric(NumericRef::Text(text())),
        tag::JSON => ValueRef::Json(text()),
        _ => unreachable!("cell tags are checked when a row is made"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int8),
            // Of every length.
            (any::<i64>(), 0_u32..64).prop_map(|(number, by)| Value::Int8(number >> by)),
            (-300_i64..300).prop_map(Value::Int8),
            any::<f64>().prop_map(Value::Float8),
            "[a-zé]{0,40}".prop_map(|s| Value::Text(s.into())),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(|b| Value::Bytea(b.into())),
            any::<i64>().prop_map(Value::Timestamptz),
            any::<i32>().prop_map(Value::Date),
            any::<u128>().prop_map(|u| Value::Uuid(Uuid::from_u128(u))),
        ]
    }

    proptest! {
        #[test]
        fn cells_come_back(values in prop::collection::vec(value(), 0..20)) {
            let row = Row::from_values(&values);
            prop_assert_eq!(row.len(), values.len());
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(&row.cell(index).to_value(), value);
            }
            let again = Row::from_bytes(row.as_bytes()).expect("own encoding is well-formed");
            prop_assert_eq!(again, row);
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(row) = Row::from_bytes(&bytes) {
                let _ = row.cells().map(ValueRef::to_value).collect::<Vec<_>>();
            }
        }
    }
}
