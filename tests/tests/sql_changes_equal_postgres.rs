//! Statements that write and change tables equal PostgreSQL's: random scripts from a seed run on both; each statement
//! fails on both or on neither, answers the same, and leaves the same tables with the same rows. Beside it a live query
//! over each table equals the query run from scratch. In the end the log is replayed, whole and cut off at random places:
//! each time it leads to what there was at the commit version that it ends with.
//!
//! Seen to fail: with NULLs and checks looked at after conflicts, seeds 25 and 72; with an update on conflict that looks
//! whether the row is its own only after its condition, seed 55; with a constraint kept beside a primary key on the same
//! columns, seed 3.
//!
//! `TIDEGATE_SEEDS` says how many seeds run, `TIDEGATE_SEED` runs one and prints it.

use crate::support::{seeds::seeds, server::PATIENCE};
use postgres::SimpleQueryMessage;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value as Json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    time::Instant,
};
use tidegate_replica::handle::{NamedQuery, QuerySource, Replica, ReplicaOptions};
use tidegate_tests::{
    changes::{Changes, ColumnView, TableView},
    postgres::Cluster,
};
use tidegate_wire::model::{ColumnType, Cv};
use tokio::runtime::Runtime;

/// Texts per seed.
const TEXTS: usize = 60;

/// One statement's answer: sorted rows, and how many were written.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    rows: Vec<Vec<Option<String>>>,
    affected: u64,
}

fn ours(replica: &Replica, text: &str) -> Result<Vec<Answer>, String> {
    let answer = replica.sql(text, &Map::new(), &Map::new(), 100_000).map_err(|error| error.to_string())?;
    Ok(answer
        .results
        .into_iter()
        .map(|result| {
            let rows = result.rows.map_or_else(Vec::new, |table| table.rows);
            let mut rows: Vec<Vec<Option<String>>> =
                rows.iter().map(|row| row.iter().map(cell).collect()).collect();
            rows.sort();
            let affected = result.affected.unwrap_or(rows.len() as u64);
            Answer { rows, affected }
        })
        .collect())
}

fn cell(json: &Json) -> Option<String> {
    match json {
        Json::Null => None,
        Json::Bool(truth) => Some(if *truth { "t" } else { "f" }.to_owned()),
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn theirs(client: &mut postgres::Client, text: &str) -> Result<Vec<Answer>, String> {
    let messages = match client.simple_query(text) {
        Ok(messages) => messages,
        Err(error) => {
            client.batch_execute("rollback").expect("an idle session");
            return Err(error
                .as_db_error()
                .map_or_else(|| error.to_string(), |error| error.message().to_owned()));
        }
    };
    let (mut answers, mut rows) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|cell| row.get(cell).map(str::to_owned)).collect());
            }
            SimpleQueryMessage::CommandComplete(affected) => {
                let mut rows: Vec<Vec<Option<String>>> = std::mem::take(&mut rows);
                rows.sort();
                answers.push(Answer { rows, affected });
            }
            _ => {}
        }
    }
    Ok(answers)
}

fn views(replica: &Replica) -> Vec<TableView> {
    let snapshot = replica.snapshot();
    let tables = snapshot.tables().filter(|(_, table)| table.schema().name != "tidegate_client_mutations");
    tables
        .map(|(_, table)| {
            let schema = table.schema();
            let rules = &schema.rules;
            let mut ruled: BTreeSet<&str> = schema.key_names().collect();
            ruled.extend(rules.unique.iter().flat_map(|rule| &rule.columns).map(String::as_str));
            ruled.extend(rules.foreign_keys.iter().flat_map(|rule| &rule.columns).map(String::as_str));
            let columns = schema.shown().iter().map(|column| ColumnView {
                name: column.name.clone(),
                ty: match column.ty {
                    ColumnType::Int8 => "bigint",
                    ColumnType::Bool => "boolean",
                    ColumnType::Numeric => "numeric",
                    _ => "text",
                }
                .to_owned(),
                is_ruled: ruled.contains(column.name.as_str()),
            });
            let key_name = (!rules.row_id).then(|| schema.key_constraint().into_owned());
            let uniques = rules.unique.iter().filter(|rule| !rule.index).map(|rule| rule.name.clone());
            let checks = rules.checks.iter().map(|rule| rule.name.clone());
            let foreign = rules.foreign_keys.iter().map(|rule| rule.name.clone());
            let indexes = rules.indexes.iter().map(|index| index.name.clone());
            let unique_indexes = rules.unique.iter().filter(|rule| rule.index).map(|rule| rule.name.clone());
            TableView {
                name: schema.name.clone(),
                columns: columns.collect(),
                key: if rules.row_id { Vec::new() } else { schema.key_names().map(str::to_owned).collect() },
                constraints: key_name.into_iter().chain(uniques).chain(checks).chain(foreign).collect(),
                indexes: indexes.chain(unique_indexes).collect(),
            }
        })
        .collect()
}

/// The rows of each table, and the names of its constraints.
type State = BTreeMap<String, (Vec<String>, Vec<Vec<Option<String>>>)>;

fn our_state(replica: &Replica) -> State {
    let views = views(replica).into_iter();
    views
        .map(|mut view| {
            let rows = ours(replica, &format!("select * from {}", view.name)).expect("a table can be read");
            view.constraints.sort();
            (view.name, (view.constraints, rows[0].rows.clone()))
        })
        .collect()
}

