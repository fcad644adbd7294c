//! `advance_is_difference`: for each operator, advance = hydrate(after) − hydrate(before).
//!
//! Random queries over random data, bound and unbound between commits, some commits merged; after every step each
//! maintained result equals the oracle's, and so does a fresh hydration.

use crate::support::{engine::Engine, seeds::seeds};
use serde_json::Value as Json;
use std::{collections::HashMap, sync::Arc};
use tidegate_replica::{store::Delta, worker::BindingId};
use tidegate_tests::{
    oracle::{Database, compare_results},
    workload::{Size, Step, Workload},
};

/// One live subscription of the workload.
struct Live {
    query: Json,
    args: Json,
    binding: BindingId,
}

fn run(seed: u64, size: Size) {
    let workload = Workload::generate(seed, size);
    let mut oracle = Database::from_stream_tables(&workload.tables).expect("tables");
    let mut engine = Engine::new(&workload.tables);
    let mut live: HashMap<(usize, u64), Live> = HashMap::new();
    let mut waiting: Vec<Arc<Delta>> = Vec::new();
    let steps = workload.initial.iter().cloned().map(Step::Commit).chain(workload.steps.iter().cloned());
    for (number, step) in steps.enumerate() {
        match step {
            Step::Commit(commit) => {
                if oracle.apply(&commit).is_err() {
                    continue;
                }
                waiting.push(Arc::new(engine.apply(&commit)));
                // Every third commit waits and is merged with the next, as at a worker that lags.
                if number % 3 == 0 {
                    continue;
                }
            }
            Step::Subscribe { subscriber, sub, query, args } => {
                catch_up(&mut engine, &mut waiting);
                let expected = oracle.run(&query, &args);
                match (engine.resolve(&query, &args), expected) {
                    (Ok(resolved), Ok(_)) => {
                        let binding = engine.bind(&resolved);
                        live.insert((subscriber, sub), Live { query, args, binding });
                    }
                    (Err(_), Err(_)) => {}
                    (Err(error), Ok(_)) => panic!("seed {seed}: refused: {error}: {query}"),
                    (Ok(_), Err(error)) => panic!("seed {seed}: accepted, oracle says {error:?}: {query}"),
                }
            }
            Step::Unsubscribe { subscriber, sub } => {
                catch_up(&mut engine, &mut waiting);
                if let Some(gone) = live.remove(&(subscriber, sub)) {
                    engine.unbind(gone.binding);
                }
            }
            Step::Connect { .. } => {}
            Step::Disconnect { subscriber } => {
                catch_up(&mut engine, &mut waiting);
                live.retain(|(owner, _), gone| {
                    if *owner == subscriber {
                        engine.unbind(gone.binding);
                    }
                    *owner != subscriber
                });
            }
        }
        catch_up(&mut engine, &mut waiting);
        for Live { query, args, binding } in live.values() {
            let expected = oracle.run(query, args).expect("ran before");
            let resolved = engine.resolve(query, args).expect("resolved before");
            let fresh = engine.fresh(&resolved);
            if let Err(difference) = compare_results(&expected, &fresh) {
                panic!(
                    "seed {seed} step {number}: fresh: {difference}\nquery {query}\nargs {args}\nexpected {expected}\ngot {fresh}"
                );
            }
            if let Err(difference) = compare_results(&expected, &engine.result(*binding)) {
                panic!(
                    "seed {seed} step {number}: {difference}\nquery {query}\nargs {args}\nexpected {expected}\ngot {}",
                    engine.result(*binding)
                );
            }
        }
    }
    catch_up(&mut engine, &mut waiting);
    for gone in live.into_values() {
        engine.unbind(gone.binding);
    }
}

fn catch_up(engine: &mut Engine, waiting: &mut Vec<Arc<Delta>>) {
    if !waiting.is_empty() {
        let delta = Delta::merge(waiting);
        waiting.clear();
        engine.advance(&delta);
    }
}

#[test]
fn maintained_results_equal_the_oracles() {
    for seed in seeds(400) {
        run(seed, Size::Small);
    }
}

#[test]
fn maintained_results_equal_the_oracles_on_more_data() {
    for seed in seeds(10) {
        run(seed, Size::Medium);
    }
}
