//! Random queries for tests: a layout, the rows that a server has for it, and what commits do to them.

use super::naive::NaiveRow;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value as Json, json};
use std::{cmp::Ordering, sync::Arc};
use tidegate_wire::{
    codec::Codec,
    model::{
        ColumnType, Direction, Layout, Nulls, Order, OrderColumn, PlaceLayout, PlaceMask, PlaceValue,
        TableLayout, Value, layout::LayoutColumn,
    },
    protocol::{Cell, server::Op},
};

/// Types of columns; several times where rows of different places are to meet.
const TYPES: [ColumnType; 12] = [
    ColumnType::Int8,
    ColumnType::Int8,
    ColumnType::Int8,
    ColumnType::Float8,
    ColumnType::Numeric,
    ColumnType::Text,
    ColumnType::Date,
    ColumnType::Timestamptz,
    ColumnType::Bool,
    ColumnType::Bytea,
    ColumnType::Uuid,
    ColumnType::Json,
];

const DAY_MICROS: i64 = 86_400_000_000;

/// See the module.
pub(super) struct RandomQuery {
    pub(super) layout: Layout,
    pub(super) rows: Vec<NaiveRow>,
}

/// What becomes of one row.
#[derive(Clone)]
pub(super) enum RowChange {
    Add(NaiveRow),
    Edit(NaiveRow),
    Remove { table: usize, key: Vec<Value> },
}

impl RowChange {
    /// The operation that tells it.
    pub(super) fn op(&self, codec: Codec) -> Op {
        let cells = |values: &[Value]| values.iter().map(|value| Cell::from_value(value, codec)).collect();
        match self {
            Self::Add(row) => Op::Add { table: row.table, places: row.places, cells: cells(&row.cells) },
            Self::Edit(row) => Op::Edit { table: row.table, places: row.places, cells: cells(&row.cells) },
            Self::Remove { table, key } => Op::Remove { table: *table, key: cells(key) },
        }
    }
}

impl RandomQuery {
    pub(super) fn new(places_max: usize, rng: &mut StdRng) -> Self {
        Self { layout: random_layout(places_max, rng), rows: Vec::new() }
    }

    /// Changes some rows, each at most once.
    pub(super) fn commit(&mut self, count: usize, rng: &mut StdRng) -> Vec<RowChange> {
        let mut done: Vec<NaiveRow> = Vec::new();
        let mut changes = Vec::new();
        for _ in 0..count {
            let Some(row) = self.random_row(rng) else { continue };
            if done.iter().any(|other| same_key(&self.layout, other, &row)) {
                continue;
            }
            done.push(row.clone());
            match self.rows.iter().position(|other| same_key(&self.layout, other, &row)) {
                None => {
                    self.rows.push(row.clone());
                    changes.push(RowChange::Add(row));
                }
                Some(index) if rng.random_bool(0.4) => {
                    self.rows.swap_remove(index);
                    changes.push(removal(&self.layout, &row));
                }
                Some(index) => {
                    self.rows[index] = row.clone();
                    changes.push(RowChange::Edit(row));
                }
            }
        }
        changes
    }

    /// What a snapshot says.
    pub(super) fn snapshot(&self) -> Vec<RowChange> {
        self.rows.iter().cloned().map(RowChange::Add).collect()
    }

    /// What leads from other rows of the same layout to these, each row once.
    pub(super) fn difference(&self, from: &[NaiveRow]) -> Vec<RowChange> {
        let in_rows = |rows: &[NaiveRow], row: &NaiveRow| {
            rows.iter().find(|other| same_key(&self.layout, other, row)).cloned()
        };
        let removed = from.iter().filter(|row| in_rows(&self.rows, row).is_none());
        let mut changes: Vec<_> = removed.map(|row| removal(&self.layout, row)).collect();
        changes.extend(self.rows.iter().filter_map(|row| match in_rows(from, row) {
            None => Some(RowChange::Add(row.clone())),
            // By their text, in which NaN is like itself and zeros differ by their sign.
            Some(old) if format!("{old:?}") == format!("{row:?}") => None,
            Some(_) => Some(RowChange::Edit(row.clone())),
        }));
        changes
    }

