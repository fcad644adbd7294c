//! TPC-H: the eight tables from a seed, at any scale, with the specification's distributions as far as the queries look
//! at them; the refresh commits; the 22 queries.
//!
//! Rare texts are less rare than in the specification, and there are fewer colours, so that every query finds something
//! also at a hundredth of scale 1.

mod queries;
mod refresh;
mod rows;
mod words;

pub use queries::{QUERIES, Query};

use crate::row_changes::{RowChange, schemas};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tidegate_wire::model::{Row, TableSchema};

/// The tables' positions in [`tables`].
pub(crate) const REGION: usize = 0;
pub(crate) const NATION: usize = 1;
pub(crate) const SUPPLIER: usize = 2;
pub(crate) const PART: usize = 3;
pub(crate) const PARTSUPP: usize = 4;
pub(crate) const CUSTOMER: usize = 5;
pub(crate) const ORDERS: usize = 6;
pub(crate) const LINEITEM: usize = 7;

/// Columns that joins compare and no primary key begins with: what a database administrator would index.
pub const FOREIGN_KEYS: &[(&str, &str)] = &[
    ("nation", "n_regionkey"),
    ("supplier", "s_nationkey"),
    ("partsupp", "ps_suppkey"),
    ("customer", "c_nationkey"),
    ("orders", "o_custkey"),
    ("orders", "o_orderdate"),
    ("lineitem", "l_partkey, l_suppkey"),
    ("lineitem", "l_suppkey"),
    ("lineitem", "l_shipdate"),
];

/// The tables line `{"tables":[…]}`.
#[must_use]
pub fn tables() -> Json {
    let table = |name: &str, key: &[&str], columns: &[(&str, &str)]| {
        let columns: Vec<Json> = columns.iter().map(|(name, ty)| json!({"name": name, "type": ty})).collect();
        json!({"name": name, "primary_key": key, "columns": columns})
    };
    json!({"tables": [
        table("region", &["r_regionkey"],
            &[("r_regionkey", "int8"), ("r_name", "text"), ("r_comment", "text")]),
        table("nation", &["n_nationkey"],
            &[("n_nationkey", "int8"), ("n_name", "text"), ("n_regionkey", "int8"), ("n_comment", "text")]),
        table("supplier", &["s_suppkey"],
            &[("s_suppkey", "int8"), ("s_name", "text"), ("s_address", "text"), ("s_nationkey", "int8"),
              ("s_phone", "text"), ("s_acctbal", "numeric"), ("s_comment", "text")]),
        table("part", &["p_partkey"],
            &[("p_partkey", "int8"), ("p_name", "text"), ("p_mfgr", "text"), ("p_brand", "text"),
              ("p_type", "text"), ("p_size", "int8"), ("p_container", "text"), ("p_retailprice", "numeric"),
              ("p_comment", "text")]),
        table("partsupp", &["ps_partkey", "ps_suppkey"],
            &[("ps_partkey", "int8"), ("ps_suppkey", "int8"), ("ps_availqty", "int8"),
              ("ps_supplycost", "numeric"), ("ps_comment", "text")]),
        table("customer", &["c_custkey"],
            &[("c_custkey", "int8"), ("c_name", "text"), ("c_address", "text"), ("c_nationkey", "int8"),
              ("c_phone", "text"), ("c_acctbal", "numeric"), ("c_mktsegment", "text"), ("c_comment", "text")]),
        table("orders", &["o_orderkey"],
            &[("o_orderkey", "int8"), ("o_custkey", "int8"), ("o_orderstatus", "text"),
              ("o_totalprice", "numeric"), ("o_orderdate", "date"), ("o_orderpriority", "text"),
              ("o_clerk", "text"), ("o_shippriority", "int8"), ("o_comment", "text")]),
        table("lineitem", &["l_orderkey", "l_linenumber"],
            &[("l_orderkey", "int8"), ("l_partkey", "int8"), ("l_suppkey", "int8"), ("l_linenumber", "int8"),
              ("l_quantity", "numeric"), ("l_extendedprice", "numeric"), ("l_discount", "numeric"),
              ("l_tax", "numeric"), ("l_returnflag", "text"), ("l_linestatus", "text"), ("l_shipdate", "date"),
              ("l_commitdate", "date"), ("l_receiptdate", "date"), ("l_shipinstruct", "text"),
              ("l_shipmode", "text"), ("l_comment", "text")]),
    ]})
}

