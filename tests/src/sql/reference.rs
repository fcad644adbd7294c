//! A case in PostgreSQL.

use super::{Statement, ast::literal};
use crate::row_changes::copy_line;
use postgres::{Client, SimpleQueryMessage, error::SqlState, types::Type};
use serde_json::{Map, Value as Json};
use std::{
    collections::HashMap,
    io::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use tidegate_wire::model::Row;

/// Bytes that are sent together when a table is filled.
const COPY_BYTES: usize = 1 << 20;

static SCHEMAS: AtomicU64 = AtomicU64::new(0);

/// A case's tables in PostgreSQL, in a transaction that is never committed, so that nothing has to be cleaned up.
pub struct Reference<'c> {
    client: &'c mut Client,
    /// What is known of each statement's columns.
    types: HashMap<String, Vec<Type>>,
}

/// PostgreSQL's answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The columns' types.
    pub types: Vec<Type>,
    /// The rows, values as PostgreSQL prints them.
    pub rows: Vec<Vec<Option<String>>>,
}

/// PostgreSQL does not answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// Evaluating failed, as by a division by zero.
    Evaluating(String),
    /// The text is not one of PostgreSQL's.
    Text(String),
}

impl<'c> Reference<'c> {
    /// Creates a case's tables.
    ///
    /// # Panics
    /// When PostgreSQL refuses them.
    #[must_use]
    pub fn new(client: &'c mut Client, tables: &Json) -> Self {
        // Two connections may not create one name before either ends.
        let own = SCHEMAS.fetch_add(1, Relaxed);
        let script = format!(
            "rollback; begin; create schema s{own}; set local search_path = s{own}; set local jit = off; {}",
            create_tables(tables)
        );
        client.batch_execute(&script).unwrap_or_else(|error| panic!("{error:?}: {script}"));
        Self { client, types: HashMap::new() }
    }

    /// Fills a table at once.
    ///
    /// # Panics
    /// When PostgreSQL refuses the rows.
    pub fn fill<'r>(&mut self, table: &str, rows: impl Iterator<Item = &'r Row>) {
        fill(self.client, table, rows);
    }

    /// Runs statements that do not change what the tables hold, as `create index` and `analyze`.
    ///
    /// # Panics
    /// When PostgreSQL refuses them.
    pub fn prepare(&mut self, script: &str) {
        self.client.batch_execute(script).unwrap_or_else(|error| panic!("{error:?}: {script}"));
    }

    /// Applies a commit; false, and nothing changes, when an operation does not apply.
    pub fn apply(&mut self, commit: &Json) -> bool {
        let mut script = "savepoint one;".to_owned();
        let ops = commit["ops"].as_array().map_or(&[][..], Vec::as_slice);
        for op in ops {
            script.push_str(&statement_of(op));
        }
        let outcome = self.client.simple_query(&script);
        let applied = outcome.is_ok_and(|messages| {
            let counts = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
                _ => None,
            });
            // The savepoint itself counts none.
            counts.skip(1).all(|rows| rows == 1)
        });
        let end = if applied { "release one" } else { "rollback to one; release one" };
        self.client.batch_execute(end).expect("the transaction stands");
        applied
    }

    /// Answers a query.
    ///
    /// # Errors
    /// When PostgreSQL refuses the text or fails to evaluate it.
    pub fn ask(&mut self, statement: &Statement) -> Result<Answer, Refused> {
        self.client.batch_execute("savepoint one").expect("the transaction stands");
        let answer = self.answer(&statement.postgres).map_err(|error| {
            let database = error.as_db_error();
            let message = database.map_or_else(|| error.to_string(), |error| error.message().to_owned());
            // Class 22 are faults of data; a scalar subquery with several rows has a class of its own.
            let evaluating = error.code().is_some_and(|code| {
                code.code().starts_with("22") && *code != SqlState::INVALID_TEXT_REPRESENTATION
                    || *code == SqlState::CARDINALITY_VIOLATION
            });
            if evaluating { Refused::Evaluating(message) } else { Refused::Text(message) }
        });
        let end = if answer.is_ok() { "release one" } else { "rollback to one; release one" };
        self.client.batch_execute(end).expect("the transaction stands");
        answer
    }

    fn answer(&mut self, sql: &str) -> Result<Answer, postgres::Error> {
        let types = match self.types.get(sql) {
            Some(types) => types.clone(),
            None => {
                let types = column_types(self.client, sql)?;
                self.types.insert(sql.to_owned(), types.clone());
                types
            }
        };
        ask(self.client, sql, types)
    }
}

