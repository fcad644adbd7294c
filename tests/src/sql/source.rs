//! What stands in `from`.

use super::{
    ast::{Expr, Grade, Kind, Node, On, Source},
    expression::{KINDS, call, column},
    generator::{Ask, Generator, Scope, columns_of},
};
use rand::Rng as _;

impl Generator<'_> {
    /// One source or a join of several, with what can be read of it.
    pub(super) fn source(&mut self, depth: usize, outer: &[Expr]) -> (Source, Scope) {
        let joins = if self.layers.joins { self.rng.random_range(0..10) } else { 0 };
        let count = match joins {
            0..=4 => 1,
            5..=8 => 2,
            _ => 3,
        };
        let (mut source, mut scope) = self.single(depth, outer);
        let mut left = count - 1;
        while left > 0 {
            left -= 1;
            if self.layers.laterals && depth > 0 && self.chance(0.2) {
                (source, scope) = self.lateral(source, scope, depth);
                continue;
            }
            let (right, right_scope) = if left > 0 && self.chance(0.4) {
                left -= 1;
                let (a, a_scope) = self.single(depth, outer);
                let (b, b_scope) = self.single(depth, outer);
                self.join((a, a_scope), (b, b_scope), false)
            } else {
                self.single(depth, outer)
            };
            (source, scope) = self.join((source, scope), (right, right_scope), left == 0);
        }
        (source, scope)
    }

    fn single(&mut self, depth: usize, outer: &[Expr]) -> (Source, Scope) {
        if !self.ctes.is_empty() && self.chance(0.5) {
            let (name, outs) = self.pick(&self.ctes.clone());
            let alias = self.fresh("t");
            let scope = columns_of(&alias, &outs);
            return (Source::Named(name, alias), scope);
        }
        if self.layers.subqueries && depth > 0 && self.chance(0.15) {
            // A derived table that is not lateral reads nothing of its own query, but may of those around.
            let outer = if self.chance(0.2) { outer } else { &[] };
            let (query, outs) = self.query(Ask { depth: depth - 1, outer, ..Ask::default() });
            let alias = self.fresh("t");
            let scope = columns_of(&alias, &outs);
            return (Source::Derived(Box::new(query), alias, false), scope);
        }
        if self.layers.sets && self.chance(0.04) {
            let kinds: Vec<Kind> = (0..2).map(|_| self.pick(KINDS)).collect();
            let rows = self.constant_rows(&kinds);
            let alias = self.fresh("t");
            let names: Vec<String> = kinds.iter().map(|_| self.fresh("v")).collect();
            let leaves: Vec<Expr> = kinds
                .iter()
                .zip(&names)
                .map(|(kind, name)| column(*kind, Grade::Fixed, format!("{alias}.{name}")))
                .collect();
            let scope = Scope { identity: Some(leaves.clone()), unique: false, leaves };
            return (Source::Values(rows, alias, names), scope);
        }
        self.table()
    }

    /// A table under an alias.
    pub(super) fn table(&mut self) -> (Source, Scope) {
        let table = &self.tables[self.rng.random_range(0..self.tables.len())];
        let alias = self.fresh("t");
        let leaves: Vec<Expr> = table
            .columns
            .iter()
            .map(|it| column(it.domain.kind(), Grade::Fixed, format!("{alias}.{}", it.name)))
            .collect();
        let scope = Scope { identity: Some(leaves[..table.key].to_vec()), unique: true, leaves };
        (Source::Named(table.name.clone(), alias), scope)
    }

    /// Joins two; `last` when nothing is joined with them any more.
    fn join(&mut self, left: (Source, Scope), right: (Source, Scope), last: bool) -> (Source, Scope) {
        let ((left, left_scope), (right, right_scope)) = (left, right);
        let words =
            ["join", "join", "inner join", "left join", "left join", "right join", "full join", "cross join"];
        let mut word = self.pick(&words);
        if word == "cross join" && last && self.chance(0.5) {
            word = ",";
        }
        let mut scope = left_scope.clone();
        scope.leaves.extend(right_scope.leaves.iter().cloned());
        scope.unique &= right_scope.unique;
        scope.identity =
            left_scope.identity.clone().zip(right_scope.identity.clone()).map(|(a, b)| [a, b].concat());
        let on = if matches!(word, "cross join" | ",") {
            On::Nothing
        } else if let Some(using) = self.using(&left_scope, &right_scope, last) {
            scope.leaves.extend(using.iter().map(|(name, kind)| column(*kind, Grade::Fixed, name.clone())));
            On::Using(using.into_iter().map(|(name, _)| name).collect())
        } else {
            // The engine refuses subqueries in the condition of an outer join, and says so.
            let allowed = if word.ends_with("join") && !matches!(word, "join" | "inner join") {
                0
            } else {
                self.subqueries
            };
            let kept = std::mem::replace(&mut self.subqueries, allowed);
            let condition = self.join_condition(&left_scope, &right_scope, word == "full join");
            self.subqueries = if allowed == 0 { kept } else { self.subqueries };
            match condition {
                Some(condition) => On::Condition(condition),
                None => {
                    word = "cross join";
                    On::Nothing
                }
            }
        };
        (Source::Join(word, Box::new(left), Box::new(right), on), scope)
    }

    /// Columns that both sides have, each once.
    fn using(&mut self, left: &Scope, right: &Scope, last: bool) -> Option<Vec<(String, Kind)>> {
        if !last || !self.chance(0.3) {
            return None;
        }
        let mut common = Vec::new();
        for (name, kind) in names(left) {
            let once = |scope: &Scope| names(scope).filter(|(other, _)| *other == name).count() == 1;
            let same = names(right).any(|(other, other_kind)| other == name && other_kind == kind);
            if once(left) && once(right) && same {
                common.push((name.to_owned(), kind));
            }
        }
        if common.is_empty() {
            return None;
        }
        let first = self.pick(&common);
        common.retain(|it| *it == first || self.rng.random_bool(0.2));
        Some(common)
    }

    fn join_condition(&mut self, left: &Scope, right: &Scope, full: bool) -> Option<Expr> {
        // Values of different types are seldom equal.
        let mixed = !full && self.chance(0.1);
        let meets = |a: Kind, b: Kind| a != Kind::Bool && (a == b || mixed && a.compares_with(b));
        let mut pairs = Vec::new();
        for a in &left.leaves {
            for b in right.leaves.iter().filter(|b| meets(a.kind, b.kind)) {
                pairs.push((a.clone(), b.clone()));
                if (a.kind, b.kind) == (Kind::Int, Kind::Int) {
                    // Of these the most rows match.
                    pairs.extend(vec![(a.clone(), b.clone()); 5]);
                }
            }
        }
        if pairs.is_empty() {
            return None;
        }
        let (a, b) = self.pick(&pairs);
        let equal = call(Kind::Bool, "({} = {})", vec![a.clone(), b.clone()]);
        if full {
            // PostgreSQL takes nothing but equalities there.
            return Some(equal);
        }
        let both = [left.leaves.clone(), right.leaves.clone()].concat();
        Some(match self.rng.random_range(0..20) {
            0 => call(Kind::Bool, "({} < {})", vec![a, b]),
            1 => self.condition(1, &both),
            2 | 3 => {
                let more = self.condition(1, &both);
                call(Kind::Bool, "({} and {})", vec![equal, more])
            }
            6 => {
                let (c, d) = self.pick(&pairs);
                call(Kind::Bool, "({} = {} and {} = {})", vec![a, b, c, d])
            }
            8 => {
                let kind = a.kind;
                let side = self.simple(kind, &left.leaves);
                call(Kind::Bool, "({} = {})", vec![side, b])
            }
            9 | 10 => {
                let sides = vec![self.simple(a.kind, &left.leaves), self.simple(b.kind, &right.leaves)];
                call(Kind::Bool, "({} = {})", sides)
            }
            _ => equal,
        })
    }

    fn lateral(&mut self, source: Source, scope: Scope, depth: usize) -> (Source, Scope) {
        let outer: Vec<Expr> =
            scope.leaves.iter().filter(|leaf| matches!(leaf.node, Node::Column(_))).cloned().collect();
        let (query, outs) = self.query(Ask { depth: depth - 1, outer: &outer, ..Ask::default() });
        let alias = self.fresh("t");
        let own = columns_of(&alias, &outs);
        let (word, on) = match self.rng.random_range(0..3) {
            0 => ("cross join", On::Nothing),
            1 => {
                let truth =
                    Expr { kind: Kind::Bool, grade: Grade::Fixed, node: Node::Literal("true".to_owned()) };
                ("left join", On::Condition(truth))
            }
            _ => match self.join_condition(&scope, &own, true) {
                Some(condition) => ("join", On::Condition(condition)),
                None => ("cross join", On::Nothing),
            },
        };
        let identity = scope.identity.clone().zip(own.identity.clone()).map(|(a, b)| [a, b].concat());
        let leaves = [scope.leaves, own.leaves].concat();
        let right = Source::Derived(Box::new(query), alias, true);
        (Source::Join(word, Box::new(source), Box::new(right), on), Scope { leaves, identity, unique: false })
    }
}

/// The names of the columns with their kinds.
fn names(scope: &Scope) -> impl Iterator<Item = (&str, Kind)> {
    scope.leaves.iter().filter_map(|leaf| match &leaf.node {
        Node::Column(text) => Some((text.rsplit('.').next().unwrap_or(text), leaf.kind)),
        _ => None,
    })
}
