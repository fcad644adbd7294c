//! From a commit line's bytes straight to a draft, without building maps in between.
//!
//! Takes only lines that are right and in the usual form: each operation names its table first, no name occurs
//! twice. For any other line it gives up, and the careful way decides whether it is wrong and says how; so every rule
//! here may only be stricter than the careful way's.

use super::{
    CommitLimits, Draft, DraftOp, KeyValues,
    resolve::{check_key, check_row, encode_key},
};
use crate::store::{KeyBytes, Snapshot, key::row_key, system_tables};
use serde::{
    Deserialize as _,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value as Json;
use std::{cell::RefCell, fmt};
use tidegate_wire::model::{ColumnType, Row, TableSchema, Value, ValueRef, time};

/// The draft, or `None` when the careful way must look at the line.
pub(super) fn parse(line: &[u8], snapshot: &Snapshot, limits: &CommitLimits) -> Option<Draft> {
    let context = Context { snapshot, limits, cells: RefCell::default() };
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let draft = CommitSeed(&context).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(draft)
}

struct Context<'a> {
    snapshot: &'a Snapshot,
    limits: &'a CommitLimits,
    /// The cells of the row being read; `None` where the line has not named the column. Reused from row to row.
    cells: RefCell<Vec<Option<Value>>>,
}

/// Never shown: the careful way reports.
fn give_up<E: Error>() -> E {
    E::custom("")
}

macro_rules! expecting {
    ($what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($what)
        }
    };
}

struct CommitSeed<'a>(&'a Context<'a>);

impl<'de> DeserializeSeed<'de> for CommitSeed<'_> {
    type Value = Draft;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Draft, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CommitSeed<'_> {
    type Value = Draft;

    expecting!("a commit");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Draft, A::Error> {
        let (mut at, mut ops) = (None, None);
        while let Some(name) = map.next_key::<&str>()? {
            match name {
                "at" if at.is_none() => at = Some(map.next_value::<Option<i64>>()?),
                "ops" if ops.is_none() => ops = Some(map.next_value_seed(OpsSeed(self.0))?),
                _ => return Err(give_up()),
            }
        }
        Ok(Draft { at: at.flatten(), ops: ops.ok_or_else(give_up)? })
    }
}

struct OpsSeed<'a>(&'a Context<'a>);

impl<'de> DeserializeSeed<'de> for OpsSeed<'_> {
    type Value = Vec<DraftOp>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<DraftOp>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OpsSeed<'_> {
    type Value = Vec<DraftOp>;

    expecting!("operations");

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<DraftOp>, A::Error> {
        let mut ops = Vec::new();
        while let Some(op) = seq.next_element_seed(OpSeed(self.0))? {
            if ops.len() == self.0.limits.ops_max {
                return Err(give_up());
            }
            ops.push(op);
        }
        Ok(ops)
    }
}

struct OpSeed<'a>(&'a Context<'a>);

impl<'de> DeserializeSeed<'de> for OpSeed<'_> {
    type Value = DraftOp;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DraftOp, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OpSeed<'_> {
    type Value = DraftOp;

    expecting!("an operation");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DraftOp, A::Error> {
        let context = self.0;
        let (kind, name) = map.next_entry::<&str, &str>()?.ok_or_else(give_up)?;
        let table = context.snapshot.table_id(name).ok_or_else(give_up)?;
        let schema = context.snapshot.table(table).ok_or_else(give_up)?.schema();
        if table == system_tables::CLIENT_MUTATIONS || table.is_view() || schema.rules.row_id {
            return Err(give_up());
        }
        let op = match kind {
            "insert" => {
                expect_name(&mut map, "row")?;
                let (key, row) = map.next_value_seed(RowSeed { context, schema })?;
                DraftOp::Insert { table, key, row }
            }
            "update" => {
                expect_name(&mut map, "key")?;
                let (key, key_values) = map.next_value_seed(KeySeed { context, schema })?;
                expect_name(&mut map, "set")?;
                let set = map.next_value_seed(SetSeed { schema })?;
                DraftOp::Update { table, key, key_values, set }
            }
            "delete" => {
                expect_name(&mut map, "key")?;
                let (key, key_values) = map.next_value_seed(KeySeed { context, schema })?;
                DraftOp::Delete { table, key, key_values }
            }
            _ => return Err(give_up()),
        };
        if map.next_key::<IgnoredAny>()?.is_some() { Err(give_up()) } else { Ok(op) }
    }
}

fn expect_name<'de, A: MapAccess<'de>>(map: &mut A, expected: &str) -> Result<(), A::Error> {
    if map.next_key::<&str>()? == Some(expected) { Ok(()) } else { Err(give_up()) }
}

/// The column of a name, tried first at `hint`: rows mostly come in the table's order.
fn column(schema: &TableSchema, name: &str, hint: usize) -> Option<usize> {
    if schema.columns.get(hint).is_some_and(|column| column.name == name) {
        return Some(hint);
    }
    schema.column(name)
}

