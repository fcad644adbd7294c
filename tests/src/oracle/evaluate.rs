//! Answers a resolved query from the rows as they are.

use super::cell::Cell;
use super::comparison::{compare, compare_nulls_last, matches};
use super::database::Database;
use super::expression::{Expression, Operation, Resolver};
use super::fault::QueryError;
use super::pattern;
use super::query::{OrderItem, Place};
use serde_json::{Map, Value};
use std::cmp::Ordering;

impl Database {
    /// Runs a query in its JSON form. `args` is an object of parameter values, or null where there are none; values
    /// that the query does not ask for are let be.
    ///
    /// # Errors
    /// See [`QueryError::code`]. All but `query_faulted` are found without looking at a row.
    pub fn run(&self, query: &Value, args: &Value) -> Result<Value, QueryError> {
        self.run_as(query, args, &Value::Null)
    }

    /// As [`Database::run`], with the claims of a token, an object or null, for `{"param":"auth.…"}`.
    ///
    /// # Errors
    /// As [`Database::run`].
    pub fn run_as(&self, query: &Value, args: &Value, claims: &Value) -> Result<Value, QueryError> {
        let empty = Map::new();
        let members = |value: &Value, what: &str| match value {
            Value::Null => Ok(empty.clone()),
            Value::Object(members) => Ok(members.clone()),
            _ => Err(QueryError::new("bad_args", format!("{what} are an object"))),
        };
        let (args, claims) = (members(args, "arguments")?, members(claims, "claims")?);
        if args.keys().any(|name| name.starts_with("auth.")) {
            return Err(QueryError::new("forbidden", "a client cannot supply auth.*"));
        }
        let resolver = Resolver { database: self, args: &args, claims: &claims };
        if let Value::Object(fields) = query
            && fields.contains_key("group_by")
        {
            return resolver.groups(fields);
        }
        let place = resolver.place(query)?;
        let rows = self.rows_of(&place, None)?;
        rows.into_iter().map(|row| self.show(&place, row)).collect::<Result<_, _>>().map(Value::Array)
    }

