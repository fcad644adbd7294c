//! The tables and their rows, and what a commit does to them.

use super::cell::{Cell, Kind};
use super::comparison::compare_nulls_last;
use super::fault::Refusal;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A column of a [`Table`].
#[derive(Clone, Debug)]
pub struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
}

impl Column {
    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its type, one of `bool int8 float8 text bytea timestamptz date uuid numeric json`.
    pub fn type_name(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether NULL may stand in it; never in a key column.
    pub fn nullable(&self) -> bool {
        self.nullable
    }
}

/// A table with its rows.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Indexes into `columns`, in the order of the key.
    pub(super) key: Vec<usize>,
    pub(super) rows: BTreeMap<Key, Vec<Cell>>,
}

impl Table {
    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in the order in which they were declared.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The names of the primary key's columns, in the key's order.
    pub fn primary_key(&self) -> impl Iterator<Item = &str> {
        self.key.iter().map(|index| self.columns[*index].name.as_str())
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows as objects with every column, in key order.
    pub fn rows(&self) -> impl Iterator<Item = Value> {
        self.rows.values().map(|row| {
            let cells = self.columns.iter().zip(row).map(|(column, cell)| (column.name.clone(), cell.show()));
            Value::Object(cells.collect())
        })
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn key_of(&self, row: &[Cell]) -> Key {
        Key(self.key.iter().map(|index| row[*index].clone()).collect())
    }
}

/// A primary key's cells. Equal by the order of values: −0 and 0 are one key, and so are `1.5` and `1.50`.
#[derive(Clone, Debug)]
pub(super) struct Key(pub(super) Vec<Cell>);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let mut cells = self.0.iter().zip(&other.0).map(|(left, right)| compare_nulls_last(left, right));
        cells.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// A whole database at one commit. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Database {
    pub(super) tables: Vec<Table>,
}

impl Database {
    /// Takes the first line of a commit stream, `{"tables":[{name, columns, primary_key}]}`. A table may also carry
    /// `rows`, each a list of cells in the columns' order.
    ///
    /// # Errors
    /// `bad_message` for a form that is not this one, and what a commit's rows are refused for.
    pub fn from_stream_tables(tables: &Value) -> Result<Database, Refusal> {
        let wrong = |message: &str| Refusal::new("bad_message", message);
        let list =
            tables.get("tables").and_then(Value::as_array).ok_or_else(|| wrong("no list \"tables\""))?;
        let mut database = Database::default();
        for described in list {
            let table = read_table(described)?;
            if database.table(&table.name).is_some() {
                return Err(wrong(&format!("table {} is declared twice", table.name)));
            }
            database.tables.push(table);
            let Some(rows) = described.get("rows") else { continue };
            let table = database.tables.last_mut().expect("just pushed");
            for cells in rows.as_array().ok_or_else(|| wrong("rows is no list"))? {
                let cells = cells.as_array().filter(|cells| cells.len() == table.columns.len());
                let cells = cells.ok_or_else(|| wrong("a row is no list of one cell per column"))?;
                let named = table.columns.iter().map(|column| column.name.clone()).zip(cells.iter().cloned());
                let row = named.collect();
                insert(table, &row)?;
            }
        }
        Ok(database)
    }

    /// The table of that name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// All tables, in the order in which they were declared.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Applies a commit `{"at":…,"ops":[…]}` whole or not at all. Operations take effect one after the other, and the
    /// first that is wrong decides the code; within one, names and forms are checked before types, and types before
    /// the key's presence.
    ///
    /// # Errors
    /// See [`Refusal::code`]. The database is then unchanged.
    pub fn apply(&mut self, commit: &Value) -> Result<(), Refusal> {
        let wrong = |message: &str| Refusal::new("bad_message", message);
        let fields = commit.as_object().ok_or_else(|| wrong("a commit is an object"))?;
        if fields.keys().any(|name| name != "at" && name != "ops") {
            return Err(wrong("a commit has \"at\" and \"ops\" only"));
        }
        if fields.get("at").is_some_and(|at| !at.is_i64() && !at.is_u64()) {
            return Err(wrong("\"at\" is a whole number of milliseconds"));
        }
        let ops = fields.get("ops").and_then(Value::as_array).ok_or_else(|| wrong("no list \"ops\""))?;
        let mut undo = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            match self.apply_op(op) {
                Ok(step) => undo.push(step),
                Err(refusal) => {
                    for (table, key, before) in undo.into_iter().rev() {
                        let rows = &mut self.tables[table].rows;
                        match before {
                            Some(row) => rows.insert(key, row),
                            None => rows.remove(&key),
                        };
                    }
                    return Err(Refusal { op: Some(index), ..refusal });
                }
            }
        }
        Ok(())
    }