struct RowSeed<'a> {
    context: &'a Context<'a>,
    schema: &'a TableSchema,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = (KeyBytes, Row);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = (KeyBytes, Row);

    expecting!("a row");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { context, schema } = self;
        let mut cells = context.cells.borrow_mut();
        cells.clear();
        cells.resize(schema.columns.len(), None);
        let mut next = 0;
        while let Some(name) = map.next_key::<&str>()? {
            let column = column(schema, name, next).ok_or_else(give_up)?;
            next = column + 1;
            let value = map.next_value_seed(CellSeed(schema.columns[column].ty))?;
            if schema.columns[column].precision.is_some() {
                return Err(give_up());
            }
            if cells[column].replace(value).is_some() {
                return Err(give_up());
            }
        }
        for (column, cell) in schema.columns.iter().zip(cells.iter_mut()) {
            if column.default.is_some() {
                cell.get_or_insert_with(|| column.default_value());
            }
        }
        let missing = |cell: &Option<Value>| cell.as_ref().is_none_or(Value::is_null);
        if schema.columns.iter().zip(&*cells).any(|(column, cell)| !column.nullable && missing(cell)) {
            return Err(give_up());
        }
        let row = Row::encode(cells.iter().map(|cell| cell.as_ref().map_or(ValueRef::Null, Value::as_ref)));
        let key = row_key(&row, &schema.primary_key);
        check_row(&row, context.limits).map_err(|_| give_up())?;
        check_key(&key, context.limits).map_err(|_| give_up())?;
        Ok((key, row))
    }
}

struct KeySeed<'a> {
    context: &'a Context<'a>,
    schema: &'a TableSchema,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = (KeyBytes, KeyValues);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = (KeyBytes, KeyValues);

    expecting!("a key");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { context, schema } = self;
        let columns = &schema.primary_key;
        // A NULL stands for a column not seen yet, since none of the key's may hold one.
        let mut values: KeyValues = columns.iter().map(|_| Value::Null).collect();
        let mut seen = 0;
        while let Some(name) = map.next_key::<&str>()? {
            let place = columns.iter().position(|&column| schema.columns[column].name == name);
            let place = place.filter(|&place| values[place].is_null()).ok_or_else(give_up)?;
            let value = map.next_value_seed(CellSeed(schema.columns[columns[place]].ty))?;
            if value.is_null() || schema.columns[columns[place]].precision.is_some() {
                return Err(give_up());
            }
            values[place] = value;
            seen += 1;
        }
        let key = encode_key(&values);
        if seen < columns.len() || check_key(&key, context.limits).is_err() {
            return Err(give_up());
        }
        Ok((key, values))
    }
}

struct SetSeed<'a> {
    schema: &'a TableSchema,
}

impl<'de> DeserializeSeed<'de> for SetSeed<'_> {
    type Value = Vec<(usize, Value)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SetSeed<'_> {
    type Value = Vec<(usize, Value)>;

    expecting!("columns to set");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let schema = self.schema;
        let mut set: Vec<(usize, Value)> = Vec::with_capacity(4);
        let mut next = 0;
        while let Some(name) = map.next_key::<&str>()? {
            let column = column(schema, name, next).ok_or_else(give_up)?;
            next = column + 1;
            let value = map.next_value_seed(CellSeed(schema.columns[column].ty))?;
            if schema.columns[column].precision.is_some()
                || schema.primary_key.contains(&column)
                || (value.is_null() && !schema.columns[column].nullable)
            {
                return Err(give_up());
            }
            set.push((column, value));
        }
        set.sort_unstable_by_key(|(column, _)| *column);
        if set.windows(2).any(|pair| pair[0].0 == pair[1].0) { Err(give_up()) } else { Ok(set) }
    }
}

/// A cell of a type.
struct CellSeed(ColumnType);

impl<'de> DeserializeSeed<'de> for CellSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            ColumnType::Numeric | ColumnType::Json => from_json(self.0, &Json::deserialize(deserializer)?),
            _ => deserializer.deserialize_any(self),
        }
    }
}

fn from_json<E: Error>(ty: ColumnType, json: &Json) -> Result<Value, E> {
    Value::from_json(ty, json).map_err(|_| give_up())
}

impl Visitor<'_> for CellSeed {
    type Value = Value;

    expecting!("a cell");

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        from_json(self.0, &Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        if self.0 == ColumnType::Int8 { Ok(Value::Int8(value)) } else { from_json(self.0, &value.into()) }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => from_json(self.0, &value.into()),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        from_json(self.0, &value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        match self.0 {
            ColumnType::Text if !value.contains('\0') => Ok(Value::Text(value.into())),
            ColumnType::Timestamptz => {
                time::parse_timestamptz(value).map(Value::Timestamptz).ok_or_else(give_up)
            }
            ColumnType::Date => time::parse_date(value).map(Value::Date).ok_or_else(give_up),
            ty => from_json(ty, &Json::from(value)),
        }
    }
}
