//! A query with its names resolved and its types checked: what `evaluate` walks.

use super::aggregate::Aggregate;
use super::cell::Cell;
use super::database::Database;
use super::expression::{Expression, Resolver};
use super::fault::QueryError;
use serde_json::{Map, Value};

/// A node of a query's result, or the query of an `exists`. Columns are indexes into the table's.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) table: usize,
    pub(super) filter: Option<Expression>,
    pub(super) columns: Vec<usize>,
    /// Ends with the primary key, and so is total.
    pub(super) order: Vec<OrderItem>,
    pub(super) start: Option<Start>,
    pub(super) limit: Option<usize>,
    pub(super) related: Vec<Related>,
}

#[derive(Debug)]
pub(super) struct OrderItem {
    pub(super) column: usize,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// Where a place's rows begin: values for a prefix of its order.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) values: Vec<Cell>,
    /// `at` rather than `after`.
    pub(super) inclusive: bool,
}

#[derive(Debug)]
pub(super) struct Related {
    pub(super) name: String,
    pub(super) one: bool,
    /// Pairs of the parent's and the child's column.
    pub(super) on: Vec<(usize, usize)>,
    pub(super) place: Place,
    /// What is shown of the rows instead of them.
    pub(super) aggregate: Option<Aggregate>,
}