    fn random_row(&self, rng: &mut StdRng) -> Option<NaiveRow> {
        let table = rng.random_range(0..self.layout.tables.len());
        let mask = (0..self.layout.places.len())
            .filter(|&place| self.layout.places[place].table == table && rng.random_bool(0.7))
            .fold(0, |mask, place| mask | 1 << place);
        let TableLayout { columns, key, .. } = &self.layout.tables[table];
        let cells = columns.iter().enumerate();
        let cells = cells.map(|(c, column)| value(column.ty, !key.contains(&c), rng)).collect();
        (mask != 0).then_some(NaiveRow { table, cells, places: PlaceMask(mask) })
    }
}

/// Whether two rows are versions of one: their keys are equal, however they are written.
fn same_key(layout: &Layout, a: &NaiveRow, b: &NaiveRow) -> bool {
    let equal = |&c: &usize| a.cells[c].as_ref().compare(b.cells[c].as_ref()) == Ordering::Equal;
    a.table == b.table && layout.tables[a.table].key.iter().all(equal)
}

fn removal(layout: &Layout, row: &NaiveRow) -> RowChange {
    let key = layout.tables[row.table].key.iter().map(|&c| row.cells[c].clone()).collect();
    RowChange::Remove { table: row.table, key }
}

fn value(ty: ColumnType, nullable: bool, rng: &mut StdRng) -> Value {
    if nullable && rng.random_bool(0.2) {
        return Value::Null;
    }
    // Mostly one of few, so that rows meet; at times one that is hard to carry or to compare.
    let awkward = rng.random_bool(0.25);
    let pick = |texts: &[&str], rng: &mut StdRng| (*texts.choose(rng).expect("some")).to_owned();
    match ty {
        ColumnType::Int8 if awkward => {
            let beyond = 1 << 53;
            Value::Int8(*[i64::MIN, i64::MAX, beyond - 1, beyond, beyond + 1].choose(rng).expect("some"))
        }
        ColumnType::Int8 => Value::Int8(*[-1, 0, 1, 2, 3].choose(rng).expect("some")),
        ColumnType::Float8 if awkward => {
            let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 9_007_199_254_740_992.0, 0.1, 5e-324];
            Value::Float8(*doubles.choose(rng).expect("some"))
        }
        ColumnType::Float8 => Value::Float8(*[-0.0, 0.0, 0.5, 1.0, 2.0].choose(rng).expect("some")),
        ColumnType::Numeric => {
            let odd = ["NaN", "Infinity", "-Infinity", "0.1", "9007199254740993", "-12345678901234567890.5"];
            let plain = ["0", "1", "1.0", "0.5", "2.00"];
            let text = if awkward { pick(&odd, rng) } else { pick(&plain, rng) };
            Value::Numeric(Arc::new(text.parse().expect("numeric")))
        }
        ColumnType::Text if awkward => {
            Value::Text(pick(&["ab", "NaN", "\"\\\n", "9007199254740993"], rng).into())
        }
        ColumnType::Text => Value::Text(pick(&["", "a", "\u{ffee}", "\u{1f30a}"], rng).into()),
        ColumnType::Date if awkward => Value::Date(*[-1, -25_567, 100_000].choose(rng).expect("some")),
        ColumnType::Date => Value::Date(rng.random_range(0..3)),
        ColumnType::Timestamptz if awkward => {
            Value::Timestamptz(*[-1, 1, 1_500_000, 1_359_954_000_123_456].choose(rng).expect("some"))
        }
        ColumnType::Timestamptz => Value::Timestamptz(rng.random_range(0..4) * (DAY_MICROS / 2)),
        ColumnType::Bool => Value::Bool(rng.random()),
        ty => {
            let [a, b] = if awkward { [255_u8, 128] } else { [0, rng.random_range(0..2)] };
            let json = match ty {
                ColumnType::Bytea => json!(pick(&["", "AA==", "AQI=", "/w==", "+/8A"], rng)),
                ColumnType::Uuid => json!(format!("67e5{a:02x}{b:02x}-10b1-426f-9247-bb680e5fe0c8")),
                _ => [
                    json!({}),
                    json!([]),
                    json!([1, null]),
                    json!({"a": b}),
                    json!({"b": [], "a": {"c": "d"}}),
                    json!("NaN"),
                    json!(true),
                    json!(1.5),
                ]
                .choose(rng)
                .expect("some")
                .clone(),
            };
            Value::from_json(ty, &json).expect("a value of the type")
        }
    }
}

