//! Random queries, as templates: a template's instances have one shape and differ in their constants.

use super::change::Model;
use super::domain::Domain;
use super::schema::{Column, Schema, Table};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

/// A query with holes, `{"hole":n}`, where constants and arguments go.
#[derive(Clone)]
pub(super) struct Template {
    query: Value,
    holes: Vec<Hole>,
}

#[derive(Clone)]
struct Hole {
    content: Content,
    /// The value comes as an argument rather than as a literal.
    parameter: bool,
}

#[derive(Clone)]
pub(super) enum Content {
    /// A literal for a column of the domain; now and then NULL.
    Value(Domain),
    /// The same, but always of the domain's own type and a literal: for where an argument could mean something else.
    Plain(Domain),
    /// A list of literals, always an argument.
    List(Domain),
    Pattern,
    /// A value for `start`: of some row at the time, or of the domain, or NULL where the column may be.
    Cursor {
        table: usize,
        column: String,
        domain: Domain,
        nullable: bool,
    },
}

impl Template {
    pub(super) fn generate(schema: &Schema, rng: &mut ChaCha8Rng) -> Template {
        let table = rng.random_range(0..schema.tables.len());
        let mut maker = Maker { schema, rng, holes: Vec::new() };
        let query = if maker.chance(0.15) { maker.groups(table) } else { maker.query(table, 3, true) };
        Template { query, holes: maker.holes }
    }

    /// A query of this shape and its arguments, with constants drawn anew.
    pub(super) fn instance(&self, model: &Model, rng: &mut ChaCha8Rng) -> (Value, Value) {
        let mut args = Map::new();
        let query = self.filled(&self.query, model, rng, &mut args);
        (query, Value::Object(args))
    }

    fn filled(
        &self,
        value: &Value,
        model: &Model,
        rng: &mut ChaCha8Rng,
        args: &mut Map<String, Value>,
    ) -> Value {
        match value {
            Value::Object(fields) => {
                if let Some(index) = fields.get("hole").and_then(Value::as_u64) {
                    let hole = &self.holes[index as usize];
                    let filling = hole.content.draw(model, rng);
                    if !hole.parameter {
                        return filling;
                    }
                    let name = format!("p{index}");
                    args.insert(name.clone(), filling);
                    return json!({ "param": name });
                }
                // Which hole draws first is part of what a seed means.
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                let filled = fields.into_iter();
                let filled = filled.map(|(name, value)| (name.clone(), self.filled(value, model, rng, args)));
                Value::Object(filled.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.filled(item, model, rng, args)).collect(),
            scalar => scalar.clone(),
        }
    }
}

impl Content {
    fn draw(&self, model: &Model, rng: &mut ChaCha8Rng) -> Value {
        match self {
            Content::Value(_) if rng.random_bool(0.04) => Value::Null,
            Content::Value(domain) => domain.literal(rng),
            Content::Plain(domain) => domain.value(rng),
            Content::List(domain) => {
                let count = rng.random_range(0..=4);
                let null = rng.random_bool(0.1).then_some(Value::Null);
                (0..count).map(|_| domain.literal(rng)).chain(null).collect()
            }
            Content::Pattern => Domain::pattern(rng),
            Content::Cursor { table, column, domain, nullable } => {
                if *nullable && rng.random_bool(0.15) {
                    return Value::Null;
                }
                let sampled = if rng.random_bool(0.6) { model.sample(*table, column, rng) } else { None };
                sampled.unwrap_or_else(|| domain.value(rng))
            }
        }
    }
}

/// Makes one template.
pub(super) struct Maker<'a> {
    pub(super) schema: &'a Schema,
    pub(super) rng: &'a mut ChaCha8Rng,
    holes: Vec<Hole>,
}