/// The statements that create tables.
///
/// # Panics
/// When the tables line is not well formed.
#[must_use]
pub fn create_tables(tables: &Json) -> String {
    let mut script = String::new();
    for table in tables["tables"].as_array().expect("tables") {
        let columns = table["columns"].as_array().expect("columns").iter().map(|column| {
            let strict = if column["nullable"] == true { "" } else { " not null" };
            format!("{} {}{strict}", text(&column["name"]), text(&column["type"]))
        });
        let key: Vec<&str> = table["primary_key"].as_array().expect("a key").iter().map(text).collect();
        script.push_str(&format!(
            "create table {} ({}, primary key ({}));",
            text(&table["name"]),
            columns.collect::<Vec<_>>().join(", "),
            key.join(", ")
        ));
    }
    script
}

/// Fills a table at once.
///
/// # Panics
/// When PostgreSQL refuses the rows.
pub fn fill<'r>(client: &mut Client, table: &str, rows: impl Iterator<Item = &'r Row>) {
    let mut writer = client.copy_in(&format!("copy {table} from stdin")).expect("the table is there");
    let mut text = String::new();
    for row in rows {
        copy_line(row, &mut text);
        if text.len() > COPY_BYTES {
            writer.write_all(text.as_bytes()).expect("the rows are taken");
            text.clear();
        }
    }
    writer.write_all(text.as_bytes()).expect("the rows are taken");
    writer.finish().expect("the rows are taken");
}

/// A query's answer.
///
/// # Errors
/// When PostgreSQL refuses the text or fails to evaluate it.
pub fn ask(client: &mut Client, sql: &str, types: Vec<Type>) -> Result<Answer, postgres::Error> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql)? {
        if let SimpleQueryMessage::Row(row) = message {
            rows.push((0..row.len()).map(|cell| row.get(cell).map(str::to_owned)).collect());
        }
    }
    Ok(Answer { types, rows })
}

/// The types of a query's columns.
///
/// # Errors
/// When PostgreSQL refuses the text.
pub fn column_types(client: &mut Client, sql: &str) -> Result<Vec<Type>, postgres::Error> {
    Ok(client.prepare(sql)?.columns().iter().map(|column| column.type_().clone()).collect())
}

fn text(json: &Json) -> &str {
    json.as_str().expect("a name")
}

fn statement_of(op: &Json) -> String {
    let pairs = |values: &Json, null: &str, between: &str| {
        let empty = Map::new();
        let pairs = values.as_object().unwrap_or(&empty).iter();
        let pairs = pairs.map(|(name, value)| match value {
            Json::Null => format!("{name} {null}"),
            value => format!("{name} = {}", literal(value)),
        });
        pairs.collect::<Vec<_>>().join(between)
    };
    let condition = pairs(&op["key"], "is null", " and ");
    if let Some(table) = op["insert"].as_str() {
        let row = op["row"].as_object().expect("a row");
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let values: Vec<String> = row.values().map(literal).collect();
        format!("insert into {table} ({}) values ({});", names.join(", "), values.join(", "))
    } else if let Some(table) = op["update"].as_str() {
        format!("update {table} set {} where {condition};", pairs(&op["set"], "= null", ", "))
    } else {
        format!("delete from {} where {condition};", text(&op["delete"]))
    }
}