fn their_state(client: &mut postgres::Client) -> State {
    let names =
        theirs(client, "select tablename from pg_tables where schemaname = current_schema()").expect("names");
    names[0]
        .rows
        .iter()
        .map(|row| {
            let name = row[0].clone().expect("a name");
            let constraints =
                format!("select conname from pg_constraint where conrelid = '{name}'::regclass");
            let constraints = theirs(client, &constraints).expect("constraints");
            let mut constraints: Vec<String> =
                constraints[0].rows.iter().filter_map(|row| row[0].clone()).collect();
            constraints.sort();
            let rows = theirs(client, &format!("select * from {name}")).expect("a table can be read");
            (name, (constraints, rows[0].rows.clone()))
        })
        .collect()
}

/// A live query over each table, kept by name.
fn follow(runtime: &Runtime, replica: &Replica, followed: &mut BTreeMap<String, Vec<String>>) {
    for view in views(replica) {
        let columns: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
        if followed.get(&view.name) != Some(&columns) {
            let query = NamedQuery {
                name: view.name.clone(),
                source: QuerySource::Sql(format!("select *, count(*) over () as n from {}", view.name)),
                args: BTreeMap::new(),
                pin: true,
                idle_ttl_ms: None,
            };
            // Two columns of one name, or a table that changes at this moment, are the next round's.
            if runtime.block_on(replica.put_query(query)).is_ok() {
                followed.insert(view.name, columns);
            }
        }
    }
}

/// Schemas and rows of all tables.
fn contents(replica: &Replica) -> Vec<String> {
    let snapshot = replica.snapshot();
    let tables = snapshot.tables().map(|(id, table)| {
        let rows: Vec<_> = table.rows().iter().map(|(_, row)| row).collect();
        format!("{id:?} {:?} {} {rows:?}", table.schema(), table.last_row_id())
    });
    tables.collect()
}

fn options(dir: &Path, snapshots_kept_max: usize) -> ReplicaOptions {
    let data_dir = Some(dir.to_owned());
    ReplicaOptions { data_dir, fsync: false, workers: 1, snapshots_kept_max, ..ReplicaOptions::default() }
}

/// Opens what a replica has left, whole and cut off.
fn replay(dir: &Path, known: &HashMap<Cv, Vec<String>>, last: Cv, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let log = dir.join("log");
    let files = std::fs::read_dir(&log).expect("a log").map(|entry| entry.expect("an entry").path());
    let file =
        files.filter(|path| path.extension().is_some_and(|ext| ext == "log")).max().expect("a segment");
    let bytes = std::fs::read(&file).expect("the segment");
    std::fs::remove_file(dir.join("queries.json")).ok();
    for cut in 0..6 {
        // Of some snapshots that are kept, the changes are replayed as such; the others are replayed in place.
        let kept = if cut % 2 == 0 { 1 } else { 1_024 };
        let length = if cut < 2 { bytes.len() } else { rng.random_range(bytes.len() / 2..bytes.len()) };
        std::fs::write(&file, &bytes[..length]).expect("the segment is cut");
        let replica = Replica::start(options(dir, kept), Box::new(()), |_, _| ()).expect("it replays");
        assert!(cut >= 2 || replica.cv() == last, "the whole log leads to {last}, seed {seed}");
        assert_eq!(
            Some(&contents(&replica)),
            known.get(&replica.cv()),
            "replayed to {}, seed {seed}",
            replica.cv()
        );
        replica.shutdown();
    }
}

fn run(runtime: &Runtime, client: &mut postgres::Client, seed: u64, verbose: bool) {
    client
        .batch_execute(&format!(
            "drop schema if exists s cascade; create schema s; set search_path = s; /* {seed} */"
        ))
        .expect("a schema");
    let dir = tempfile::tempdir().expect("a folder");
    let replica = Replica::start(options(dir.path(), 1_024), Box::new(()), |_, _| ()).expect("it starts");
    let mut known = HashMap::from([(replica.cv(), contents(&replica))]);
    let mut changes = Changes::new(seed);
    let mut followed = BTreeMap::new();
    let mut log = Vec::new();
    let again = format!("TIDEGATE_SEED={seed} cargo test -p tidegate-tests sql_changes_equal_postgres");
    for _ in 0..TEXTS {
        let text = changes.next(&views(&replica));
        let (own, other) = (ours(&replica, &text), theirs(client, &text));
        log.push(text.clone());
        if verbose {
            println!("{text}\n  {own:?}\n  {other:?}");
        }
        let told = || format!("{}\nours: {own:?}\ntheirs: {other:?}\n{again}", log.join(";\n"));
        match (&own, &other) {
            (Ok(own), Ok(other)) => assert_eq!(own, other, "the answers differ: {}", told()),
            (Err(_), Err(_)) => {}
            _ => panic!("one fails, the other does not: {}", told()),
        }
        assert_eq!(our_state(&replica), their_state(client), "the tables differ: {}", told());
        let started = Instant::now();
        while replica.status().workers.iter().any(|worker| worker.cv < replica.cv()) {
            assert!(started.elapsed() < PATIENCE, "the worker does not get on: {again}");
            std::thread::yield_now();
        }
        let report = replica.check();
        assert_eq!(report.differences, Vec::new(), "a live query differs: {}", told());
        follow(runtime, &replica, &mut followed);
        known.insert(replica.cv(), contents(&replica));
    }
    let last = replica.cv();
    replica.shutdown();
    drop(replica);
    replay(dir.path(), &known, last, seed);
}

#[test]
fn statements_that_write_equal_postgres() {
    let cluster = Cluster::start();
    let mut client = cluster.connect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let seeds = seeds(40);
    let verbose = seeds.end - seeds.start == 1;
    for seed in seeds {
        run(&runtime, &mut client, seed, verbose);
    }
}
