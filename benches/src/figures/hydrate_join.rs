//! How long it takes to hydrate a join of four tables with an aggregate over a million rows, against PostgreSQL's time for
//! the query.

use crate::{
    database::Database,
    engine::Engine,
    report::Report,
    sample::{Sample, show},
    view::View,
};
use serde_json::json;
use tidegate_tests::{row_changes::RowChange, sql::Statement};
use tidegate_wire::model::{Row, TableSchema, Value};

const SALES: i64 = 1_000_000;
const CUSTOMERS: i64 = 50_000;
const PRODUCTS: i64 = 5_000;
const SHOPS: i64 = 200;
const RUNS: usize = 5;
const TARGET: f64 = 2.0;
const SQL: &str = "\
select c.segment, p.category, s.country, count(*) as n, sum(t.amount * p.weight) as total
from sale t join customer c on c.id = t.customer join product p on p.id = t.product join shop s on s.id = t.shop
where s.is_open group by c.segment, p.category, s.country order by c.segment, p.category, s.country";

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let table = |name: &str, columns: &[(&str, &str)]| {
        let columns: Vec<_> = columns.iter().map(|(name, ty)| json!({"name": name, "type": ty})).collect();
        json!({"name": name, "primary_key": ["id"], "columns": columns})
    };
    let tables = json!({"tables": [
        table("sale", &[("id", "int8"), ("customer", "int8"), ("product", "int8"), ("shop", "int8"), ("amount", "int8")]),
        table("customer", &[("id", "int8"), ("name", "text"), ("segment", "text")]),
        table("product", &[("id", "int8"), ("name", "text"), ("category", "text"), ("weight", "int8")]),
        table("shop", &[("id", "int8"), ("country", "text"), ("is_open", "bool")]),
    ]});
    let schemas: Vec<TableSchema> = serde_json::from_value(tables["tables"].clone())?;
    let int = Value::Int8;
    let text = |text: String| Value::Text(text.into());
    // Multiplying by a prime scatters references.
    let of = |id: i64, prime: i64, count: i64| int(id * prime % count);
    let sales = (0..SALES).map(|id| {
        let (customer, product, shop) =
            (of(id, 514_229, CUSTOMERS), of(id, 28_657, PRODUCTS), of(id, 1_597, SHOPS));
        Row::from_values(&[int(id), customer, product, shop, int(id % 1_000)])
    });
    let customers = (0..CUSTOMERS).map(|id| {
        Row::from_values(&[int(id), text(format!("customer {id}")), text(format!("segment {}", id % 7))])
    });
    let products = (0..PRODUCTS).map(|id| {
        let (name, category) = (text(format!("product {id}")), text(format!("category {}", id % 20)));
        Row::from_values(&[int(id), name, category, int(id % 9 + 1)])
    });
    let shops = (0..SHOPS).map(|id| {
        Row::from_values(&[int(id), text(format!("country {}", id % 10)), Value::Bool(id % 20 != 0)])
    });
    let rows: [Vec<Row>; 4] = [sales.collect(), customers.collect(), products.collect(), shops.collect()];

    let mut engine = Engine::new(schemas.clone());
    let mut database = Database::start(&tables)?;
    for (table, rows) in rows.iter().enumerate() {
        let changes: Vec<RowChange> = rows.iter().map(|row| RowChange::insert(table, row.clone())).collect();
        engine.apply(&changes);
        database.fill(&schemas[table].name, rows.iter());
    }
    database.run("vacuum analyze")?;
    // The first run builds indexes.
    let mut shown = View::open(&mut engine, SQL)?.shown()?;
    let mut sample = Sample::default();
    for _ in 0..RUNS {
        let mut view = sample.time(|| View::open(&mut engine, SQL))?;
        shown = view.shown()?;
    }
    let theirs = database.time(&Statement::plain(SQL, &[0, 1, 2]), &shown, RUNS)?;
    database.run("set max_parallel_workers_per_gather = 0")?;
    let alone = database.time(&Statement::plain(SQL, &[0, 1, 2]), &shown, RUNS)?;
    let own = sample.median();
    let ratio = own / theirs;
    Ok(Report::new(format!("{}, {ratio:.2} × PostgreSQL's {}", show(own), show(theirs)), ratio <= TARGET)
        .value("hydrate_ms", own * 1e3)
        .value("postgres_ms", theirs * 1e3)
        .value("ratio", ratio)
        .note(format!("PostgreSQL by one process takes {}: {:.2} ×", show(alone), own / alone)))
}