    /// A place's rows in their order; under a parent, those that match it.
    pub(super) fn rows_of(
        &self,
        place: &Place,
        parent: Option<Parent<'_>>,
    ) -> Result<Vec<&[Cell]>, QueryError> {
        let mut rows = Vec::new();
        for row in self.tables[place.table].rows.values() {
            if self.stands(place, parent, row)? {
                rows.push(row.as_slice());
            }
        }
        rows.sort_by(|left, right| in_order(&place.order, |item| (&left[item.column], &right[item.column])));
        if let Some(start) = &place.start {
            rows.retain(|row| {
                let prefix = &place.order[..start.values.len()];
                let mut values = start.values.iter();
                let order =
                    in_order(prefix, |item| (&row[item.column], values.next().expect("one per item")));
                order.is_gt() || (start.inclusive && order.is_eq())
            });
        }
        rows.truncate(place.limit.unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Whether a row matches the parent and passes the filter.
    fn stands(&self, place: &Place, parent: Option<Parent<'_>>, row: &[Cell]) -> Result<bool, QueryError> {
        if let Some(parent) = parent
            && !parent.on.iter().all(|(outer, inner)| matches(&parent.row[*outer], &row[*inner]))
        {
            return Ok(false);
        }
        match &place.filter {
            None => Ok(true),
            Some(filter) => Ok(truth(&self.evaluate(filter, row)?) == Some(true)),
        }
    }

    fn exists(&self, place: &Place, parent: Parent<'_>) -> Result<bool, QueryError> {
        if place.start.is_some() || place.limit.is_some() {
            return self.rows_of(place, Some(parent)).map(|rows| !rows.is_empty());
        }
        for row in self.tables[place.table].rows.values() {
            if self.stands(place, Some(parent), row)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn show(&self, place: &Place, row: &[Cell]) -> Result<Value, QueryError> {
        let columns = &self.tables[place.table].columns;
        let mut shown: Map<String, Value> =
            place.columns.iter().map(|index| (columns[*index].name.clone(), row[*index].show())).collect();
        for related in &place.related {
            let children = self.rows_of(&related.place, Some(Parent { row, on: &related.on }))?;
            if let Some(aggregate) = &related.aggregate {
                shown.insert(related.name.clone(), aggregate.value(&children)?.show());
                continue;
            }
            let mut children = children.into_iter().map(|child| self.show(&related.place, child));
            let value = if related.one {
                children.next().transpose()?.unwrap_or(Value::Null)
            } else {
                Value::Array(children.collect::<Result<_, _>>()?)
            };
            shown.insert(related.name.clone(), value);
        }
        Ok(Value::Object(shown))
    }

    fn evaluate(&self, expression: &Expression, row: &[Cell]) -> Result<Cell, QueryError> {
        match expression {
            Expression::Constant(cell) => Ok(cell.clone()),
            Expression::Column(index) => Ok(row[*index].clone()),
            Expression::Exists(place, on) => self.exists(place, Parent { row, on }).map(Cell::Bool),
            Expression::Apply(operation, args) => match operation {
                Operation::And => self.junction(args, row, false),
                Operation::Or => self.junction(args, row, true),
                Operation::In => self.membership(args, row),
                Operation::Coalesce => {
                    for arg in args {
                        let cell = self.evaluate(arg, row)?;
                        if !cell.is_null() {
                            return Ok(cell);
                        }
                    }
                    Ok(Cell::Null)
                }
                _ => {
                    let cells: Vec<Cell> =
                        args.iter().map(|arg| self.evaluate(arg, row)).collect::<Result<_, _>>()?;
                    apply(*operation, &cells)
                }
            },
        }
    }

    /// `and` and `or`: the decisive value wins over NULL, and NULL over the other.
    fn junction(&self, args: &[Expression], row: &[Cell], decisive: bool) -> Result<Cell, QueryError> {
        let mut result = Some(!decisive);
        for arg in args {
            match truth(&self.evaluate(arg, row)?) {
                Some(value) if value == decisive => return Ok(Cell::Bool(decisive)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result.map_or(Cell::Null, Cell::Bool))
    }

    fn membership(&self, args: &[Expression], row: &[Cell]) -> Result<Cell, QueryError> {
        let (value, members) = args.split_first().expect("checked when it was resolved");
        let value = self.evaluate(value, row)?;
        let mut result = Cell::Bool(false);
        for member in members {
            let member = self.evaluate(member, row)?;
            if value.is_null() || member.is_null() {
                result = Cell::Null;
            } else if compare(&value, &member).is_eq() {
                return Ok(Cell::Bool(true));
            }
        }
        Ok(result)
    }
}

/// The row above, and the columns to agree on.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    row: &'a [Cell],
    on: &'a [(usize, usize)],
}

fn in_order<'a>(order: &[OrderItem], mut cells: impl FnMut(&OrderItem) -> (&'a Cell, &'a Cell)) -> Ordering {
    for item in order {
        let (left, right) = cells(item);
        let found = if left.is_null() || right.is_null() {
            let nulls_last = compare_nulls_last(left, right);
            if item.nulls_first { nulls_last.reverse() } else { nulls_last }
        } else {
            let ascending = compare(left, right);
            if item.descending { ascending.reverse() } else { ascending }
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// A condition's outcome; `None` for NULL.
fn truth(cell: &Cell) -> Option<bool> {
    match cell {
        Cell::Bool(truth) => Some(*truth),
        _ => None,
    }
}

/// The operations that look at all their arguments.
fn apply(operation: Operation, cells: &[Cell]) -> Result<Cell, QueryError> {
    match (operation, cells) {
        (Operation::IsNull, [cell]) => return Ok(Cell::Bool(cell.is_null())),
        (Operation::IsDistinctFrom, [left, right]) => {
            return Ok(Cell::Bool(compare_nulls_last(left, right).is_ne()));
        }
        (Operation::NullIf, [left, right]) => {
            return Ok(if matches(left, right) { Cell::Null } else { left.clone() });
        }
        (Operation::Between, [value, low, high]) => {
            let above = ordered(low, value).map(Ordering::is_le);
            let below = ordered(value, high).map(Ordering::is_le);
            return Ok(match (above, below) {
                (Some(false), _) | (_, Some(false)) => Cell::Bool(false),
                (Some(true), Some(true)) => Cell::Bool(true),
                _ => Cell::Null,
            });
        }
        _ => {}
    }
    if cells.iter().any(Cell::is_null) {
        return Ok(Cell::Null);
    }
    let comparison = |accept: fn(Ordering) -> bool| Ok(Cell::Bool(accept(compare(&cells[0], &cells[1]))));
    match (operation, cells) {
        (Operation::Not, [Cell::Bool(truth)]) => Ok(Cell::Bool(!truth)),
        (Operation::Equal, _) => comparison(Ordering::is_eq),
        (Operation::NotEqual, _) => comparison(Ordering::is_ne),
        (Operation::Less, _) => comparison(Ordering::is_lt),
        (Operation::LessOrEqual, _) => comparison(Ordering::is_le),
        (Operation::Greater, _) => comparison(Ordering::is_gt),
        (Operation::GreaterOrEqual, _) => comparison(Ordering::is_ge),
        (Operation::Like, [Cell::Text(text), Cell::Text(like)]) => matched(pattern::like(text, like)),
        (Operation::Ilike, [Cell::Text(text), Cell::Text(like)]) => {
            matched(pattern::like(&pattern::lower(text), &pattern::lower(like)))
        }
        (Operation::Lower, [Cell::Text(text)]) => Ok(Cell::Text(pattern::lower(text))),
        (Operation::Upper, [Cell::Text(text)]) => Ok(Cell::Text(pattern::upper(text))),
        (Operation::Length, [Cell::Text(text)]) => Ok(Cell::Int8(text.chars().count() as i64)),
        (_, [Cell::Int8(number)]) => whole(match operation {
            Operation::Negate => number.checked_neg(),
            _ => number.checked_abs(),
        }),
        (_, [Cell::Float8(number)]) => Ok(Cell::Float8(match operation {
            Operation::Negate => -number,
            _ => number.abs(),
        })),
        (_, [Cell::Int8(left), Cell::Int8(right)]) => whole_arithmetic(operation, *left, *right),
        (_, [left, right]) => float_arithmetic(operation, float(left), float(right)),
        _ => panic!("{operation:?} of {cells:?} was not caught when it was resolved"),
    }
}

fn ordered(left: &Cell, right: &Cell) -> Option<Ordering> {
    if left.is_null() || right.is_null() { None } else { Some(compare(left, right)) }
}

fn matched(outcome: Option<bool>) -> Result<Cell, QueryError> {
    outcome.map(Cell::Bool).ok_or_else(|| QueryError::faulted("a LIKE pattern ends in its escape"))
}

fn whole(result: Option<i64>) -> Result<Cell, QueryError> {
    result.map(Cell::Int8).ok_or_else(|| QueryError::faulted("int8 out of range"))
}

fn whole_arithmetic(operation: Operation, left: i64, right: i64) -> Result<Cell, QueryError> {
    match operation {
        Operation::Add => whole(left.checked_add(right)),
        Operation::Subtract => whole(left.checked_sub(right)),
        Operation::Multiply => whole(left.checked_mul(right)),
        _ if right == 0 => Err(QueryError::faulted("division by zero")),
        Operation::Divide => whole(left.checked_div(right)),
        // The remainder of the smallest number by −1 is 0, although their quotient is out of range.
        _ => Ok(Cell::Int8(left.wrapping_rem(right))),
    }
}

fn float(cell: &Cell) -> f64 {
    match cell {
        Cell::Int8(number) => *number as f64,
        Cell::Float8(number) => *number,
        _ => panic!("{cell:?} was not caught when it was resolved"),
    }
}

/// As PostgreSQL: a finite computation that leaves the range, at either end, is an error.
fn float_arithmetic(operation: Operation, left: f64, right: f64) -> Result<Cell, QueryError> {
    let result = match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        _ if right == 0.0 && !left.is_nan() => return Err(QueryError::faulted("division by zero")),
        _ => left / right,
    };
    let overflow = result.is_infinite() && left.is_finite() && right.is_finite();
    let underflow = result == 0.0
        && left != 0.0
        && right.is_finite()
        && match operation {
            Operation::Multiply => right != 0.0,
            Operation::Divide => true,
            _ => false,
        };
    if overflow || underflow {
        return Err(QueryError::faulted("float8 out of range"));
    }
    Ok(Cell::Float8(result))
}
