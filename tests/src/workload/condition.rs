//! Random conditions.

use super::domain::Domain;
use super::query::{Content, Maker};
use super::schema::Column;
use rand::Rng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

const COMPARISONS: &[&str] = &["=", "=", "=", "<>", "<", "<=", ">", ">="];

impl<'a> Maker<'a> {
    /// A condition on the table's rows: `depth` levels of and, or and not, `exists` levels of exists within exists.
    pub(super) fn condition(&mut self, table: usize, depth: u32, exists: u32) -> Value {
        if depth > 0 && self.chance(0.45) {
            return match self.rng.random_range(0..8) {
                0..=2 => self.junction("and", table, depth, exists),
                3..=5 => self.junction("or", table, depth, exists),
                _ => json!({"op": "not", "args": [self.condition(table, depth - 1, exists)]}),
            };
        }
        if exists > 0
            && self.chance(0.25)
            && let Some((inner, on)) = self.correlation(table)
        {
            let query = self.inner_query(inner, depth.saturating_sub(1), exists - 1);
            let found = json!({"exists": {"query": query, "on": on}});
            return if self.chance(0.4) { json!({"op": "not", "args": [found]}) } else { found };
        }
        self.leaf(table)
    }

    fn junction(&mut self, op: &str, table: usize, depth: u32, exists: u32) -> Value {
        let count = self.rng.random_range(2..=3);
        let args: Vec<Value> = (0..count).map(|_| self.condition(table, depth - 1, exists)).collect();
        json!({"op": op, "args": args})
    }

    fn leaf(&mut self, table: usize) -> Value {
        let column = self.any_column(table);
        let col = json!({"col": column.name});
        if !column.domain.is_ordered() {
            return json!({"op": "is null", "args": [col]});
        }
        let domain = column.domain;
        match self.rng.random_range(0..100) {
            0..=9 => json!({"op": "is null", "args": [col]}),
            10..=16 => {
                let other = match self.comparable(table, column) {
                    Some(other) if self.chance(0.4) => json!({"col": other}),
                    _ => self.hole(Content::Value(domain)),
                };
                json!({"op": "is distinct from", "args": [col, other]})
            }
            17..=29 => {
                let mut args = vec![col];
                if self.chance(0.4) {
                    args.push(self.hole(Content::List(domain)));
                } else {
                    let count = self.rng.random_range(1..=4);
                    // A parameter as the only member would be one for a list.
                    let content = if count == 1 { Content::Plain(domain) } else { Content::Value(domain) };
                    for _ in 0..count {
                        args.push(self.hole(content.clone()));
                    }
                }
                json!({"op": "in", "args": args})
            }
            30..=37 => {
                let (low, high) = (self.hole(Content::Value(domain)), self.hole(Content::Value(domain)));
                json!({"op": "between", "args": [col, low, high]})
            }
            38..=47 => match self.comparable(table, column) {
                Some(other) => json!({"op": self.comparison(), "args": [col, {"col": other}]}),
                None => self.compared(col, domain),
            },
            48..=57 if domain == Domain::Word => {
                let op = if self.chance(0.5) { "like" } else { "ilike" };
                json!({"op": op, "args": [col, self.hole(Content::Pattern)]})
            }
            48..=57 if domain == Domain::Flag => col,
            48..=57 if domain.computes() => self.computed(table, col),
            58..=62 => self.called(col, domain),
            _ => self.compared(col, domain),
        }
    }

    /// A column compared with a constant, on either side.
    fn compared(&mut self, col: Value, domain: Domain) -> Value {
        let constant = self.hole(Content::Value(domain));
        let args = if self.chance(0.12) { [constant, col] } else { [col, constant] };
        json!({"op": self.comparison(), "args": args})
    }

    /// Arithmetic on small numbers, which cannot leave the range; divisors are constants other than 0.
    fn computed(&mut self, table: usize, col: Value) -> Value {
        let schema = self.schema;
        let numbers: Vec<&Column> =
            schema.tables[table].columns.iter().filter(|column| column.domain.computes()).collect();
        let small = self.rng.random_range(1..=3);
        let op = *["+", "-", "*", "/", "%"].choose(self.rng).unwrap_or(&"+");
        let right = match numbers.choose(self.rng) {
            Some(other) if matches!(op, "+" | "-" | "*") && self.chance(0.5) => json!({"col": other.name}),
            _ => json!(small),
        };
        let result = json!({"op": op, "args": [col, right]});
        json!({"op": self.comparison(), "args": [result, self.hole(Content::Value(Domain::Count))]})
    }

    /// A scalar function of a column, compared with a constant.
    fn called(&mut self, col: Value, domain: Domain) -> Value {
        let (call, result) = match domain {
            Domain::Word => match self.rng.random_range(0..3) {
                0 => (json!({"op": "lower", "args": [col]}), domain),
                1 => (json!({"op": "upper", "args": [col]}), domain),
                _ => (json!({"op": "length", "args": [col]}), Domain::Count),
            },
            Domain::Id { .. } | Domain::Count if self.chance(0.5) => {
                (json!({"op": "abs", "args": [col]}), domain)
            }
            _ => (json!({"op": "coalesce", "args": [col, self.hole(Content::Plain(domain))]}), domain),
        };
        self.compared(call, result)
    }

    fn comparison(&mut self) -> &'static str {
        COMPARISONS.choose(self.rng).copied().unwrap_or("=")
    }

    pub(super) fn any_column(&mut self, table: usize) -> &'a Column {
        let schema = self.schema;
        schema.tables[table].columns.choose(self.rng).expect("a table has columns")
    }

    /// The name of a column of the same table that compares with this one, itself perhaps.
    fn comparable(&mut self, table: usize, column: &Column) -> Option<&'a str> {
        let schema = self.schema;
        let columns = schema.tables[table].columns.iter();
        let others: Vec<&Column> =
            columns.filter(|other| column.domain.compares_with(other.domain)).collect();
        others.choose(self.rng).map(|other| other.name.as_str())
    }
}
