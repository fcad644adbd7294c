//! Holds a result of the engine's against PostgreSQL's answer.

use super::{Answer, Statement};
use postgres::types::Type;
use serde_json::Value as Json;
use std::fmt;
use tidegate_replica::query::Output;
use tidegate_wire::model::{ColumnType, Row, Value, key::encode_cell, time};

/// Relative difference that a column may have that need not be exact.
const TOLERANCE: f64 = 1e-9;

/// A result as the engine shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The columns' types.
    pub types: Vec<ColumnType>,
    /// The rows in their order.
    pub rows: Vec<Vec<Value>>,
}

impl Shown {
    /// What a client shows of a select's rows.
    #[must_use]
    pub fn of<'r>(output: &Output, rows: impl Iterator<Item = &'r Row>) -> Self {
        let (place, table) = (&output.layout.places[0], &output.tables[0]);
        let mut rows: Vec<(Vec<u8>, Vec<Value>)> = rows
            .map(|row| {
                let mut order = Vec::new();
                for term in &place.order {
                    encode_cell(row.cell(table.columns[term.column]), term.order, &mut order);
                }
                let cells = place.columns.iter().map(|column| row.cell(table.columns[*column]).to_value());
                (order, cells.collect())
            })
            .collect();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { types: Self::types(output), rows: rows.into_iter().map(|(_, row)| row).collect() }
    }

    /// The types of the columns that a select shows.
    #[must_use]
    pub fn types(output: &Output) -> Vec<ColumnType> {
        let place = &output.layout.places[0];
        place.columns.iter().map(|column| output.layout.tables[place.table].columns[*column].ty).collect()
    }
}

/// A value in the form in which both sides are compared.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    Text(String),
    Float(f64),
    Json(Json),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Text(text) => write!(f, "{text:?}"),
            Cell::Float(value) => write!(f, "{value:?}"),
            Cell::Json(json) => write!(f, "{json}"),
        }
    }
}

/// Compares a result with PostgreSQL's answer: types, values, and the order as far as the query determines it. Rows that
/// are equal in the order may stand in any order among themselves.
///
/// # Errors
/// Says what differs.
pub fn compare(statement: &Statement, answer: &Answer, shown: &Shown) -> Result<(), String> {
    let width = shown.types.len();
    if answer.types.len() < width {
        return Err(format!("{width} columns are shown, PostgreSQL has {}", answer.types.len()));
    }
    for (column, (theirs, mine)) in answer.types.iter().zip(&shown.types).enumerate() {
        match column_type(theirs) {
            Some(ty) if ty == *mine => {}
            _ => {
                return Err(format!("column {column} is {}, PostgreSQL says {}", mine.name(), theirs.name()));
            }
        }
    }
    let theirs: Vec<Vec<Cell>> = answer
        .rows
        .iter()
        .map(|row| {
            row.iter().zip(&answer.types).map(|(cell, ty)| postgres_cell(cell.as_deref(), ty)).collect()
        })
        .collect();
    let mine: Vec<Vec<Cell>> = shown.rows.iter().map(|row| row.iter().map(own_cell).collect()).collect();
    if theirs.len() != mine.len() {
        return Err(format!("{} rows are shown, PostgreSQL has {}", mine.len(), theirs.len()));
    }
    let key = |row: &Vec<Cell>| -> Vec<String> {
        statement.ordering.iter().map(|column| sort_key(&row[*column])).collect()
    };
    let mut start = 0;
    while start < theirs.len() {
        let mut end = start + 1;
        while end < theirs.len() && key(&theirs[end]) == key(&theirs[start]) {
            end += 1;
        }
        let expected = sorted(theirs[start..end].iter().map(|row| row[..width].to_vec()).collect());
        let got = sorted(mine[start..end].to_vec());
        for (expected, got) in expected.iter().zip(&got) {
            let equal = expected.iter().zip(got).enumerate().all(|(column, (expected, got))| {
                same(expected, got, statement.approximate.contains(&column))
            });
            if !equal {
                return Err(format!(
                    "rows {start}..{end}: PostgreSQL has {}, shown is {}",
                    row_text(expected),
                    row_text(got)
                ));
            }
        }
        start = end;
    }
    Ok(())
}

/// The engine's type for one of PostgreSQL's.
fn column_type(ty: &Type) -> Option<ColumnType> {
    Some(match *ty {
        Type::BOOL => ColumnType::Bool,
        Type::INT2 | Type::INT4 | Type::INT8 => ColumnType::Int8,
        Type::FLOAT4 | Type::FLOAT8 => ColumnType::Float8,
        Type::NUMERIC => ColumnType::Numeric,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => ColumnType::Text,
        Type::DATE => ColumnType::Date,
        Type::TIMESTAMPTZ | Type::TIMESTAMP => ColumnType::Timestamptz,
        Type::JSON | Type::JSONB => ColumnType::Json,
        _ => return None,
    })
}

fn postgres_cell(cell: Option<&str>, ty: &Type) -> Cell {
    let Some(text) = cell else { return Cell::Null };
    match column_type(ty) {
        Some(ColumnType::Bool) => Cell::Text(if text == "t" { "true" } else { "false" }.to_owned()),
        Some(ColumnType::Float8) => Cell::Float(text.parse().unwrap_or(f64::NAN)),
        Some(ColumnType::Json) => Cell::Json(serde_json::from_str(text).unwrap_or(Json::Null)),
        Some(ColumnType::Timestamptz) => {
            let micros = time::parse_timestamptz(&text.replacen(' ', "T", 1));
            Cell::Text(micros.map_or_else(|| text.to_owned(), time::format_timestamptz))
        }
        _ => Cell::Text(text.to_owned()),
    }
}

fn own_cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Float8(value) => Cell::Float(*value),
        Value::Json(text) => Cell::Json(serde_json::from_str(text).unwrap_or(Json::Null)),
        other => match other.to_json() {
            Json::String(text) => Cell::Text(text),
            json => Cell::Text(json.to_string()),
        },
    }
}

fn same(expected: &Cell, got: &Cell, approximate: bool) -> bool {
    match (expected, got) {
        (Cell::Float(a), Cell::Float(b)) if approximate && a.is_finite() => {
            (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-3)
        }
        (Cell::Float(a), Cell::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => a == b,
    }
}

/// Equal for values that an order holds to be equal: 1.0 and 1.00, 0 and −0.
fn sort_key(cell: &Cell) -> String {
    match cell {
        Cell::Float(value) => format!("{:?}", value + 0.0),
        // Equal decimals may be spelled with more zeros or fewer.
        Cell::Text(text) if text.contains('.') && text.parse::<f64>().is_ok() => {
            Cell::Text(text.trim_end_matches('0').trim_end_matches('.').to_owned()).to_string()
        }
        other => other.to_string(),
    }
}

fn sorted(mut rows: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    rows.sort_by_cached_key(|row| {
        let exact: Vec<String> = row
            .iter()
            .map(|cell| match cell {
                // Two that differ in the last digits stand at the same place.
                Cell::Float(value) => format!("{value:.6e}"),
                other => other.to_string(),
            })
            .collect();
        (exact, row_text(row))
    });
    rows
}

fn row_text(row: &[Cell]) -> String {
    let cells: Vec<String> = row.iter().map(Cell::to_string).collect();
    format!("({})", cells.join(", "))
}
