//! The standing check: every maintained result against the query run from scratch; and the replica's status.

use super::{CheckReport, Difference, Inner, Status, WorkerStatus, fresh::standing_rows};
use crate::{
    drain::{Control, Inspected, StandingRow},
    query::{Resolved, Shape},
    store::{KeyBytes, key::row_key},
};
use crossbeam_channel::bounded;
use serde_json::Value as Json;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tidegate_wire::model::{PlaceMask, Row, Value};

/// Longest wait for the drain's answer.
const INSPECT_WAIT: Duration = Duration::from_secs(30);

impl Inner {
    pub(super) fn check(&self) -> CheckReport {
        let live: HashMap<_, (Arc<Shape>, Arc<[Value]>)> = {
            let registry = self.registry();
            let families = registry.families.values();
            let bindings =
                families.flat_map(|family| family.bindings.values().map(move |binding| (family, binding)));
            bindings
                .map(|(family, found)| {
                    ((family.query, found.binding), (Arc::clone(&family.shape), Arc::clone(&found.values)))
                })
                .collect()
        };
        let (reply, answer) = bounded(1);
        let asked = self.drain.control(Control::Inspect { reply });
        let inspected = match asked.ok().and_then(|()| answer.recv_timeout(INSPECT_WAIT).ok()) {
            Some(inspected) => inspected,
            None => {
                let detail = format!("the drain did not answer within {} s", INSPECT_WAIT.as_secs());
                let difference = Difference { query: String::new(), args: Json::Null, detail };
                return CheckReport { checked: 0, differences: vec![difference] };
            }
        };
        let mut report = CheckReport::default();
        for result in inspected {
            // A binding made after the list was taken is the next check's.
            let Some((shape, values)) = live.get(&(result.query, result.binding)) else { continue };
            report.checked += 1;
            if let Some(detail) = self.difference(shape, values, &result) {
                report.differences.push(Difference {
                    query: describe(shape),
                    args: values.iter().map(Value::to_json).collect(),
                    detail,
                });
            }
        }
        report
    }

    fn difference(&self, shape: &Arc<Shape>, values: &Arc<[Value]>, result: &Inspected) -> Option<String> {
        let Some(snapshot) = self.store.snapshot_at(result.cv) else {
            return Some(format!("the snapshot at cv {} is no longer kept; check again", result.cv));
        };
        let resolved = Resolved { shape: Arc::clone(shape), values: values.to_vec() };
        let fresh = match standing_rows(&resolved, &snapshot, self.options.deadline) {
            Ok(fresh) => fresh,
            Err(error) => return Some(format!("the query run from scratch fails: {error}")),
        };
        let (mut maintained, fresh) = (by_key(shape, &result.rows), by_key(shape, &fresh));
        let mut details = Vec::new();
        for (key, (places, row)) in fresh {
            let columns = &shape.output.tables[key.0].columns;
            let table = &shape.output.layout.tables[key.0].name;
            match maintained.remove(&key) {
                None => details.push(format!("{table} {row:?} is missing")),
                Some((own, _)) if own != places => {
                    details
                        .push(format!("{table} {row:?} stands at places {:#b}, not {:#b}", own.0, places.0));
                }
                Some((_, own)) if !own.same_cells(row, columns) => {
                    details.push(format!("{table} {row:?} is held as {own:?}"));
                }
                Some(_) => {}
            }
        }
        for ((table, _), (_, row)) in maintained {
            details.push(format!(
                "{} {row:?} is held but not in the result",
                shape.output.layout.tables[table].name
            ));
        }
        (!details.is_empty()).then(|| {
            let shown = details.len().min(5);
            format!("at cv {}: {} rows differ: {}", result.cv, details.len(), details[..shown].join("; "))
        })
    }

    pub(super) fn status(&self) -> Status {
        let snapshot = self.store.snapshot();
        let registry = self.registry();
        Status {
            cv: snapshot.cv(),
            workers: self
                .workers
                .iter()
                .map(|worker| WorkerStatus {
                    worker: worker.id.0,
                    cv: worker.cv(),
                    queue: worker.queue_length(),
                    families: worker.families(),
                })
                .collect(),
            drain_queue: self.drain.queue_length(),
            families: registry.families.len(),
            bindings: registry.families.values().map(|family| family.bindings.len()).sum(),
            subscriptions: registry.subscriptions(),
            table_rows: snapshot
                .tables()
                .map(|(_, table)| (table.schema().name.clone(), table.rows().len() as u64))
                .collect(),
            store_bytes: snapshot.row_bytes(),
            log_bytes: self.store.log_bytes(),
        }
    }
}

fn by_key<'r>(shape: &Shape, rows: &'r [StandingRow]) -> HashMap<(usize, KeyBytes), (PlaceMask, &'r Row)> {
    let key = |row: &StandingRow| (row.table, row_key(&row.row, &shape.output.tables[row.table].key));
    rows.iter().map(|row| (key(row), (row.places, &row.row))).collect()
}

/// The shape's tree of tables, for people.
fn describe(shape: &Shape) -> String {
    let layout = &shape.output.layout;
    let names: Vec<String> = layout
        .places
        .iter()
        .map(|place| {
            let table = &layout.tables[place.table].name;
            place.name.as_ref().map_or_else(|| table.clone(), |name| format!("{name}: {table}"))
        })
        .collect();
    names.join(", ")
}
