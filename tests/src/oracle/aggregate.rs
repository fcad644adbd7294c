//! Aggregates, and queries that show groups: PostgreSQL's meaning, worked out from all values each time.

use super::cell::{Cell, Kind};
use super::comparison::compare;
use super::database::{Column, Database, Key, Table};
use super::decimal;
use super::expression::Resolver;
use super::fault::QueryError;
use super::query::{array, column, known, object, text};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Function {
    Count,
    Sum,
    Average,
    Min,
    Max,
}

/// A checked aggregate over one table's rows.
#[derive(Debug)]
pub(super) struct Aggregate {
    function: Function,
    /// `None` counts rows.
    column: Option<usize>,
    /// The type of its value.
    kind: Kind,
}

impl Resolver<'_> {
    /// Resolves an aggregate, which has these members.
    pub(super) fn aggregate(
        &self,
        table: usize,
        aggregate: &Value,
        members: &[&str],
    ) -> Result<Aggregate, QueryError> {
        let fields = object(aggregate, "an aggregate")?;
        known(fields, members)?;
        let function = match text(fields.get("op"), "op")? {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "avg" => Function::Average,
            "min" => Function::Min,
            "max" => Function::Max,
            other => return Err(QueryError::bad_query(format!("no aggregate {other}"))),
        };
        let column = fields.get("col").map(|name| column(self.database, table, name)).transpose()?;
        let of = column.map(|column| self.database.tables[table].columns[column].kind);
        let kind = match (function, of) {
            (Function::Count, _) => Kind::Int8,
            (_, None) => return Err(QueryError::bad_query("this aggregate is of a column")),
            (Function::Min | Function::Max, Some(kind)) if !matches!(kind, Kind::Bool | Kind::Json) => kind,
            (Function::Sum | Function::Average, Some(Kind::Int8 | Kind::Numeric)) => Kind::Numeric,
            (Function::Sum | Function::Average, Some(Kind::Float8)) => Kind::Float8,
            (_, Some(kind)) => {
                return Err(QueryError::type_mismatch(format!("an aggregate of {}", kind.name())));
            }
        };
        Ok(Aggregate { function, column, kind })
    }

    /// Runs a query that groups: its groups are rows of a table, of which the rest of the query is asked.
    pub(super) fn groups(&self, query: &Map<String, Value>) -> Result<Value, QueryError> {
        if query.contains_key("related") {
            return Err(QueryError::bad_query("a group has no related rows"));
        }
        let (mut rows, mut rest) = (query.clone(), Map::new());
        for name in ["select", "order_by", "limit", "start"] {
            rest.extend(rows.remove(name).map(|value| (name.to_owned(), value)));
        }
        let (by, aggregates) = (rows.remove("group_by"), rows.remove("aggregates"));
        let place = self.place(&Value::Object(rows))?;
        let (by, aggregates) = (by.unwrap_or_default(), aggregates.unwrap_or(json!([])));
        let by = array(&by, "group_by")?;
        let keys =
            by.iter().map(|name| column(self.database, place.table, name)).collect::<Result<Vec<_>, _>>()?;
        let mut columns: Vec<Column> =
            keys.iter().map(|key| self.database.tables[place.table].columns[*key].clone()).collect();
        let mut checked = Vec::new();
        for aggregate in array(&aggregates, "aggregates")? {
            let resolved = self.aggregate(place.table, aggregate, &["as", "op", "col"])?;
            let name = text(aggregate.get("as"), "as")?.to_owned();
            columns.push(Column { name, kind: resolved.kind, nullable: true });
            checked.push(resolved);
        }
        let mut groups: BTreeMap<Key, Vec<&[Cell]>> = BTreeMap::new();
        if keys.is_empty() {
            groups.insert(Key(Vec::new()), Vec::new());
        }
        for row in self.database.rows_of(&place, None)? {
            groups.entry(Key(keys.iter().map(|key| row[*key].clone()).collect())).or_default().push(row);
        }
        let mut grouped = BTreeMap::new();
        for (key, rows) in groups {
            let mut cells = key.0.clone();
            for aggregate in &checked {
                cells.push(aggregate.value(&rows)?);
            }
            grouped.insert(key, cells);
        }
        let name = "groups".to_owned();
        rest.insert("table".to_owned(), json!(name));
        let table = Table { name, columns, key: (0..keys.len()).collect(), rows: grouped };
        Database { tables: vec![table] }.run(&Value::Object(rest), &Value::Null)
    }
}

