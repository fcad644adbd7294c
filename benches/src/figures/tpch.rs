//! What a commit of one order costs 22 live TPC-H views, against running the 22 queries on PostgreSQL.

use crate::{
    database::Database,
    engine::Engine,
    report::Report,
    sample::{Sample, show},
    view::View,
};
use anyhow::Context as _;
use tidegate_tests::{
    row_changes::RowChange,
    sql::Statement,
    tpch::{FOREIGN_KEYS, QUERIES, Tpch, tables},
};

const SCALE: f64 = 0.1;
const SEED: u64 = 2;
const WARM_UP: usize = 20;
/// Half bring an order, half take one away.
const COMMITS: usize = 200;
const POSTGRES_RUNS: usize = 3;
/// Running everything again may cost so many times as much, at least.
const TARGET: f64 = 100.0;

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let mut tpch = Tpch::generate(SCALE, SEED);
    let schemas = tpch.schemas().to_vec();
    let mut engine = Engine::new(schemas.clone());
    for table in 0..schemas.len() {
        let rows: Vec<RowChange> =
            tpch.rows(table).map(|row| RowChange::insert(table, row.clone())).collect();
        engine.apply(&rows);
    }
    let mut views = Vec::new();
    let mut hydrated = Vec::new();
    for query in QUERIES {
        let mut sample = Sample::default();
        let opened = sample.time(|| View::open(&mut engine, query.sql));
        views.push(opened.with_context(|| format!("query {}", query.number))?);
        hydrated.push(sample.median());
    }
    let (mut whole, mut store) = (Vec::new(), Sample::default());
    let mut each: Vec<Sample> = QUERIES.iter().map(|_| Sample::default()).collect();
    for number in 0..WARM_UP + COMMITS {
        let changes = if number % 2 == 0 { tpch.insert_order() } else { tpch.delete_order() };
        let (mut apply, mut advance) = (Sample::default(), Sample::default());
        let delta = apply.time(|| engine.apply(&changes));
        for (view, sample) in views.iter_mut().zip(&mut each) {
            let mut one = Sample::default();
            one.time(|| view.advance(&delta))?;
            advance.absorb(&one);
            if number >= WARM_UP {
                sample.absorb(&one);
            }
        }
        if number >= WARM_UP {
            whole.push(apply.sum() + advance.sum());
            store.absorb(&apply);
        }
    }

    let mut database = Database::start(&tables())?;
    for (table, schema) in schemas.iter().enumerate() {
        database.fill(&schema.name, tpch.rows(table));
    }
    for (table, columns) in FOREIGN_KEYS {
        database.run(&format!("create index on {table} ({columns})"))?;
    }
    database.run("vacuum analyze")?;
    let (mut again, mut notes) = (0.0, Vec::new());
    for (number, query) in QUERIES.iter().enumerate() {
        let statement = Statement::plain(query.sql, query.ordering);
        let seconds = database.time(&statement, &views[number].shown()?, POSTGRES_RUNS)?;
        again += seconds;
        notes.push(format!(
            "query {}: hydrated in {}, advance mean {} (most {}), PostgreSQL {}",
            query.number,
            show(hydrated[number]),
            show(each[number].mean()),
            show(each[number].quantile(1.0)),
            show(seconds)
        ));
    }
    let mean = whole.iter().sum::<f64>() / COMMITS as f64;
    let ratio = again / mean;
    let mut report = Report::new(
        format!(
            "{} (the store's part {}); 1/{ratio:.0} of PostgreSQL's {}",
            show(mean),
            show(store.mean()),
            show(again)
        ),
        ratio >= TARGET,
    )
    .value("commit_ms", mean * 1e3)
    .value("postgres_ms", again * 1e3)
    .value("ratio", ratio);
    report.notes = notes;
    Ok(report)
}
