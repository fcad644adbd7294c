//! Column positions in scalars, conditions and what holds them: which are read, and the same with others.

use super::{Aggregate, Bound, Column, Frame, Limit, WindowFunction, WindowKind, domain_column};
use crate::expr::{Condition, Scalar};
use tidegate_wire::model::Order;

/// Something with column positions in it.
pub(crate) trait Positions: Sized {
    /// Calls `f` with each position read, the domain's included.
    fn read(&self, f: &mut dyn FnMut(usize));
    /// The same with every column replaced.
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self;

    /// The positions read, the domain's included.
    fn positions(&self) -> Vec<usize> {
        let mut positions = Vec::new();
        self.read(&mut |position| positions.push(position));
        positions
    }

    /// Whether the domain is read.
    fn reads_domain(&self) -> bool {
        let mut reads = false;
        self.read(&mut |position| reads |= domain_column(position).is_some());
        reads
    }

    /// The same over a row that has the domain's columns from `from` on, and the input's from `by` on.
    fn behind_domain(&self, from: usize, by: usize) -> Self {
        let place = |position| domain_column(position).map_or(position + by, |column| from + column);
        self.map(&mut |position| Scalar::Column(place(position)))
    }

    /// The same, all positions moved.
    fn moved(&self, by: usize) -> Self {
        self.map(&mut |position| Scalar::Column(position + by))
    }
}

impl Positions for Scalar {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        let mut columns = Vec::new();
        self.columns(&mut columns);
        columns.into_iter().for_each(f);
    }
    fn map(&self, mut f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        self.map_columns(&mut f)
    }
}

impl Positions for Condition {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        let mut columns = Vec::new();
        self.columns(&mut columns);
        columns.into_iter().for_each(f);
    }
    fn map(&self, mut f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        self.map_columns(&mut f)
    }
}

impl Positions for Column {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        self.scalar.read(f);
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        Self { scalar: self.scalar.map(f), ty: self.ty }
    }
}

impl Positions for (Scalar, Order) {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        self.0.read(f);
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        (self.0.map(f), self.1)
    }
}

impl<T: Positions> Positions for Vec<T> {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        self.iter().for_each(|item| item.read(f));
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        self.iter().map(|item| item.map(f)).collect()
    }
}

impl<T: Positions> Positions for Option<T> {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        self.iter().for_each(|item| item.read(f));
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        self.as_ref().map(|item| item.map(f))
    }
}

impl Positions for Aggregate {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        self.arguments.read(f);
        self.filter.read(f);
        self.order.read(f);
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        Self {
            arguments: self.arguments.map(f),
            filter: Positions::map(&self.filter, f),
            order: self.order.map(f),
            ..self.clone()
        }
    }
}

impl Positions for WindowFunction {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        match &self.kind {
            WindowKind::RowNumber
            | WindowKind::Rank
            | WindowKind::DenseRank
            | WindowKind::PercentRank
            | WindowKind::CumeDist
            | WindowKind::Ntile(_) => {}
            WindowKind::Lag { value, .. } => value.read(f),
            WindowKind::FirstValue(value, frame)
            | WindowKind::LastValue(value, frame)
            | WindowKind::NthValue(value, _, frame) => {
                value.read(f);
                frame.read(f);
            }
            WindowKind::Aggregate(aggregate, frame) => {
                aggregate.read(f);
                frame.read(f);
            }
        }
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        let kind = match &self.kind {
            kind @ (WindowKind::RowNumber
            | WindowKind::Rank
            | WindowKind::DenseRank
            | WindowKind::PercentRank
            | WindowKind::CumeDist
            | WindowKind::Ntile(_)) => kind.clone(),
            WindowKind::Lag { value, offset, default } => {
                WindowKind::Lag { value: value.map(f), offset: *offset, default: default.clone() }
            }
            WindowKind::FirstValue(value, frame) => WindowKind::FirstValue(value.map(f), frame.map(f)),
            WindowKind::LastValue(value, frame) => WindowKind::LastValue(value.map(f), frame.map(f)),
            WindowKind::NthValue(value, number, frame) => {
                WindowKind::NthValue(value.map(f), *number, frame.map(f))
            }
            WindowKind::Aggregate(aggregate, frame) => WindowKind::Aggregate(aggregate.map(f), frame.map(f)),
        };
        Self { kind, ty: self.ty }
    }
}

impl Positions for Frame {
    fn read(&self, f: &mut dyn FnMut(usize)) {
        for bound in [&self.start, &self.end] {
            if let Bound::Limit(limit) = bound {
                limit.value.read(f);
            }
        }
    }
    fn map(&self, f: &mut dyn FnMut(usize) -> Scalar) -> Self {
        let mut bound = |bound: &Bound| match bound {
            Bound::Limit(limit) => {
                Bound::Limit(Box::new(Limit { value: limit.value.map(f), ..Limit::clone(limit) }))
            }
            other => other.clone(),
        };
        Self { unit: self.unit, start: bound(&self.start), end: bound(&self.end) }
    }
}

/// The operands of nested ANDs. What all alternatives of an OR demand counts among them, so that it can be a key.
pub(crate) fn conjuncts(condition: &Condition, out: &mut Vec<Condition>) {
    match condition {
        Condition::And(operands) => operands.iter().for_each(|operand| conjuncts(operand, out)),
        Condition::Constant(Some(true)) => {}
        Condition::Or(operands) => {
            let mut alternatives = alternatives(operands);
            let Some((first, others)) = alternatives.split_first() else {
                out.push(Condition::Constant(Some(false)));
                return;
            };
            let is_common = |operand: &&Condition| others.iter().all(|other| other.contains(operand));
            let common: Vec<Condition> = first.iter().filter(is_common).cloned().collect();
            if common.is_empty() {
                out.push(condition.clone());
                return;
            }
            for alternative in &mut alternatives {
                alternative.retain(|operand| !common.contains(operand));
            }
            out.extend(common);
            // An alternative that demands nothing else is enough.
            if !alternatives.iter().any(Vec::is_empty) {
                out.push(Condition::Or(alternatives.into_iter().map(all).collect()));
            }
        }
        other => out.push(other.clone()),
    }
}

/// What each of an OR's operands demands.
pub(crate) fn alternatives(operands: &[Condition]) -> Vec<Vec<Condition>> {
    let of = |operand| {
        let mut demands = Vec::new();
        conjuncts(operand, &mut demands);
        demands
    };
    operands.iter().map(of).collect()
}

/// The condition that all hold.
pub(crate) fn all(mut conditions: Vec<Condition>) -> Condition {
    match conditions.len() {
        0 => Condition::Constant(Some(true)),
        1 => conditions.remove(0),
        _ => Condition::And(conditions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_or_of_nothing_is_false() {
        let nothing = || Condition::Or(Vec::new());
        for condition in
            [nothing(), Condition::And(vec![nothing()]), Condition::Or(vec![nothing(), nothing()])]
        {
            let mut out = Vec::new();
            conjuncts(&condition, &mut out);
            assert_eq!(out, [Condition::Constant(Some(false))], "{condition:?}");
        }
    }
}
