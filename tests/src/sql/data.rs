//! Random commits, with a model of which rows there are.

use super::schema::{Column, Table};
use rand::{Rng, seq::IndexedRandom as _, seq::IteratorRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

type Row = Map<String, Json>;

/// The rows as the commits made so far leave them; in each table by the key's text.
pub(super) struct Model<'t> {
    tables: &'t [Table],
    rows: Vec<BTreeMap<String, Row>>,
    /// How many rows a table tends to.
    target: usize,
}

impl<'t> Model<'t> {
    pub(super) fn new(tables: &'t [Table], rng: &mut ChaCha8Rng) -> Self {
        Self { tables, rows: vec![BTreeMap::new(); tables.len()], target: rng.random_range(5..=16) }
    }

    /// The commit that fills the tables.
    pub(super) fn fill(&mut self, rng: &mut ChaCha8Rng) -> Json {
        let mut ops = Vec::new();
        for table in 0..self.tables.len() {
            // Now and then a table starts empty.
            let rows = if rng.random_bool(0.06) { 0 } else { self.target };
            for _ in 0..rows {
                ops.extend(self.insert(table, rng));
            }
        }
        json!({ "ops": ops })
    }

    /// A commit of one operation or several.
    pub(super) fn commit(&mut self, rng: &mut ChaCha8Rng) -> Json {
        let mut ops = Vec::new();
        if rng.random_bool(0.06) {
            // A table empties, or comes back.
            let table = rng.random_range(0..self.tables.len());
            if self.rows[table].is_empty() {
                (0..self.target).for_each(|_| ops.extend(self.insert(table, rng)));
            }
            while ops.is_empty() && !self.rows[table].is_empty() {
                let all = self.rows[table].len();
                (0..all).for_each(|_| ops.extend(self.delete(table, rng)));
            }
        }
        let wanted = if rng.random_bool(0.3) { 1 } else { rng.random_range(2..=8) };
        for _ in 0..wanted {
            let table = rng.random_range(0..self.tables.len());
            let crowded = self.rows[table].len() > self.target;
            match rng.random_range(0..100) {
                0..=29 if !crowded => ops.extend(self.insert(table, rng)),
                0..=44 => ops.extend(self.delete(table, rng)),
                45..=54 => ops.extend(self.move_key(table, rng)),
                _ => ops.extend(self.update(table, rng)),
            }
        }
        json!({ "ops": ops })
    }

    fn insert(&mut self, index: usize, rng: &mut ChaCha8Rng) -> Option<Json> {
        let table = &self.tables[index];
        let key = self.free_key(index, rng)?;
        let mut row = key.clone();
        for column in &table.columns[table.key..] {
            row.insert(column.name.to_owned(), value(column, rng));
        }
        self.rows[index].insert(text(&key), row.clone());
        Some(json!({"insert": table.name, "row": row}))
    }

    fn delete(&mut self, index: usize, rng: &mut ChaCha8Rng) -> Option<Json> {
        let row = self.rows[index].values().choose(rng)?.clone();
        let key = self.key_of(index, &row);
        self.rows[index].remove(&text(&key));
        Some(json!({"delete": self.tables[index].name, "key": key}))
    }

    fn update(&mut self, index: usize, rng: &mut ChaCha8Rng) -> Option<Json> {
        let table = &self.tables[index];
        let row = self.rows[index].values_mut().choose(rng)?;
        let settable = &table.columns[table.key..];
        let count = rng.random_range(1..=settable.len().min(3));
        let mut set = Map::new();
        for column in settable.choose_multiple(rng, count) {
            let value = if rng.random_bool(0.1) { row[column.name].clone() } else { value(column, rng) };
            set.insert(column.name.to_owned(), value.clone());
            row.insert(column.name.to_owned(), value);
        }
        let row = row.clone();
        Some(json!({"update": table.name, "key": self.key_of(index, &row), "set": set}))
    }

    /// A row gets another key: a delete and an insert of otherwise the same.
    fn move_key(&mut self, index: usize, rng: &mut ChaCha8Rng) -> Vec<Json> {
        let Some(old) = self.rows[index].values().choose(rng).cloned() else { return Vec::new() };
        let Some(key) = self.free_key(index, rng) else { return Vec::new() };
        let old_key = self.key_of(index, &old);
        self.rows[index].remove(&text(&old_key));
        let mut row = old;
        row.extend(key.clone());
        self.rows[index].insert(text(&key), row.clone());
        let name = &self.tables[index].name;
        vec![json!({"delete": name, "key": old_key}), json!({"insert": name, "row": row})]
    }

    fn free_key(&self, index: usize, rng: &mut ChaCha8Rng) -> Option<Row> {
        let table = &self.tables[index];
        let mut drawn = (0..8).map(|_| -> Row {
            let key = table.columns[..table.key].iter();
            key.map(|column| (column.name.to_owned(), column.domain.value(rng))).collect()
        });
        drawn.find(|key| !self.rows[index].contains_key(&text(key)))
    }

    fn key_of(&self, index: usize, row: &Row) -> Row {
        let table = &self.tables[index];
        let key = table.columns[..table.key].iter();
        key.map(|column| (column.name.to_owned(), row[column.name].clone())).collect()
    }
}

fn text(key: &Row) -> String {
    json!(key).to_string()
}

fn value(column: &Column, rng: &mut ChaCha8Rng) -> Json {
    if column.nullable && rng.random_bool(0.2) { Json::Null } else { column.domain.value(rng) }
}