impl Resolver<'_> {
    /// Resolves a query, its conditions and everything under it.
    pub(super) fn place(&self, query: &Value) -> Result<Place, QueryError> {
        let fields = object(query, "a query")?;
        known(fields, &["table", "where", "select", "order_by", "limit", "start", "related"])?;
        let name = text(fields.get("table"), "table")?;
        let table = self.database.tables.iter().position(|table| table.name == name);
        let table =
            table.ok_or_else(|| QueryError::new("unknown_table", format!("there is no table {name}")))?;
        let filter = fields.get("where").map(|condition| self.condition(table, condition)).transpose()?;
        let columns = match fields.get("select") {
            None => (0..self.database.tables[table].columns.len()).collect(),
            Some(list) => array(list, "select")?
                .iter()
                .map(|name| column(self.database, table, name))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let order = self.order(table, fields.get("order_by"))?;
        let start = fields.get("start").map(|start| self.start(table, &order, start)).transpose()?;
        let limit = match fields.get("limit") {
            None => None,
            Some(limit) => {
                let rows = limit.as_u64().ok_or_else(|| QueryError::bad_query("limit is a whole number"))?;
                Some(usize::try_from(rows).unwrap_or(usize::MAX))
            }
        };
        let mut related = Vec::new();
        if let Some(list) = fields.get("related") {
            for item in array(list, "related")? {
                related.push(self.related(table, item)?);
            }
        }
        let mut names: Vec<&str> = related.iter().map(|related| related.name.as_str()).collect();
        names.extend(columns.iter().map(|index| self.database.tables[table].columns[*index].name.as_str()));
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(QueryError::bad_query(format!("two result columns are called {}", pair[0])));
        }
        Ok(Place { table, filter, columns, order, start, limit, related })
    }

    /// Resolves `on`: pairs of a column of the outer and one of the inner table that compare with each other.
    pub(super) fn pairs(
        &self,
        outer: usize,
        inner: usize,
        on: Option<&Value>,
    ) -> Result<Vec<(usize, usize)>, QueryError> {
        let on = on.ok_or_else(|| QueryError::bad_query("on is missing"))?;
        let mut pairs = Vec::new();
        for pair in array(on, "on")? {
            let [left, right] = array(pair, "a pair of on")?.as_slice() else {
                return Err(QueryError::bad_query(format!("on has pairs of columns, not {pair}")));
            };
            let (left, right) = (column(self.database, outer, left)?, column(self.database, inner, right)?);
            let kinds = (
                self.database.tables[outer].columns[left].kind,
                self.database.tables[inner].columns[right].kind,
            );
            if !kinds.0.compares_with(kinds.1) {
                return Err(QueryError::type_mismatch(format!("the columns of on {pair} do not compare")));
            }
            pairs.push((left, right));
        }
        Ok(pairs)
    }

    fn related(&self, table: usize, item: &Value) -> Result<Related, QueryError> {
        let fields = object(item, "a relation")?;
        known(fields, &["as", "on", "query", "one", "aggregate"])?;
        let name = text(fields.get("as"), "as")?.to_owned();
        let one = match fields.get("one") {
            None => false,
            Some(one) => one.as_bool().ok_or_else(|| QueryError::bad_query("one is true or false"))?,
        };
        let query = fields.get("query").ok_or_else(|| QueryError::bad_query("a relation has a query"))?;
        let place = self.place(query)?;
        let on = self.pairs(table, place.table, fields.get("on"))?;
        let aggregate = match fields.get("aggregate") {
            None => None,
            Some(_) if fields.contains_key("one") || query["select"] != Value::Null => {
                return Err(QueryError::bad_query("an aggregate shows a value alone"));
            }
            Some(aggregate) => Some(self.aggregate(place.table, aggregate, &["op", "col"])?),
        };
        Ok(Related { name, one, on, place, aggregate })
    }

    fn order(&self, table: usize, items: Option<&Value>) -> Result<Vec<OrderItem>, QueryError> {
        let mut order = Vec::<OrderItem>::new();
        let none = Value::Array(Vec::new());
        for item in array(items.unwrap_or(&none), "order_by")? {
            let parts = array(item, "an item of order_by")?;
            let wrong = || QueryError::bad_query(format!("not an item of order_by: {item}"));
            let (first, rest) = parts.split_first().ok_or_else(wrong)?;
            let words: Vec<&str> = rest.iter().map(|word| word.as_str().unwrap_or("")).collect();
            let (descending, nulls) = match words.as_slice() {
                ["asc"] => (false, None),
                ["desc"] => (true, None),
                ["asc", nulls] => (false, Some(*nulls)),
                ["desc", nulls] => (true, Some(*nulls)),
                _ => return Err(wrong()),
            };
            let nulls_first = match nulls {
                None => descending,
                Some("nulls first") => true,
                Some("nulls last") => false,
                Some(_) => return Err(wrong()),
            };
            let column = column(self.database, table, first)?;
            // A column that comes again decides nothing more.
            if order.iter().all(|earlier| earlier.column != column) {
                order.push(OrderItem { column, descending, nulls_first });
            }
        }
        for column in &self.database.tables[table].key {
            if order.iter().all(|earlier| earlier.column != *column) {
                order.push(OrderItem { column: *column, descending: false, nulls_first: false });
            }
        }
        Ok(order)
    }

    fn start(&self, table: usize, order: &[OrderItem], start: &Value) -> Result<Start, QueryError> {
        let fields = object(start, "start")?;
        let (inclusive, values) = match fields.iter().next() {
            Some((name, values)) if fields.len() == 1 && (name == "after" || name == "at") => {
                (name == "at", values)
            }
            _ => return Err(QueryError::bad_query("start has either \"after\" or \"at\"")),
        };
        let values = object(values, "the values of start")?;
        for name in values.keys() {
            column(self.database, table, &Value::from(name.as_str()))?;
        }
        if values.is_empty() || values.len() > order.len() {
            return Err(QueryError::bad_query("start has values for a prefix of the order"));
        }
        let mut cells = Vec::new();
        for item in &order[..values.len()] {
            let column = &self.database.tables[table].columns[item.column];
            let value = values.get(&column.name);
            let value =
                value.ok_or_else(|| QueryError::bad_query("start has values for a prefix of the order"))?;
            let cell = Cell::read_literal(column.kind, value).ok_or_else(|| {
                QueryError::type_mismatch(format!(
                    "start: {} is {}, not {value}",
                    column.name,
                    column.kind.name()
                ))
            })?;
            cells.push(cell);
        }
        Ok(Start { values: cells, inclusive })
    }
}

/// The column of a table that a JSON string names.
pub(super) fn column(database: &Database, table: usize, name: &Value) -> Result<usize, QueryError> {
    let name = text(Some(name), "a column")?;
    let table = &database.tables[table];
    let found = table.column(name);
    found.ok_or_else(|| QueryError::new("unknown_column", format!("{} has no column {name}", table.name)))
}

pub(super) fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, QueryError> {
    value.as_object().ok_or_else(|| QueryError::bad_query(format!("{what} is an object, not {value}")))
}

pub(super) fn array<'a>(value: &'a Value, what: &str) -> Result<&'a Vec<Value>, QueryError> {
    value.as_array().ok_or_else(|| QueryError::bad_query(format!("{what} is a list, not {value}")))
}

pub(super) fn text<'a>(value: Option<&'a Value>, what: &str) -> Result<&'a str, QueryError> {
    value.and_then(Value::as_str).ok_or_else(|| QueryError::bad_query(format!("{what} is a name")))
}

/// Refuses an object with a member that is none of these.
pub(super) fn known(fields: &Map<String, Value>, names: &[&str]) -> Result<(), QueryError> {
    match fields.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(QueryError::bad_query(format!("{name:?} is not known here; known are {names:?}"))),
    }
}
