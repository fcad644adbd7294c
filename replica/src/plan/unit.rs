//! Parts of a plan that other plans may have too, whatever is built on them.

use super::{Input, Node, Operator, Source};
use std::sync::Arc;

/// An operator that depends on no slot and holds the rows that it passes on, with all that it needs.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its number in the plan.
    pub root: usize,
    /// The operators that it needs and itself, in order, numbered anew.
    pub nodes: Arc<[Node]>,
    /// Their numbers in the plan.
    pub origin: Vec<usize>,
    /// What it computes; equal for units that can be shared.
    pub key: Arc<str>,
}

/// The units among operators, those inside others first.
#[must_use]
pub fn units(nodes: &[Node]) -> Vec<Unit> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.operator.inputs().for_each(|input| readers[input].push(at));
    }
    let mut is_unit = vec![false; nodes.len()];
    let roots = (0..nodes.len()).filter(|&at| holds_its_rows(&nodes[at]));
    let units = roots.filter_map(|root| {
        let unit = unit(nodes, &readers, &is_unit, root)?;
        is_unit[root] = true;
        Some(unit)
    });
    units.collect()
}

/// Whether an operator can be asked for the rows that it has passed on, and is the same for all bindings.
fn holds_its_rows(node: &Node) -> bool {
    let holds = match &node.operator {
        Operator::Aggregate { .. }
        | Operator::SetOperation { .. }
        | Operator::Top { .. }
        | Operator::Window { .. } => true,
        Operator::Recursive(recursive) => !recursive.all,
        _ => false,
    };
    holds && !node.depends && !node.is_looped
}

fn unit(nodes: &[Node], readers: &[Vec<usize>], is_unit: &[bool], root: usize) -> Option<Unit> {
    let mut is_in = vec![false; root + 1];
    is_in[root] = true;
    for at in (0..=root).rev() {
        if is_in[at] {
            nodes[at].operator.inputs().for_each(|input| is_in[input] = true);
        }
    }
    let origin: Vec<usize> = (0..=root).filter(|&at| is_in[at]).collect();
    // What runs inside runs for it alone, but for units in it, which others get at by themselves.
    let mut is_read_outside = vec![false; root + 1];
    for &at in origin.iter().rev().skip(1) {
        is_read_outside[at] = readers[at]
            .iter()
            .any(|&reader| reader > root || !is_in[reader] || (is_read_outside[reader] && !is_unit[reader]));
    }
    let is_own =
        |at: usize| !is_read_outside[at] || is_unit[at] || matches!(nodes[at].operator, Operator::Values(_));
    if !origin.iter().all(|&at| is_own(at)) {
        return None;
    }
    let now_at = |old: usize| origin.binary_search(&old).expect("inputs are among the operators");
    let nodes: Arc<[Node]> = origin
        .iter()
        .map(|&at| Node { operator: nodes[at].operator.renumbered(&now_at), ..nodes[at].clone() })
        .collect();
    let key = format!("{nodes:?}").into();
    Some(Unit { root, nodes, origin, key })
}

impl Operator {
    /// The same, reading operators under other numbers.
    fn renumbered(&self, now_at: &dyn Fn(usize) -> usize) -> Self {
        let again = |input: &mut Input| {
            if let Source::Node(node) = &mut input.source {
                *node = now_at(*node);
            }
        };
        let mut operator = self.clone();
        match &mut operator {
            Self::Parameters | Self::Working { .. } | Self::Values(_) => {}
            Self::Recursive(recursive) => {
                recursive.base = now_at(recursive.base);
                recursive.step = now_at(recursive.step);
                recursive.looped.iter_mut().for_each(|node| *node = now_at(*node));
            }
            Self::Join(join) => join.inputs.iter_mut().for_each(again),
            Self::Mark(mark) => [&mut mark.left, &mut mark.right].into_iter().for_each(again),
            Self::Single { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Top { input, .. }
            | Self::Window { input, .. } => *input = now_at(*input),
            Self::Concat(inputs) => inputs.iter_mut().for_each(|input| *input = now_at(*input)),
            Self::SetOperation { left, right, .. } => (*left, *right) = (now_at(*left), now_at(*right)),
        }
        operator
    }
}
