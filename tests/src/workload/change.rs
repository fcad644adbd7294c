//! Random commits, with a model of which rows there are.

use super::Size;
use super::schema::{Column, Schema, Table};
use rand::Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Row = Map<String, Value>;

/// The rows as the commits made so far leave them.
#[derive(Clone)]
pub(super) struct Model {
    tables: Vec<Rows>,
    /// How many rows a table tends to.
    target: usize,
}

#[derive(Clone, Default)]
struct Rows {
    /// By the key's JSON text. Key domains have one text per value.
    live: BTreeMap<String, Row>,
    /// Keys that were there once, the latest last.
    gone: Vec<Row>,
}

impl Model {
    pub(super) fn new(schema: &Schema, size: Size) -> Model {
        Model { tables: vec![Rows::default(); schema.tables.len()], target: size.rows() }
    }

    /// Commits that fill all tables.
    pub(super) fn fill(&mut self, schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<Value> {
        let mut ops = Vec::new();
        for (index, table) in schema.tables.iter().enumerate() {
            // Now and then a table starts empty, or the workload does.
            let rows = if rng.random_bool(0.08) { 0 } else { self.target.min(table.keys() * 2 / 3) };
            for _ in 0..rows {
                ops.extend(self.insert(table, index, rng));
            }
        }
        let mut commits = Vec::new();
        while !ops.is_empty() {
            let rest = ops.split_off(ops.len().min(rng.random_range(1..=20)));
            commits.push(json!({ "ops": ops }));
            ops = rest;
        }
        commits
    }

    /// The next commit, which takes effect on the model unless it is one to refuse.
    pub(super) fn commit(&mut self, schema: &Schema, rng: &mut ChaCha8Rng) -> Value {
        let ops = match rng.random_range(0..100) {
            0..=5 => self.refused(schema, rng),
            6 => Vec::new(),
            7..=9 => {
                let count = rng.random_range(50..=200);
                self.ops(schema, rng, count)
            }
            _ => {
                let count = rng.random_range(1..=6);
                self.ops(schema, rng, count)
            }
        };
        if rng.random_bool(0.1) {
            json!({"at": 1_357_034_400_000_i64, "ops": ops})
        } else {
            json!({ "ops": ops })
        }
    }

    /// A value that some row has in that column, if there is one.
    pub(super) fn sample(&self, table: usize, column: &str, rng: &mut ChaCha8Rng) -> Option<Value> {
        self.tables[table].live.values().choose(rng).map(|row| row[column].clone())
    }

    fn ops(&mut self, schema: &Schema, rng: &mut ChaCha8Rng, count: usize) -> Vec<Value> {
        let mut ops = Vec::new();
        for _ in 0..count {
            let index = rng.random_range(0..schema.tables.len());
            let table = &schema.tables[index];
            let live = self.tables[index].live.len();
            let crowded = live > self.target || live * 4 > table.keys() * 3;
            match rng.random_range(0..100) {
                0..=29 if !crowded => ops.extend(self.insert(table, index, rng)),
                0..=44 => ops.extend(self.delete(table, index, rng)),
                45..=54 => ops.extend(self.replace(table, index, rng)),
                55..=59 => ops.extend(self.flash(table, index, rng)),
                _ => ops.extend(self.update(table, index, rng)),
            }
        }
        ops
    }

    fn insert(&mut self, table: &Table, index: usize, rng: &mut ChaCha8Rng) -> Option<Value> {
        let rows = &mut self.tables[index];
        let again = if rng.random_bool(0.4) { rows.gone.last().cloned() } else { None };
        let keys = again.into_iter().chain((0..8).map(|_| new_key(table, rng))).collect::<Vec<_>>();
        let key = keys.into_iter().find(|key| !rows.live.contains_key(&text(key)))?;
        let row = new_row(table, &key, rng);
        rows.live.insert(text(&key), row.clone());
        Some(insertion(table, row, rng))
    }

    fn delete(&mut self, table: &Table, index: usize, rng: &mut ChaCha8Rng) -> Option<Value> {
        let rows = &mut self.tables[index];
        let (text, row) = rows.live.iter().choose(rng).map(|(text, row)| (text.clone(), row.clone()))?;
        rows.live.remove(&text);
        let key = key_of(table, &row);
        rows.gone.push(key.clone());
        Some(json!({"delete": table.name, "key": key}))
    }

    fn update(&mut self, table: &Table, index: usize, rng: &mut ChaCha8Rng) -> Option<Value> {
        let (_, row) = self.tables[index].live.iter_mut().choose(rng)?;
        let key = key_of(table, row);
        let columns: Vec<&Column> = table.settable().collect();
        let count = rng.random_range(1..=columns.len().min(3));
        let unchanged = rng.random_bool(0.12);
        let mut set = Map::new();
        for column in columns.choose_multiple(rng, count) {
            let value = if unchanged { row[&column.name].clone() } else { new_value(column, rng) };
            set.insert(column.name.clone(), value.clone());
            row.insert(column.name.clone(), value);
        }
        Some(json!({"update": table.name, "key": key, "set": set}))
    }

    /// Deletes a row and inserts one with the same key: equal, or with other values.
    fn replace(&mut self, table: &Table, index: usize, rng: &mut ChaCha8Rng) -> Vec<Value> {
        let Some(row) = self.tables[index].live.values_mut().choose(rng) else { return Vec::new() };
        let key = key_of(table, row);
        if rng.random_bool(0.7) {
            *row = new_row(table, &key, rng);
        }
        let row = row.clone();
        vec![json!({"delete": table.name, "key": key}), insertion(table, row, rng)]
    }

    /// Inserts a row and deletes it again.
    fn flash(&mut self, table: &Table, index: usize, rng: &mut ChaCha8Rng) -> Vec<Value> {
        let key = new_key(table, rng);
        if self.tables[index].live.contains_key(&text(&key)) {
            return Vec::new();
        }
        let row = new_row(table, &key, rng);
        vec![insertion(table, row, rng), json!({"delete": table.name, "key": key})]
    }

    /// Some sound operations and then one with exactly one fault; the model stays as it is.
    fn refused(&self, schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<Value> {
        let mut after = self.clone();
        let sound = rng.random_range(0..=2);
        let mut ops = after.ops(schema, rng, sound);
        let index = rng.random_range(0..schema.tables.len());
        let table = &schema.tables[index];
        let live = after.tables[index].live.values().choose(rng).cloned();
        let absent = (0..20)
            .map(|_| new_key(table, rng))
            .find(|key| !after.tables[index].live.contains_key(&text(key)));
        let settable: Vec<&Column> = table.settable().collect();
        let any = settable.choose(rng).expect("every table has a column beside its key");
        let strict = settable.iter().find(|column| !column.nullable);
        let name = &table.name;
        let fault = match (rng.random_range(0..9), live, absent) {
            (0, Some(row), _) => json!({"insert": name, "row": new_row(table, &key_of(table, &row), rng)}),
            (1, _, Some(key)) => json!({"update": name, "key": key, "set": {&any.name: new_value(any, rng)}}),
            (2, _, Some(key)) => json!({"delete": name, "key": key}),
            (3, Some(row), _) if any.domain.is_ordered() => {
                json!({"update": name, "key": key_of(table, &row), "set": {&any.name: {"not": "this type"}}})
            }
            (4, Some(row), _) if strict.is_some() => {
                let column = &strict.expect("asked in the guard").name;
                json!({"update": name, "key": key_of(table, &row), "set": {column: null}})
            }
            (5, Some(row), _) => json!({"update": name, "key": key_of(table, &row), "set": {"nowhere": 1}}),
            (6, Some(row), _) => {
                let key = key_of(table, &row);
                let (column, value) = key.iter().min_by_key(|(name, _)| *name).expect("a key has columns");
                json!({"update": name, "key": key, "set": {column: value}})
            }
            (7, _, Some(key)) => {
                let mut row = new_row(table, &key, rng);
                row.remove(&table.columns[table.key[0]].name);
                json!({"insert": name, "row": row})
            }
            (_, _, _) => json!({"delete": "nowhere", "key": {"id": 1}}),
        };
        ops.push(fault);
        ops
    }
}

/// The same for equal keys, and in one order whatever the order of the columns: rows are drawn by it.
fn text(key: &Row) -> String {
    let mut key = json!(key);
    key.sort_all_objects();
    key.to_string()
}

fn key_of(table: &Table, row: &Row) -> Row {
    let names = table.key.iter().map(|index| &table.columns[*index].name);
    names.map(|name| (name.clone(), row[name].clone())).collect()
}

fn new_key(table: &Table, rng: &mut ChaCha8Rng) -> Row {
    let columns = table.key.iter().map(|index| &table.columns[*index]);
    columns.map(|column| (column.name.clone(), column.domain.value(rng))).collect()
}

fn new_row(table: &Table, key: &Row, rng: &mut ChaCha8Rng) -> Row {
    let mut row = key.clone();
    for column in table.settable() {
        row.insert(column.name.clone(), new_value(column, rng));
    }
    row
}

fn new_value(column: &Column, rng: &mut ChaCha8Rng) -> Value {
    if column.nullable && rng.random_bool(0.25) { Value::Null } else { column.domain.value(rng) }
}

/// An insert; some NULLs are left out, which means the same.
fn insertion(table: &Table, mut row: Row, rng: &mut ChaCha8Rng) -> Value {
    row.retain(|_, value| !value.is_null() || rng.random_bool(0.5));
    json!({"insert": table.name, "row": row})
}
