//! The operators of a plan with what they hold.

use super::{
    Step, Units,
    bag::Bag,
    isolate::Failure,
    join,
    recursive::Loop,
    state::State,
    unit::{Unit, UnitHandle},
};
use crate::{
    expr::EvalError,
    pipeline::{OperatorProfile, StepFault},
    plan::{Node, Operator, Source, unit::units},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_wire::model::Row;

/// See the module's description.
pub(super) struct Operators {
    nodes: Arc<[Node]>,
    /// Per operator; nothing for those that do not run here.
    states: Vec<State>,
    profiles: Vec<OperatorProfile>,
    /// Per operator, the unit that it is shared as.
    shared: Vec<Option<UnitHandle>>,
    /// Per operator, whether it runs here: it is not shared, nor only needed for what is.
    runs: Vec<bool>,
    /// Per operator, whether it is a join that a grouping reads, and nothing else.
    grouped: Vec<bool>,
}

impl Operators {
    /// Operators that hold nothing and share nothing.
    pub(super) fn new(nodes: &Arc<[Node]>) -> Self {
        Self {
            nodes: Arc::clone(nodes),
            states: nodes.iter().map(|node| State::of(&node.operator)).collect(),
            profiles: vec![OperatorProfile::default(); nodes.len()],
            shared: nodes.iter().map(|_| None).collect(),
            runs: vec![true; nodes.len()],
            grouped: grouped(nodes),
        }
    }

    /// Has those run as units that other queries may have too, of which there is one for all. What they hold, when they
    /// are hydrated, becomes the unit's, or goes where the unit holds the same already. `is_unit` says that these are a
    /// unit themselves.
    pub(super) fn share(&mut self, registry: &Units, is_hydrated: bool, is_unit: bool) {
        let last = self.nodes.len() - 1;
        // Units inside others come first.
        for found in units(&self.nodes).into_iter().filter(|unit| !is_unit || unit.root != last) {
            let handle = registry.get_or_make(&found.key, || Unit::new(&found.nodes));
            let mut unit = handle.lock();
            if !unit.is_hydrated {
                if is_hydrated {
                    for (at, &own) in found.origin.iter().enumerate() {
                        unit.operators.states[at] = std::mem::take(&mut self.states[own]);
                    }
                    unit.is_hydrated = true;
                }
                unit.operators.share(registry, is_hydrated, true);
            }
            drop(unit);
            self.shared[found.root] = Some(handle);
        }
        let mut is_needed = vec![false; self.nodes.len()];
        is_needed[last] = true;
        for at in (0..=last).rev() {
            self.runs[at] = is_needed[at] && self.shared[at].is_none();
            if self.runs[at] {
                self.nodes[at].operator.inputs().for_each(|input| is_needed[input] = true);
            } else {
                self.states[at] = State::default();
            }
            if !is_needed[at] {
                // Only what is built on it here needs it, and knows it.
                self.shared[at] = None;
            }
        }
    }

    /// How many keys each holds.
    pub(super) fn held(&self) -> impl Iterator<Item = usize> {
        self.states.iter().zip(&self.shared).map(|(state, shared)| match shared {
            Some(unit) => unit.lock().operators.held().sum(),
            None => state.keys(),
        })
    }

    /// What they hold and did.
    pub(super) fn profiles(&self) -> Vec<OperatorProfile> {
        let profiles = self.profiles.iter().zip(self.held());
        profiles.map(|(profile, keys)| OperatorProfile { keys, ..profile.clone() }).collect()
    }

    /// Takes over what others hold that depends on the slots.
    pub(super) fn absorb(&mut self, other: Self) {
        let nodes = &self.nodes;
        let depends = |source: &Source| matches!(source, Source::Node(node) if nodes[*node].depends);
        for ((own, other), node) in self.states.iter_mut().zip(other.states).zip(nodes.iter()) {
            if node.depends {
                own.absorb(other, |input| match &node.operator {
                    Operator::Join(join) => depends(&join.inputs[input].source),
                    Operator::Mark(mark) => {
                        depends(if input == 0 { &mark.left.source } else { &mark.right.source })
                    }
                    _ => true,
                });
            }
        }
    }

    /// Keeps only some rows of what depends on the slots.
    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        for (state, node) in self.states.iter_mut().zip(self.nodes.iter()) {
            if node.depends {
                state.retain(keep);
            }
        }
    }

    /// The rows that the last one has passed on.
    ///
    /// # Errors
    /// When evaluating them fails.
    pub(super) fn rows(&self) -> Result<Bag, EvalError> {
        match (self.states.last(), self.nodes.last()) {
            (Some(state), Some(node)) => state.rows(&node.operator),
            _ => Ok(Bag::new()),
        }
    }

    /// Works a step through them; what the last one changes.
    pub(super) fn step(&mut self, step: &Step<'_>) -> Result<Bag, Failure> {
        let is_advance = !step.is_first && step.parameters.is_empty();
        let budget = step.after.budget;
        let mut started = Instant::now();
        let mut changes = vec![Bag::new(); self.nodes.len()];
        let nodes = Arc::clone(&self.nodes);
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_looped) {
            let done = match (&self.shared[at], &node.operator) {
                (Some(unit), _) => {
                    changes[at] = Unit::step(unit, step)?;
                    continue;
                }
                _ if !self.runs[at] => continue,
                (None, Operator::Recursive(recursive)) => {
                    let State::Recursive(mut found) = std::mem::take(&mut self.states[at]) else {
                        unreachable!("a state is made for its operator");
                    };
                    let done = Loop { states: &mut self.states, nodes: &nodes, recursive, step }
                        .advance(&mut found, &mut changes);
                    self.states[at] = State::Recursive(found);
                    done
                }
                (None, Operator::Aggregate { input, .. }) if self.is_streamed(*input) => {
                    let done = self.group_streamed(at, *input, step, &changes);
                    if let Ok((_, rows)) = done
                        && is_advance
                    {
                        self.profiles[*input].note(rows, Duration::ZERO);
                    }
                    done.map(|(changes, _)| changes)
                }
                (None, Operator::Join(_)) if self.is_streamed(at) => continue,
                (None, operator) => self.states[at].advance(operator, step, &changes, node.depends),
            };
            changes[at] = done.map_err(|error| Failure {
                is_of_all: !node.depends || error.is_of_step(),
                fault: StepFault::of(error, budget),
            })?;
            if is_advance {
                let now = Instant::now();
                self.profiles[at].note(changes[at].len(), now - started);
                started = now;
            }
        }
        Ok(changes.pop().unwrap_or_default())
    }

    /// Whether an operator is a join whose rows only a grouping reads, which then takes them one by one, without their
    /// being made: a hydration may have millions of them. The time is all the grouping's.
    fn is_streamed(&self, at: usize) -> bool {
        self.runs[at] && self.grouped[at]
    }

    /// What a grouping changes that takes the rows of a join as they are found, and how many these are.
    fn group_streamed(
        &mut self,
        at: usize,
        input: usize,
        step: &Step<'_>,
        changes: &[Bag],
    ) -> Result<(Bag, usize), EvalError> {
        let (before, own) = self.states.split_at_mut(at);
        let (Operator::Join(join), State::Join(arrangements)) =
            (&self.nodes[input].operator, &mut before[input])
        else {
            unreachable!("what is streamed is a join");
        };
        let (Operator::Aggregate { keys, aggregates, .. }, State::Aggregate(groups)) =
            (&self.nodes[at].operator, &mut own[0])
        else {
            unreachable!("what takes a stream is a grouping");
        };
        let mut grouping = groups.grouping(*keys, aggregates, *keys == 0 && step.is_first);
        join::advance(arrangements, join, step, changes, self.nodes[input].depends, &mut grouping)?;
        let taken = grouping.taken;
        Ok((grouping.end()?, taken))
    }
}

/// Per operator, whether it is a join that a grouping reads, and nothing else.
fn grouped(nodes: &[Node]) -> Vec<bool> {
    let mut readers = vec![0; nodes.len()];
    nodes.iter().flat_map(|node| node.operator.inputs()).for_each(|input| readers[input] += 1);
    let mut grouped = vec![false; nodes.len()];
    for node in nodes {
        if let Operator::Aggregate { input, .. } = node.operator {
            let is_join = matches!(nodes[input].operator, Operator::Join(_)) && !nodes[input].is_looped;
            grouped[input] = is_join && readers[input] == 1 && !node.is_looped;
        }
    }
    grouped
}
