//! The layout of a query's result: the tables whose rows travel and the places where they stand. It is all a
//! client needs to build the nested result; it need not know the query.

use super::{ColumnType, Direction, Fingerprint, Nulls, Order};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// Named in the fingerprint; changes when the comparison rules do, so that no client continues rows under others.
const COMPARISON_RULES: &str = "postgresql-c.utf8-1";

/// A column that travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutColumn {
    /// Its name in the result.
    pub name: String,
    /// Its type, which gives its cells their form.
    #[serde(rename = "type")]
    pub ty: ColumnType,
}

/// A table whose rows travel, with the columns that do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLayout {
    /// The table's name.
    pub name: String,
    /// The columns of a row's cells, in order: the union of what the table's places need.
    pub columns: Vec<LayoutColumn>,
    /// Indices into `columns` of the key.
    pub key: Vec<usize>,
}

/// One term of a place's order; travels as `[column, "asc"|"desc", "nulls first"|"nulls last"]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderColumn {
    /// Index into the table's columns.
    pub column: usize,
    /// Direction and NULL placement.
    pub order: Order,
}

impl Serialize for OrderColumn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.column, self.order.direction, self.order.nulls).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OrderColumn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (column, direction, nulls) = <(usize, Direction, Nulls)>::deserialize(deserializer)?;
        Ok(Self { column, order: Order { direction, nulls } })
    }
}

/// One place of the result's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceLayout {
    /// Index of the parent place; `None` for the root, which is first.
    pub parent: Option<usize>,
    /// The name under which the place's rows stand in their parent; `None` for the root.
    #[serde(rename = "as")]
    pub name: Option<String>,
    /// Index into the layout's tables.
    pub table: usize,
    /// The columns the result shows here, in the select list's order.
    pub columns: Vec<usize>,
    /// Pairs of parent column and child column that must agree.
    pub on: Vec<(usize, usize)>,
    /// The order of rows here; total, since the key ends it.
    pub order: Vec<OrderColumn>,
    /// Whether the place shows one row or null rather than a list.
    pub one: bool,
    /// A place that shows a value: its row's one column, rather than the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<PlaceValue>,
}

/// How a place shows a value instead of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceValue {
    /// The value, in its JSON form, where the place has no row.
    pub or: Json,
}

/// Tables and places of a query's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The tables whose rows travel.
    pub tables: Vec<TableLayout>,
    /// The places in preorder, the root first.
    pub places: Vec<PlaceLayout>,
}

impl Layout {
    /// The fingerprint of the layout under the present comparison rules, the same on every server and after every
    /// restart. A query's own conditions are mixed in by `salt`, so that a resume cannot cross from one query to
    /// another of the same form.
    #[must_use]
    pub fn fingerprint(&self, salt: &[u8]) -> Fingerprint {
        let mut text = serde_json::to_vec(self).expect("a layout has no failing serializer");
        text.extend(COMPARISON_RULES.as_bytes());
        text.extend(salt);
        Fingerprint(xxhash_rust::xxh3::xxh3_64(&text))
    }
}
