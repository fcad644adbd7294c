//! Window functions.

use super::{
    ast::{Expr, Grade, Kind, Node},
    expression::determined,
    generator::{Generator, Scope},
};
use rand::Rng as _;

const ORDERS: &[&str] = &["{}", "{} desc", "{} nulls first", "{} desc nulls last"];
/// Frames that count rows: they need an order that tells rows apart.
const ROWS: &[&str] = &[
    " rows between 1 preceding and current row",
    " rows between unbounded preceding and current row",
    " rows between 1 preceding and 1 following",
    " rows between current row and unbounded following",
    " rows between 2 preceding and 1 preceding",
    " rows unbounded preceding",
];
/// Frames that take equal rows together.
const PEERS: &[&str] = &[
    "",
    "",
    " range between unbounded preceding and current row",
    " range between current row and unbounded following",
    " range between unbounded preceding and unbounded following",
    " groups between 1 preceding and current row",
    " groups between 1 preceding and 1 following",
];

/// Frames that reach as far as values go: they need an order by one expression, of which offsets can be taken.
const REACHES: &[&str] = &[
    " range between {o} preceding and {o} following",
    " range between {o} preceding and current row",
    " range between current row and {o} following",
    " range between unbounded preceding and {o} following",
    " range between {o} following and unbounded following",
    " range {o} preceding",
];

/// An offset from values of a kind, where a frame can have one.
fn offset(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Int | Kind::Big => "2",
        Kind::Num => "1.5",
        Kind::Float => "0.75",
        Kind::Date | Kind::Time => "'1 month 1 day'",
        _ => return None,
    })
}

impl Generator<'_> {
    /// A window function over the rows of a scope; none when it has nothing to order by.
    pub(super) fn window(&mut self, scope: &Scope) -> Option<Expr> {
        let leaves: Vec<Expr> = scope.leaves.iter().filter(|leaf| leaf.reads()).cloned().collect();
        if leaves.is_empty() {
            return None;
        }
        let mut over = Vec::new();
        let mut over_args = Vec::new();
        let partitions = self.rng.random_range(0..=2);
        let mut partition = Vec::new();
        for _ in 0..partitions {
            partition.push(determined(self.pick(&leaves)));
        }
        if !partition.is_empty() {
            over.push(format!("partition by {}", vec!["{}"; partition.len()].join(", ")));
            over_args.extend(partition);
        }
        let identity = scope.identity.clone().filter(|_| self.rng.random_bool(0.6));
        let mut order = Vec::new();
        for _ in 0..self.rng.random_range(if identity.is_some() { 0 } else { 1 }..=1) {
            order.push((determined(self.pick(&leaves)), self.pick(ORDERS)));
        }
        let told_apart = identity.is_some();
        let reach = match order.as_slice() {
            [(expr, _)] if !told_apart => offset(expr.kind).filter(|_| self.chance(0.5)),
            _ => None,
        };
        for column in identity.into_iter().flatten() {
            order.push((column, self.pick(ORDERS)));
        }
        if !order.is_empty() {
            let terms: Vec<&str> = order.iter().map(|(_, term)| *term).collect();
            over.push(format!("order by {}", terms.join(", ")));
            over_args.extend(order.into_iter().map(|(expr, _)| expr));
        }
        let frame = if told_apart && self.chance(0.5) { self.pick(ROWS) } else { self.pick(PEERS) };
        let frame = match reach {
            Some(offset) => self.pick(REACHES).replace("{o}", offset),
            None => frame.to_owned(),
        };
        let ordered = over.last().is_some_and(|part| part.starts_with("order"));
        let frame = if frame.contains("groups") && !ordered { String::new() } else { frame };
        let (kind, grade, function, mut args, framed) = self.window_function(&leaves, told_apart);
        let frame = if framed { frame } else { String::new() };
        args.extend(over_args);
        let node = Node::Call(format!("{function} over ({}{frame})", over.join(" ")), args, None);
        Some(Expr { kind, grade, node })
    }

    /// A function, and whether it has a frame.
    fn window_function(
        &mut self,
        leaves: &[Expr],
        told_apart: bool,
    ) -> (Kind, Grade, String, Vec<Expr>, bool) {
        let choice = self.rng.random_range(0..if told_apart { 11 } else { 6 });
        let value = |generator: &mut Self| {
            let kind = generator.kind_of(leaves);
            generator.simple(kind, leaves)
        };
        match choice {
            0 => {
                let function = self.pick(&["rank()", "dense_rank()"]);
                (Kind::Int, Grade::Fixed, function.to_owned(), Vec::new(), false)
            }
            1 => {
                let function = self.pick(&["percent_rank()", "cume_dist()"]);
                (Kind::Float, Grade::Computed, function.to_owned(), Vec::new(), false)
            }
            6 => {
                let function = self.pick(&["row_number()", "row_number()", "ntile(2)", "ntile(3)"]);
                (Kind::Int, Grade::Fixed, function.to_owned(), Vec::new(), false)
            }
            7 | 8 => {
                let function = self.pick(&["lag", "lead"]);
                let value = value(self);
                let (kind, mut grade) = (value.kind, value.grade);
                let (more, mut args) = (self.rng.random_range(0..3), vec![value]);
                let template = match more {
                    0 => format!("{function}({{}})"),
                    1 => format!("{function}({{}}, 2)"),
                    _ => {
                        args.push(self.literal(kind));
                        if kind == Kind::Num {
                            grade = Grade::Computed;
                        }
                        format!("{function}({{}}, 1, {{}})")
                    }
                };
                (kind, grade, template, args, false)
            }
            9 | 10 => {
                let function = self.pick(&["first_value({})", "last_value({})", "nth_value({}, 2)"]);
                let value = value(self);
                (value.kind, value.grade, function.to_owned(), vec![value], true)
            }
            _ => loop {
                let (kind, grade, template, args) = self.aggregate_parts(leaves);
                // PostgreSQL has neither of these over windows.
                if !template.contains("distinct") && !template.contains("order by") {
                    return (kind, grade, template, args, true);
                }
            },
        }
    }
}