impl<'a> Maker<'a> {
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    pub(super) fn table(&self, table: usize) -> &'a Table {
        &self.schema.tables[table]
    }

    /// A hole with that content, filled by a literal or by an argument.
    pub(super) fn hole(&mut self, content: Content) -> Value {
        let parameter = match content {
            Content::List(_) => true,
            Content::Plain(_) | Content::Cursor { .. } => false,
            _ => self.chance(0.3),
        };
        self.holes.push(Hole { content, parameter });
        json!({ "hole": self.holes.len() - 1 })
    }

    /// A query on the table with at most `depth` levels of `related` under it.
    fn query(&mut self, table: usize, depth: u32, root: bool) -> Value {
        let mut query = Map::new();
        query.insert("table".to_owned(), json!(self.table(table).name));
        if self.chance(if root { 0.7 } else { 0.4 }) {
            let condition = self.condition(table, 3, 2);
            query.insert("where".to_owned(), condition);
        }
        if self.chance(0.5) {
            let mut names: Vec<&str> =
                self.table(table).columns.iter().map(|column| column.name.as_str()).collect();
            names.shuffle(self.rng);
            names.truncate(self.rng.random_range(1..=names.len()));
            query.insert("select".to_owned(), json!(names));
        }
        let order = self.order(table);
        if !order.is_empty() || self.chance(0.05) {
            query.insert("order_by".to_owned(), json!(order));
        }
        if self.chance(0.4) {
            let limit = *[1, 2, 5, 2, 1, 5, 0, 20].choose(self.rng).unwrap_or(&1);
            query.insert("limit".to_owned(), json!(limit));
        }
        if self.chance(0.2) {
            let start = self.start(table, &order);
            query.insert("start".to_owned(), start);
        }
        if depth > 0 {
            let count =
                *(if root { [0, 1, 1, 2, 2] } else { [0, 0, 0, 1, 2] }).choose(self.rng).unwrap_or(&0);
            let mut related = Vec::new();
            for index in 0..count {
                related.extend(self.related(table, depth - 1, index));
            }
            if !related.is_empty() {
                query.insert("related".to_owned(), Value::Array(related));
            }
        }
        Value::Object(query)
    }

    fn related(&mut self, table: usize, depth: u32, index: usize) -> Option<Value> {
        let (child, on) = self.correlation(table)?;
        let mut related =
            json!({"as": format!("r{index}"), "on": on, "query": self.query(child, depth, false)});
        if self.chance(0.25) {
            let query = related["query"].as_object_mut().expect("a query");
            query.remove("select");
            query.remove("related");
            related["aggregate"] = self.aggregate(child);
            return Some(related);
        }
        if self.chance(0.25) {
            related["one"] = json!(true);
        } else if self.chance(0.1) {
            related["one"] = json!(false);
        }
        Some(related)
    }

    /// An aggregate over the table's rows.
    fn aggregate(&mut self, table: usize) -> Value {
        if self.chance(0.3) {
            return json!({"op": "count"});
        }
        let column = self.any_column(table);
        let op = match column.domain {
            Domain::Document | Domain::Flag => "count",
            domain if domain.is_number() => ["sum", "avg", "min", "max"].choose(self.rng).unwrap_or(&"sum"),
            _ => ["count", "min", "max"].choose(self.rng).unwrap_or(&"min"),
        };
        json!({"op": op, "col": column.name})
    }

    /// A query that shows groups of the table's rows.
    fn groups(&mut self, table: usize) -> Value {
        let mut query = json!({"table": self.table(table).name});
        if self.chance(0.7) {
            query["where"] = self.condition(table, 3, 2);
        }
        let mut columns: Vec<&Column> = self.table(table).columns.iter().collect();
        columns.shuffle(self.rng);
        columns.truncate(self.rng.random_range(0..=2));
        let mut shown: Vec<(String, Domain)> =
            columns.iter().map(|column| (column.name.clone(), column.domain)).collect();
        query["group_by"] = columns.iter().map(|column| json!(column.name)).collect();
        let least = usize::from(shown.is_empty());
        let mut aggregates = Vec::new();
        for index in 0..self.rng.random_range(least..=3) {
            let mut aggregate = self.aggregate(table);
            let name = format!("a{index}");
            aggregate["as"] = json!(name);
            // For a cursor: counts are whole numbers, sums and averages are left out of it.
            let column = aggregate["col"].as_str().and_then(|name| self.table(table).column(name));
            let domain = match (aggregate["op"].as_str(), column) {
                (Some("min" | "max"), Some(column)) => column.domain,
                (Some("count"), _) => Domain::Count,
                _ => Domain::Document,
            };
            shown.push((name, domain));
            aggregates.push(aggregate);
        }
        if !aggregates.is_empty() || self.chance(0.3) {
            query["aggregates"] = json!(aggregates);
        }
        if self.chance(0.3) {
            let mut names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
            names.shuffle(self.rng);
            names.truncate(self.rng.random_range(1..=names.len()));
            query["select"] = json!(names);
        }
        let mut order: Vec<&(String, Domain)> =
            shown.iter().filter(|(_, domain)| domain.is_ordered()).collect();
        order.shuffle(self.rng);
        order.truncate(self.rng.random_range(0..=2));
        if !order.is_empty() {
            let terms = order.iter().map(|(name, _)| self.term(name)).collect();
            query["order_by"] = Value::Array(terms);
            if self.chance(0.3) {
                let (name, domain) = order[0];
                let value = self.hole(Content::Plain(*domain));
                query["start"] =
                    json!({ if self.chance(0.6) { "after" } else { "at" }: {name.clone(): value} });
            }
        }
        if self.chance(0.3) {
            query["limit"] = json!([1, 2, 5, 0].choose(self.rng).unwrap_or(&1));
        }
        query
    }

    /// A table that correlates with this one, itself perhaps, and the pairs of columns.
    pub(super) fn correlation(&mut self, table: usize) -> Option<(usize, Value)> {
        let mut tables: Vec<usize> = (0..self.schema.tables.len()).collect();
        tables.shuffle(self.rng);
        if self.chance(0.15) {
            tables.insert(0, table);
        }
        for inner in tables {
            let mut pairs = self.schema.correlations(table, inner);
            if pairs.is_empty() {
                continue;
            }
            pairs.shuffle(self.rng);
            let selective = |(name, _): &(&str, &str)| {
                let column = self.table(table).columns.iter().find(|column| column.name == *name);
                column.is_some_and(|column| matches!(column.domain, Domain::Id { .. }))
            };
            // Ids make the better relations; the others still have their turn.
            if let Some(position) = pairs.iter().position(selective)
                && self.chance(0.6)
            {
                pairs.swap(0, position);
            }
            pairs.truncate(if self.chance(0.15) { 2 } else { 1 });
            return Some((inner, json!(pairs)));
        }
        None
    }

    fn order(&mut self, table: usize) -> Vec<Value> {
        let mut columns: Vec<_> =
            self.table(table).columns.iter().filter(|column| column.domain.is_ordered()).collect();
        columns.shuffle(self.rng);
        let count = *[0, 0, 1, 1, 1, 2, 2, 3].choose(self.rng).unwrap_or(&0);
        columns.truncate(count);
        let mut order = Vec::new();
        for column in columns {
            order.push(self.term(&column.name));
        }
        order
    }

    /// A term of `order_by`.
    fn term(&mut self, column: &str) -> Value {
        let direction = if self.chance(0.5) { "asc" } else { "desc" };
        match self.rng.random_range(0..4) {
            0 => json!([column, direction, "nulls first"]),
            1 => json!([column, direction, "nulls last"]),
            _ => json!([column, direction]),
        }
    }

    fn start(&mut self, table: usize, order: &[Value]) -> Value {
        let mut names: Vec<&str> = order.iter().filter_map(|item| item[0].as_str()).collect();
        let description = self.table(table);
        for index in &description.key {
            let name = description.columns[*index].name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // Mostly with the key, as one pages.
        let length = if self.chance(0.5) { names.len() } else { self.rng.random_range(1..=names.len()) };
        let mut values = Map::new();
        for name in &names[..length] {
            let column = description.columns.iter().find(|column| column.name == *name).expect("named above");
            let content = Content::Cursor {
                table,
                column: column.name.clone(),
                domain: column.domain,
                nullable: column.nullable,
            };
            values.insert(column.name.clone(), self.hole(content));
        }
        json!({ if self.chance(0.6) { "after" } else { "at" }: values })
    }

    /// The query of an `exists`: a table and perhaps a condition.
    pub(super) fn inner_query(&mut self, table: usize, depth: u32, exists: u32) -> Value {
        let mut query = json!({"table": self.table(table).name});
        if self.chance(0.6) {
            query["where"] = self.condition(table, depth, exists);
        }
        query
    }
}
