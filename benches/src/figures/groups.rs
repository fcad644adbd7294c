//! What it costs to advance a grouping of a million rows by a commit of one row.

use crate::{
    engine::Engine,
    report::Report,
    sample::{Sample, show},
    view::View,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use tidegate_tests::row_changes::RowChange;
use tidegate_wire::model::{Row, Value};

const ROWS: i64 = 1_000_000;
const PROJECTS: i64 = 1_000;
const WARM_UP: usize = 500;
const COMMITS: usize = 10_000;
const SQL: &str = "select project, count(*) as n, sum(x) as total from item group by project";

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let tables = json!([{"name": "item", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int8"}, {"name": "project", "type": "int8"}, {"name": "x", "type": "int8"},
        {"name": "title", "type": "text"}]}]);
    let mut engine = Engine::new(serde_json::from_value(tables)?);
    let mut random = StdRng::seed_from_u64(1);
    let mut row = |id: i64| {
        Row::from_values(&[
            Value::Int8(id),
            Value::Int8(random.random_range(0..PROJECTS)),
            Value::Int8(random.random_range(0..1_000_000)),
            Value::Text(format!("item {id} has a title of some length").into()),
        ])
    };
    let mut rows: Vec<Row> = (0..ROWS).map(&mut row).collect();
    let fill: Vec<RowChange> = rows.iter().map(|row| RowChange::insert(0, row.clone())).collect();
    engine.apply(&fill);
    let mut hydrated = Sample::default();
    let mut view = hydrated.time(|| View::open(&mut engine, SQL))?;
    let (mut sample, mut store) = (Sample::default(), Sample::default());
    for number in 0..WARM_UP + COMMITS {
        // A third each: a row comes, one changes, one goes.
        let at = (number * 7_919) % rows.len();
        let change = match number % 3 {
            0 => {
                rows.push(row(ROWS + number as i64));
                RowChange::insert(0, rows[rows.len() - 1].clone())
            }
            1 => {
                let id = tidegate_tests::row_changes::integer(&rows[at], 0);
                let old = std::mem::replace(&mut rows[at], row(id));
                RowChange::update(0, old, rows[at].clone())
            }
            _ => RowChange::delete(0, rows.swap_remove(at)),
        };
        let mut unmeasured = Sample::default();
        let is_warm = number >= WARM_UP;
        let delta = if is_warm { &mut store } else { &mut unmeasured }.time(|| engine.apply(&[change]));
        if is_warm { &mut sample } else { &mut unmeasured }.time(|| view.advance(&delta))?;
    }
    view.check(&engine)?;
    let median = sample.median();
    Ok(Report::new(
        format!("{} (mean {}, p99 {})", show(median), show(sample.mean()), show(sample.quantile(0.99))),
        sample.mean() <= 5e-6,
    )
    .value("mean_us", sample.mean() * 1e6)
    .value("median_us", median * 1e6)
    .note(format!(
        "hydrated in {}; the store's part, not in it: {}",
        show(hydrated.median()),
        show(store.median())
    )))
}
