//! Expressions inside expressions.

use super::{
    outcome::{check, is_beyond_calendar, is_wider},
    values::*,
};
use crate::support::expression::{Node, Outcome};
use rand::{Rng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

/// Expressions inside expressions, with types that mostly fit.
struct Nesting<'a> {
    rng: &'a mut ChaCha8Rng,
}

impl Nesting<'_> {
    fn leaf(&mut self, ty: &'static str) -> Node {
        match self.rng.random_range(0..8) {
            0 if ty == "int4" || ty == "numeric" => {
                let numbers =
                    if ty == "int4" { ["1", "2", "0", "100"] } else { ["1.5", "0.10", "2.00", "1e2"] };
                Node::Number((*numbers.choose(self.rng).expect("a number")).to_owned())
            }
            1 => Node::Literal(None),
            _ => values(ty).choose(self.rng).expect("a value").clone(),
        }
    }

    fn ty(&mut self) -> &'static str {
        ["bool", "int4", "int8", "numeric", "float8", "text", "date", "timestamptz", "interval"]
            .choose(self.rng)
            .expect("a type")
    }

    fn node(&mut self, ty: &'static str, depth: usize) -> Node {
        if depth == 0 {
            return self.leaf(ty);
        }
        match self.rng.random_range(0..10) {
            0 => self.leaf(ty),
            1 => {
                let branches = (0..self.rng.random_range(1..3))
                    .map(|_| (self.node("bool", depth - 1), self.node(ty, depth - 1)))
                    .collect();
                let otherwise = (self.rng.random_range(0..3) > 0).then(|| Box::new(self.node(ty, depth - 1)));
                Node::Case(None, branches, otherwise)
            }
            2 => {
                let of = self.ty();
                let branches = (0..self.rng.random_range(1..3))
                    .map(|_| (self.node(of, depth - 1), self.node(ty, depth - 1)))
                    .collect();
                Node::Case(Some(Box::new(self.node(of, depth - 1))), branches, None)
            }
            3 => {
                let name = if ty == "interval" {
                    "coalesce"
                } else {
                    *["coalesce", "greatest", "least"].choose(self.rng).expect("a name")
                };
                let count = self.rng.random_range(1..4);
                Node::Call(name, (0..count).map(|_| self.node(ty, depth - 1)).collect())
            }
            4 => Node::Call("nullif", vec![self.node(ty, depth - 1), self.node(ty, depth - 1)]),
            5 if ty != "interval" => Node::Cast(Box::new(self.node("text", depth - 1)), ty),
            _ => self.of_type(ty, depth),
        }
    }

    fn of_type(&mut self, ty: &'static str, depth: usize) -> Node {
        let number = |nesting: &mut Self, ty| {
            let op = *["+", "-", "*", "/"].choose(nesting.rng).expect("an operator");
            Node::Binary(op, Box::new(nesting.node(ty, depth - 1)), Box::new(nesting.node(ty, depth - 1)))
        };
        match ty {
            "bool" => {
                let of = self.ty();
                let (left, right) = (self.node(of, depth - 1), self.node(of, depth - 1));
                match self.rng.random_range(0..6) {
                    0 => {
                        let op = *["and", "or"].choose(self.rng).expect("an operator");
                        binary(op, &self.node("bool", depth - 1), &self.node("bool", depth - 1))
                    }
                    1 => Node::Unary("not", Box::new(self.node("bool", depth - 1))),
                    2 => Node::Unary("is null", Box::new(left)),
                    3 => Node::In(Box::new(left), vec![right, self.node(of, depth - 1)]),
                    _ => {
                        let op = *["=", "<", ">=", "is distinct from"].choose(self.rng).expect("an operator");
                        binary(op, &left, &right)
                    }
                }
            }
            "text" => match self.rng.random_range(0..4) {
                0 => binary("||", &self.node("text", depth - 1), &self.node("text", depth - 1)),
                1 => Node::Call("upper", vec![self.node("text", depth - 1)]),
                2 => {
                    let of = self.ty();
                    Node::Cast(Box::new(self.node(of, depth - 1)), "text")
                }
                _ => Node::Call("substr", vec![self.node("text", depth - 1), self.node("int4", depth - 1)]),
            },
            "int4" if self.rng.random_range(0..2) == 0 => {
                Node::Call("length", vec![self.node("text", depth - 1)])
            }
            "int4" | "int8" | "numeric" | "float8" => number(self, ty),
            "date" => binary("+", &self.node("date", depth - 1), &self.node("int4", depth - 1)),
            "timestamptz" => {
                binary("+", &self.node("timestamptz", depth - 1), &self.node("interval", depth - 1))
            }
            _ => binary("*", &self.node("interval", depth - 1), &self.node("float8", depth - 1)),
        }
    }
}

#[test]
fn nested_expressions() {
    let mut rng = rng();
    let mut cases = Vec::new();
    for _ in 0..6_000 {
        let mut nesting = Nesting { rng: &mut rng };
        let ty = nesting.ty();
        let depth = nesting.rng.random_range(1..4);
        cases.push(nesting.node(ty, depth));
    }
    check(cases, |_, wanted, found| {
        let is_outside = matches!(found, Outcome::Error(error) if error.contains("is not in the years"));
        is_wider(wanted) || is_beyond_calendar(wanted, found) || is_outside
    });
}