    /// Does one operation and tells how to undo it: the table, the key and the row it had.
    fn apply_op(&mut self, op: &Value) -> Result<(usize, Key, Option<Vec<Cell>>), Refusal> {
        let wrong = || Refusal::new("bad_message", format!("not an operation: {op}"));
        let fields = op.as_object().ok_or_else(wrong)?;
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        let kind = match names.as_slice() {
            ["insert", "row"] => "insert",
            ["key", "set", "update"] => "update",
            ["delete", "key"] => "delete",
            _ => return Err(wrong()),
        };
        let name = fields[kind].as_str().ok_or_else(wrong)?;
        let index = self.tables.iter().position(|table| table.name == name);
        let index =
            index.ok_or_else(|| Refusal::new("unknown_table", format!("there is no table {name}")))?;
        let table = &mut self.tables[index];
        let object = |field: &str| fields[field].as_object().ok_or_else(wrong);
        if kind == "insert" {
            return insert(table, object("row")?).map(|key| (index, key, None));
        }
        let key = read_key(table, object("key")?)?;
        let set = if kind == "update" { read_set(table, object("set")?)? } else { Vec::new() };
        let before = table.rows.get(&key).cloned().ok_or_else(|| {
            Refusal::new(
                "conflict",
                format!("{kind} of {name}: there is no row with the key {}", fields["key"]),
            )
        })?;
        if kind == "delete" {
            table.rows.remove(&key);
        } else {
            let row = table.rows.get_mut(&key).expect("it was found above");
            for (column, cell) in set {
                row[column] = cell;
            }
        }
        Ok((index, key, Some(before)))
    }
}

fn read_table(described: &Value) -> Result<Table, Refusal> {
    let wrong = |what: &str| Refusal::new("bad_message", format!("{what} in the table {described:.200}"));
    let text = |value: Option<&Value>, what: &str| match value {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(wrong(what)),
    };
    let name = text(described.get("name"), "no name")?;
    let mut columns = Vec::<Column>::new();
    for column in described.get("columns").and_then(Value::as_array).ok_or_else(|| wrong("no columns"))? {
        let name = text(column.get("name"), "a column without name")?;
        let kind = Kind::named(&text(column.get("type"), "a column without type")?);
        let kind = kind.ok_or_else(|| wrong("a column of unknown type"))?;
        let nullable = match column.get("nullable") {
            None => false,
            Some(Value::Bool(nullable)) => *nullable,
            Some(_) => return Err(wrong("\"nullable\" that is no bool")),
        };
        if columns.iter().any(|earlier| earlier.name == name) {
            return Err(wrong("a column declared twice"));
        }
        columns.push(Column { name, kind, nullable });
    }
    let mut key = Vec::new();
    for part in
        described.get("primary_key").and_then(Value::as_array).ok_or_else(|| wrong("no primary key"))?
    {
        let part = text(Some(part), "a key column that is no name")?;
        let index = columns.iter().position(|column| column.name == part);
        let index =
            index.ok_or_else(|| Refusal::new("unknown_column", format!("{name}.{part} in its key")))?;
        columns[index].nullable = false;
        key.push(index);
    }
    if key.is_empty() {
        return Err(wrong("an empty primary key"));
    }
    Ok(Table { name, columns, key, rows: BTreeMap::new() })
}

fn insert(table: &mut Table, named: &Map<String, Value>) -> Result<Key, Refusal> {
    let given = read_cells(table, named)?;
    let mut row = vec![Cell::Null; table.columns.len()];
    for (column, cell) in given {
        row[column] = cell;
    }
    if let Some(column) =
        (0..row.len()).find(|index| row[*index].is_null() && !table.columns[*index].nullable)
    {
        return Err(null_in(table, column));
    }
    let key = table.key_of(&row);
    if table.rows.contains_key(&key) {
        let message =
            format!("insert into {}: a row with this key is there already: {}", table.name, json!(named));
        return Err(Refusal::new("conflict", message));
    }
    table.rows.insert(key.clone(), row);
    Ok(key)
}

fn read_key(table: &Table, named: &Map<String, Value>) -> Result<Key, Refusal> {
    let given = read_cells(table, named)?;
    if let Some((column, _)) = given.iter().find(|(column, _)| !table.key.contains(column)) {
        let message = format!("{}.{} is no key column", table.name, table.columns[*column].name);
        return Err(Refusal::new("bad_message", message));
    }
    let cells = table.key.iter().map(|wanted| {
        let found = given.iter().find(|(column, _)| column == wanted).map(|(_, cell)| cell.clone());
        found.ok_or_else(|| {
            let message = format!("the key lacks {}.{}", table.name, table.columns[*wanted].name);
            Refusal::new("bad_message", message)
        })
    });
    cells.collect::<Result<_, _>>().map(Key)
}

fn read_set(table: &Table, named: &Map<String, Value>) -> Result<Vec<(usize, Cell)>, Refusal> {
    if let Some(column) = table.key.iter().find(|column| named.contains_key(&table.columns[**column].name)) {
        let message = format!("the key column {}.{} cannot be set", table.name, table.columns[*column].name);
        return Err(Refusal::new("bad_message", message));
    }
    read_cells(table, named)
}

/// Names and types of some columns' values, NULL included: which column, which cell.
fn read_cells(table: &Table, named: &Map<String, Value>) -> Result<Vec<(usize, Cell)>, Refusal> {
    let mut cells = Vec::new();
    for (name, value) in named {
        let column = table.column(name);
        let column = column
            .ok_or_else(|| Refusal::new("unknown_column", format!("{} has no column {name}", table.name)))?;
        let kind = table.columns[column].kind;
        let cell = Cell::read(kind, value).ok_or_else(|| {
            let message = format!("{}.{name} is {}, and {value} is not", table.name, kind.name());
            Refusal::new("type_mismatch", message)
        })?;
        if cell.is_null() && !table.columns[column].nullable {
            return Err(null_in(table, column));
        }
        cells.push((column, cell));
    }
    Ok(cells)
}

fn null_in(table: &Table, column: usize) -> Refusal {
    let message = format!("{}.{} cannot be null", table.name, table.columns[column].name);
    Refusal::new("type_mismatch", message)
}