impl Aggregate {
    /// Its value over rows.
    pub(super) fn value(&self, rows: &[&[Cell]]) -> Result<Cell, QueryError> {
        let Some(column) = self.column else { return Ok(Cell::Int8(rows.len() as i64)) };
        let values: Vec<&Cell> = rows.iter().map(|row| &row[column]).filter(|cell| !cell.is_null()).collect();
        if matches!(self.function, Function::Count) {
            return Ok(Cell::Int8(values.len() as i64));
        }
        let Some(first) = values.first() else { return Ok(Cell::Null) };
        Ok(match self.function {
            Function::Min => (*values.iter().min_by(|a, b| compare(a, b)).unwrap_or(first)).clone(),
            Function::Max => (*values.iter().max_by(|a, b| compare(a, b)).unwrap_or(first)).clone(),
            function => {
                let is_average = matches!(function, Function::Average);
                if self.kind == Kind::Float8 {
                    let sum = float_sum(values.iter().map(|value| match value {
                        Cell::Float8(value) => *value,
                        other => panic!("{other:?} among doubles"),
                    }))?;
                    Cell::Float8(if is_average { sum / values.len() as f64 } else { sum })
                } else {
                    let texts: Vec<String> = values
                        .iter()
                        .map(|value| match value {
                            Cell::Int8(value) => value.to_string(),
                            Cell::Numeric(text) => text.clone(),
                            other => panic!("{other:?} among decimals"),
                        })
                        .collect();
                    Cell::Numeric(if is_average { decimal::average(&texts) } else { decimal::sum(&texts) })
                }
            }
        })
    }
}

/// The sum of doubles, rounded once at the end: parts that do not overlap are kept, as Shewchuk describes it.
fn float_sum(values: impl Iterator<Item = f64>) -> Result<f64, QueryError> {
    let (mut parts, mut special) = (Vec::<f64>::new(), None);
    for value in values {
        if !value.is_finite() {
            special = Some(special.unwrap_or(0.0) + value);
            continue;
        }
        let (mut carried, mut kept) = (value, Vec::new());
        for part in parts {
            let (large, small) = if carried.abs() < part.abs() { (part, carried) } else { (carried, part) };
            let sum = large + small;
            let lost = small - (sum - large);
            if lost != 0.0 {
                kept.push(lost);
            }
            carried = sum;
        }
        kept.push(carried);
        parts = kept;
    }
    if let Some(special) = special {
        return Ok(special);
    }
    if parts.iter().any(|part| !part.is_finite()) {
        return Err(QueryError::faulted("float8 out of range"));
    }
    // From the largest part down; the first that does not vanish decides the rounding, with the one after it for a tie.
    let Some(mut sum) = parts.pop() else { return Ok(0.0) };
    while let Some(part) = parts.pop() {
        let whole = sum + part;
        let lost = part - (whole - sum);
        sum = whole;
        if lost != 0.0 {
            let next = parts.last().copied().unwrap_or(0.0);
            if (lost < 0.0 && next < 0.0) || (lost > 0.0 && next > 0.0) {
                let doubled = lost * 2.0;
                let rounded = sum + doubled;
                if rounded - sum == doubled {
                    sum = rounded;
                }
            }
            break;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_doubles_are_rounded_once() {
        let sum = |values: &[f64]| float_sum(values.iter().copied()).expect("in range");
        assert_eq!(sum(&[0.1, 1e16, -1e16]), 0.1);
        assert_eq!(sum(&[1e300, 1.0, -1e300, 1.0]), 2.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[9_007_199_254_740_992.0, 1.0, 1e-300]), 9_007_199_254_740_994.0);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum(&[]), 0.0);
        assert!(float_sum([f64::MAX, f64::MAX].into_iter()).is_err());
    }

    #[test]
    fn sums_and_averages_have_postgresqls_decimals() {
        let sum =
            |texts: &[&str]| decimal::sum(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        let average =
            |texts: &[&str]| decimal::average(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(sum(&["1.5", "-2.25", "0"]), "-0.75");
        assert_eq!(sum(&["1.50", "-1.5"]), "0.00");
        assert_eq!(average(&["1", "2"]), "1.5000000000000000");
        assert_eq!(average(&["1", "1", "2"]), "1.3333333333333333");
        assert_eq!(average(&["0.0001", "0.0002"]), "0.00015000000000000000");
        assert_eq!(average(&["-2", "-3"]), "-2.5000000000000000");
        assert_eq!(average(&["0"]), "0.00000000000000000000");
        assert_eq!(average(&["123456789012345678901234567890.5"]), "123456789012345678901234567890.5");
        assert_eq!(average(&["9223372036854775807", "1"]), "4611686018427387904");
    }
}
