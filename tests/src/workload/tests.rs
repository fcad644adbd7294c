//! The generator keeps its promises, by the oracle's account.

use super::{Size, Step, Workload};
use crate::oracle::Database;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn load(workload: &Workload) -> Database {
    let mut database = Database::from_stream_tables(&workload.tables).expect("sound tables");
    for commit in &workload.initial {
        database.apply(commit).expect("initial commits are not refused");
    }
    database
}

/// Counts a query's constructs.
fn constructs(value: &Value, within: &str, counts: &mut BTreeMap<String, usize>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let label = match (name.as_str(), inner) {
                    ("op", Value::String(op)) => format!("op {op}"),
                    ("limit", limit) => format!("limit {limit}"),
                    _ => name.clone(),
                };
                *counts.entry(label).or_default() += 1;
                if name == "exists" {
                    *counts.entry(format!("exists in {within}")).or_default() += 1;
                }
                let within = match (name.as_str(), fields.get("op")) {
                    ("args", Some(Value::String(op))) => op,
                    ("exists", _) => "exists",
                    ("where", _) => within,
                    _ => within,
                };
                constructs(inner, within, counts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| constructs(item, within, counts)),
        _ => {}
    }
}

#[test]
fn a_seed_makes_one_workload() {
    for seed in 0..5 {
        assert_eq!(Workload::generate(seed, Size::Small), Workload::generate(seed, Size::Small));
    }
    assert_ne!(Workload::generate(1, Size::Small), Workload::generate(2, Size::Small));
}

#[test]
fn queries_run_and_commits_are_refused_only_on_purpose() {
    let mut counts = BTreeMap::new();
    let (mut commits, mut refused, mut queries, mut with_rows) = (0, BTreeMap::<&str, usize>::new(), 0, 0);
    for seed in 0..300 {
        let size = if seed % 50 == 0 { Size::Medium } else { Size::Small };
        let workload = Workload::generate(seed, size);
        let mut database = load(&workload);
        let mut live = BTreeMap::new();
        let mut connected = BTreeSet::new();
        let run = |database: &Database, query: &Value, args: &Value| {
            database.run(query, args).unwrap_or_else(|error| panic!("seed {seed}: {error}: {query} {args}"))
        };
        for step in &workload.steps {
            match step {
                Step::Commit(commit) => {
                    commits += 1;
                    if let Err(refusal) = database.apply(commit) {
                        let last = commit["ops"].as_array().map_or(0, Vec::len) - 1;
                        assert_eq!(refusal.op, Some(last), "seed {seed}: {refusal}");
                        *refused.entry(refusal.code).or_default() += 1;
                    }
                }
                Step::Subscribe { subscriber, sub, query, args } => {
                    assert!(connected.contains(subscriber), "seed {seed}");
                    let rows = run(&database, query, args);
                    queries += 1;
                    with_rows += usize::from(rows.as_array().is_some_and(|rows| !rows.is_empty()));
                    constructs(query, "where", &mut counts);
                    let earlier = live.insert((*subscriber, *sub), (query, args));
                    assert!(earlier.is_none(), "seed {seed}: {subscriber} uses {sub} twice");
                }
                Step::Unsubscribe { subscriber, sub } => assert!(live.remove(&(*subscriber, *sub)).is_some()),
                Step::Connect { subscriber } => assert!(connected.insert(*subscriber)),
                Step::Disconnect { subscriber } => {
                    assert!(connected.remove(subscriber));
                    live.retain(|(owner, _), _| owner != subscriber);
                }
            }
        }
        // Later commits bring no fault either.
        for (query, args) in live.values() {
            run(&database, query, args);
        }
    }
    println!("{commits} commits, refused {refused:?}, {queries} queries, {with_rows} with rows, {counts:?}");
    assert_eq!(
        refused.keys().copied().collect::<Vec<_>>(),
        ["bad_message", "conflict", "type_mismatch", "unknown_column", "unknown_table"]
    );
    assert!(with_rows * 2 > queries, "most queries show something");
    let ops = "and or not = <> < <= > >= in like ilike between + - * / % lower upper length abs coalesce \
               count sum avg min max";
    let wanted = ops.split(' ').chain(["is null", "is distinct from"]).map(|op| format!("op {op}"));
    let clauses =
        "exists related where select order_by start after at one param table aggregate group_by aggregates";
    let wanted = wanted.chain(clauses.split(' ').map(str::to_owned));
    let wanted = wanted.chain(["limit 0", "limit 1", "limit 2", "limit 5"].map(str::to_owned));
    let wanted = wanted.chain(["not", "or", "and", "exists"].map(|within| format!("exists in {within}")));
    for construct in wanted {
        assert!(
            counts.get(&construct).is_some_and(|count| *count >= 10),
            "{construct} hardly occurs: {counts:?}"
        );
    }
}

#[test]
fn many_queries_share_a_shape() {
    /// The query without its constants.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, inner)| (name.clone(), shape(inner))).collect()
            }
            Value::Array(items) => items.iter().map(shape).collect(),
            Value::String(text) => Value::from(text.as_str()),
            _ => Value::Null,
        }
    }
    let workload = Workload::generate(7, Size::Medium);
    let queries = workload.steps.iter().filter_map(|step| match step {
        Step::Subscribe { query, .. } => Some(query),
        _ => None,
    });
    let queries: Vec<&Value> = queries.collect();
    let shapes: BTreeSet<String> = queries.iter().map(|query| shape(query).to_string()).collect();
    let different: BTreeSet<String> = queries.iter().map(|query| query.to_string()).collect();
    assert!(shapes.len() < queries.len(), "{} shapes of {} queries", shapes.len(), queries.len());
    assert!(different.len() > shapes.len(), "{} queries of {} shapes", different.len(), shapes.len());
}

#[test]
fn shrinking_keeps_the_failure_and_little_else() {
    let workload = Workload::generate(3, Size::Small);
    // The failure: a query with a limit is subscribed after a commit that deletes.
    let fails = |workload: &Workload| {
        let deletes =
            |step: &Step| matches!(step, Step::Commit(commit) if commit.to_string().contains("\"delete\""));
        let limits =
            |step: &Step| matches!(step, Step::Subscribe { query, .. } if query.get("limit").is_some());
        let first = workload.steps.iter().position(deletes);
        first.is_some_and(|first| workload.steps[first..].iter().any(limits))
    };
    assert!(fails(&workload), "choose another seed");
    let small = workload.shrink(fails);
    assert!(fails(&small));
    assert_eq!(small.steps.len(), 3, "{}", small.to_lines());
    assert!(small.initial.is_empty());
    assert_eq!(small.to_lines().lines().count(), 4);
}