/// The tables' rows, and how they go on.
#[derive(Debug)]
pub struct Tpch {
    schemas: Vec<TableSchema>,
    random: ChaCha8Rng,
    scale: Scale,
    /// Of each table but orders and lineitem, its rows.
    rows: [Vec<Row>; CUSTOMER + 1],
    /// The orders by key, each with its lines.
    orders: BTreeMap<i64, (Row, Vec<Row>)>,
    next_order: i64,
}

/// How many rows there are that others refer to.
#[derive(Clone, Copy, Debug)]
struct Scale {
    suppliers: i64,
    parts: i64,
    customers: i64,
}

impl Tpch {
    /// The tables at a scale; at 1, lineitem has six million rows. The same seed gives the same rows on every machine.
    #[must_use]
    pub fn generate(scale: f64, seed: u64) -> Self {
        let rows = |at_one: f64| ((at_one * scale) as i64).max(10);
        let scale = Scale { suppliers: rows(10_000.0), parts: rows(200_000.0), customers: rows(150_000.0) };
        let mut tpch = Self {
            schemas: schemas(&tables()),
            random: ChaCha8Rng::seed_from_u64(seed),
            scale,
            rows: Default::default(),
            orders: BTreeMap::new(),
            next_order: 1,
        };
        tpch.fill();
        tpch
    }

    /// The tables' schemas, by position.
    #[must_use]
    pub fn schemas(&self) -> &[TableSchema] {
        &self.schemas
    }

    /// All rows of a table, in key order.
    pub fn rows(&self, table: usize) -> Box<dyn Iterator<Item = &Row> + '_> {
        match table {
            ORDERS => Box::new(self.orders.values().map(|(order, _)| order)),
            LINEITEM => Box::new(self.orders.values().flat_map(|(_, lines)| lines)),
            table => Box::new(self.rows[table].iter()),
        }
    }

    fn fill(&mut self) {
        let Scale { suppliers, parts, customers } = self.scale;
        self.rows[REGION] = rows::regions(&mut self.random);
        self.rows[NATION] = rows::nations(&mut self.random);
        self.rows[SUPPLIER] = (1..=suppliers).map(|key| rows::supplier(&mut self.random, key)).collect();
        self.rows[PART] = (1..=parts).map(|key| rows::part(&mut self.random, key)).collect();
        for part in 1..=parts {
            for number in 0..4 {
                let supplier = rows::supplier_of(part, number, suppliers);
                self.rows[PARTSUPP].push(rows::partsupp(&mut self.random, part, supplier));
            }
        }
        self.rows[PARTSUPP].dedup_by(|a, b| a.same_cells(b, &[0, 1]));
        self.rows[CUSTOMER] = (1..=customers).map(|key| rows::customer(&mut self.random, key)).collect();
        for _ in 0..10 * customers {
            self.order();
        }
    }

    /// Makes the next order with its lines, and gives its key.
    fn order(&mut self) -> i64 {
        let key = self.next_order;
        self.next_order += 1;
        let made =
            rows::order(&mut self.random, key, self.scale.customers, self.scale.suppliers, &self.rows[PART]);
        self.orders.insert(key, made);
        key
    }
}

/// The changes of an order and its lines.
fn of_order(
    order: Row,
    lines: Vec<Row>,
    change: fn(usize, Row) -> RowChange,
) -> impl Iterator<Item = RowChange> {
    std::iter::once(change(ORDERS, order)).chain(lines.into_iter().map(move |line| change(LINEITEM, line)))
}