fn random_layout(places_max: usize, rng: &mut StdRng) -> Layout {
    let tables: Vec<TableLayout> = (0..rng.random_range(1..=places_max.div_ceil(2)))
        .map(|index| {
            let columns: Vec<_> = (0..rng.random_range(2..=5))
                .map(|c| LayoutColumn { name: format!("c{c}"), ty: *TYPES.choose(rng).expect("some") })
                .collect();
            let key =
                if rng.random_bool(0.4) { vec![1, 0] } else { vec![rng.random_range(0..columns.len())] };
            TableLayout { name: format!("t{index}"), columns, key }
        })
        .collect();
    let mut places: Vec<PlaceLayout> = Vec::new();
    for index in 0..rng.random_range(1..=places_max) {
        places.push(random_place(&tables, &places, index, rng));
    }
    Layout { tables, places }
}

fn random_place(
    tables: &[TableLayout],
    places: &[PlaceLayout],
    index: usize,
    rng: &mut StdRng,
) -> PlaceLayout {
    let table = rng.random_range(0..tables.len());
    let width = tables[table].columns.len();
    let parents: Vec<usize> = (0..index).filter(|&place| places[place].value.is_none()).collect();
    let parent = parents.choose(rng).copied();
    let on = parent.map_or(Vec::new(), |parent| {
        let parent: &PlaceLayout = &places[parent];
        let parent_width = tables[parent.table].columns.len();
        // Mostly columns of one kind, or nothing would ever meet.
        let pairs: Vec<(usize, usize)> =
            (0..parent_width).flat_map(|p| (0..width).map(move |c| (p, c))).collect();
        let meets = |&&(p, c): &&(usize, usize)| {
            let (a, b) = (tables[parent.table].columns[p].ty, tables[table].columns[c].ty);
            a == b || (a.is_number() && b.is_number())
        };
        let meeting: Vec<_> = pairs.iter().filter(meets).copied().collect();
        let from = if meeting.is_empty() || rng.random_bool(0.1) { &pairs } else { &meeting };
        (0..rng.random_range(1..=2)).map(|_| *from.choose(rng).expect("some")).collect()
    });
    let term = |column, rng: &mut StdRng| OrderColumn {
        column,
        order: Order {
            direction: if rng.random() { Direction::Asc } else { Direction::Desc },
            nulls: if rng.random() { Nulls::First } else { Nulls::Last },
        },
    };
    let mut order: Vec<_> =
        (0..rng.random_range(0..=2)).map(|_| term(rng.random_range(0..width), rng)).collect();
    for &column in &tables[table].key {
        order.push(term(column, rng));
    }
    let one = index > 0 && rng.random_bool(0.3);
    let mut columns: Vec<usize> = (0..width).filter(|_| rng.random_bool(0.7)).collect();
    let value = (one && rng.random_bool(0.5)).then(|| {
        columns = vec![rng.random_range(0..width)];
        let is_count = tables[table].columns[columns[0]].ty == ColumnType::Int8;
        PlaceValue { or: if is_count { Json::from(0) } else { Json::Null } }
    });
    PlaceLayout { parent, name: parent.map(|_| format!("p{index}")), table, columns, on, order, one, value }
}
