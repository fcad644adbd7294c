//! Recursive common table expressions. Whatever they find is from columns of small domains, or cut off at a depth, so that
//! they end.

use super::{
    ast::{Body, Distinct, Expr, Grade, Group, Kind, Node, On, Query, Select, Source},
    expression::call,
    generator::{Ask, Generator, Out, Scope, columns_of},
};
use rand::Rng as _;

/// How deep a recursion goes that counts duplicates.
const DEPTH_MAX: i64 = 2;

impl Generator<'_> {
    /// A query that reads a recursive common table expression.
    pub(super) fn recursive(&mut self) -> Query {
        let (name, query, outs) = self.recursion();
        self.ctes.push((name.clone(), outs));
        let depth = usize::from(self.chance(0.3));
        let (body, _) = self.query(Ask { depth, top: true, ..Ask::default() });
        Query { with: vec![(name, query)], ..body }
    }

    /// Its name, its query and its columns.
    fn recursion(&mut self) -> (String, Query, Vec<Out>) {
        let name = self.fresh("w");
        let kinds = match self.rng.random_range(0..4) {
            0 => vec![Kind::Int, Kind::Text],
            1 => vec![Kind::Int, Kind::Int],
            _ => vec![Kind::Int],
        };
        let (source, scope) = self.table();
        let mut base = self.columns(source, &scope, &kinds);
        let all = self.chance(0.35);
        let depth = self.fresh("c");
        if all {
            base.items.push((whole(0), depth.clone()));
        }
        let outs: Vec<Out> = base
            .items
            .iter()
            .map(|(item, name)| Out { name: name.clone(), kind: item.kind, grade: Grade::Fixed })
            .collect();
        let alias = self.fresh("t");
        let mut scope = columns_of(&alias, &outs);
        let mut source = Source::Named(name.clone(), alias.clone());
        if all {
            // What follows may not read the depth.
            scope.leaves.pop();
        }
        // Where each way counts, what is found multiplies from step to step.
        for _ in 0..if all { 1 } else { self.rng.random_range(1..=2) } {
            let (right, right_scope) = self.table();
            let word = self.pick(&["join", "join", "join", "left join"]);
            let on = On::Condition(self.whole_numbers_agree(&scope, &right_scope));
            scope.leaves.extend(right_scope.leaves);
            source = Source::Join(word, Box::new(source), Box::new(right), on);
        }
        let mut step = self.columns(source, &scope, &kinds);
        if all {
            let column = super::expression::column(Kind::Int, Grade::Fixed, format!("{alias}.{depth}"));
            step.items.push((call(Kind::Int, "({} + {})", vec![column.clone(), whole(1)]), depth));
            let shallow = call(Kind::Bool, "({} < {})", vec![column, whole(DEPTH_MAX)]);
            step.filter = Some(match step.filter.take() {
                Some(filter) => call(Kind::Bool, "({} and {})", vec![shallow, filter]),
                None => shallow,
            });
        }
        let word = if all { "union all" } else { "union" };
        let (base, step) = (Body::Select(Box::new(base)), Body::Select(Box::new(step)));
        let body = Body::Set(word, Box::new(base), Box::new(step));
        let query =
            Query { with: Vec::new(), body, order: Vec::new(), total: false, limit: None, offset: None };
        (name, query, outs)
    }

    /// Columns of a source, of the types that PostgreSQL's columns have.
    fn columns(&mut self, from: Source, scope: &Scope, kinds: &[Kind]) -> Select {
        let filter = self.filter(scope, &[]);
        let items = kinds.iter().map(|kind| {
            let leaf = self.leaf(*kind, &scope.leaves);
            let item = if *kind == Kind::Int { call(*kind, "({})::int8", vec![leaf]) } else { leaf };
            (item, self.fresh("c"))
        });
        Select {
            distinct: Distinct::No,
            items: items.collect(),
            star: false,
            from: Some(from),
            filter,
            group: Group::No,
            having: None,
        }
    }

    /// Whole numbers of both sides that are equal.
    fn whole_numbers_agree(&mut self, left: &Scope, right: &Scope) -> Expr {
        let (left, right) = (self.leaf(Kind::Int, &left.leaves), self.leaf(Kind::Int, &right.leaves));
        call(Kind::Bool, "({} = {})", vec![left, right])
    }
}

fn whole(value: i64) -> Expr {
    Expr { kind: Kind::Int, grade: Grade::Fixed, node: Node::Literal(value.to_string()) }
}
