//! Making a failing workload small.

use super::{Step, Workload};
use crate::shrink::fewer;
use serde_json::Value;
use std::collections::BTreeSet;

impl Workload {
    /// Looks for a smaller workload on which `fails` still holds: fewer steps, initial commits and operations, simpler
    /// queries. `fails` is called a few hundred times on a small workload. Steps that lost what they refer to are
    /// dropped; a commit may come to be refused, which a runner handles as it does any refused commit.
    ///
    /// Returns the workload itself where nothing can go. `fails` has to hold for it, and to give the same answer each
    /// time.
    pub fn shrink(&self, mut fails: impl FnMut(&Workload) -> bool) -> Workload {
        let mut best = self.clone();
        loop {
            let before = best.clone();
            best.steps = fewer(&best.steps, |steps| fails(&Workload { steps: sound(steps), ..best.clone() }));
            best.steps = sound(&best.steps);
            best.initial = fewer(&best.initial, |initial| {
                fails(&Workload { initial: initial.to_vec(), ..best.clone() })
            });
            best.shrink_ops(&mut fails);
            best.shrink_queries(&mut fails);
            if best == before {
                return best;
            }
        }
    }

    fn shrink_ops(&mut self, fails: &mut impl FnMut(&Workload) -> bool) {
        for index in 0..self.initial.len() {
            let ops = self.initial[index]["ops"].as_array().cloned().unwrap_or_default();
            let kept = fewer(&ops, |ops| {
                let mut candidate = self.clone();
                candidate.initial[index]["ops"] = ops.to_vec().into();
                fails(&candidate)
            });
            self.initial[index]["ops"] = kept.into();
        }
        for index in 0..self.steps.len() {
            let Step::Commit(commit) = &self.steps[index] else { continue };
            let commit = commit.clone();
            let with = |ops: &[Value]| {
                let mut commit = commit.clone();
                commit["ops"] = ops.to_vec().into();
                Step::Commit(commit)
            };
            let ops = commit["ops"].as_array().cloned().unwrap_or_default();
            let kept = fewer(&ops, |ops| {
                let mut candidate = self.clone();
                candidate.steps[index] = with(ops);
                fails(&candidate)
            });
            self.steps[index] = with(&kept);
        }
    }

    fn shrink_queries(&mut self, fails: &mut impl FnMut(&Workload) -> bool) {
        for index in 0..self.steps.len() {
            while let Some(simpler) = self.with_simpler_query(index, fails) {
                *self = simpler;
            }
        }
    }

    /// The first workload with a simpler query at that step that still fails.
    fn with_simpler_query(
        &self,
        index: usize,
        fails: &mut impl FnMut(&Workload) -> bool,
    ) -> Option<Workload> {
        let Step::Subscribe { subscriber, sub, query, args } = &self.steps[index] else { return None };
        simpler_queries(query).into_iter().find_map(|query| {
            let mut args = args.clone();
            if let Value::Object(args) = &mut args {
                args.retain(|name, _| asks_for(&query, name));
            }
            let mut candidate = self.clone();
            candidate.steps[index] = Step::Subscribe { subscriber: *subscriber, sub: *sub, query, args };
            fails(&candidate).then_some(candidate)
        })
    }
}

/// Whether the query has that parameter.
fn asks_for(query: &Value, name: &str) -> bool {
    match query {
        Value::Object(fields) => {
            fields.get("param").is_some_and(|param| param == name)
                || fields.values().any(|inner| asks_for(inner, name))
        }
        Value::Array(items) => items.iter().any(|inner| asks_for(inner, name)),
        _ => false,
    }
}

/// The steps without those that no longer refer to a connection or subscription.
fn sound(steps: &[Step]) -> Vec<Step> {
    let mut connected = BTreeSet::new();
    let mut subscribed = BTreeSet::new();
    let stands = |step: &&Step| match step {
        Step::Commit(_) => true,
        Step::Connect { subscriber } => connected.insert(*subscriber),
        Step::Disconnect { subscriber } => {
            subscribed.retain(|(owner, _)| owner != subscriber);
            connected.remove(subscriber)
        }
        Step::Subscribe { subscriber, sub, .. } => {
            connected.contains(subscriber) && subscribed.insert((*subscriber, *sub))
        }
        Step::Unsubscribe { subscriber, sub } => subscribed.remove(&(*subscriber, *sub)),
    };
    steps.iter().filter(stands).cloned().collect()
}

/// Queries with one thing less: a clause gone, a relation gone, an operand in place of its operation.
fn simpler_queries(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(fields) => {
            for name in
                ["related", "where", "select", "start", "limit", "order_by", "one", "aggregate", "aggregates"]
            {
                // Without its `order_by` a `start` may have the wrong columns; then the query is invalid, and `fails`
                // says no.
                if fields.contains_key(name) {
                    let mut less = fields.clone();
                    less.remove(name);
                    found.push(Value::Object(less));
                }
            }
            if let (Some(Value::String(op)), Some(Value::Array(args))) =
                (fields.get("op"), fields.get("args"))
                && matches!(op.as_str(), "and" | "or" | "not")
            {
                found.extend(args.iter().cloned());
            }
            for (name, inner) in fields {
                for simpler in simpler_queries(inner) {
                    let mut changed = fields.clone();
                    changed[name] = simpler;
                    found.push(Value::Object(changed));
                }
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                // Relations may go one by one; the operands of an operation have their number.
                if items[index].get("as").is_some() {
                    let mut less = items.clone();
                    less.remove(index);
                    found.push(Value::Array(less));
                }
                for simpler in simpler_queries(&items[index]) {
                    let mut changed = items.clone();
                    changed[index] = simpler;
                    found.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    found
}
