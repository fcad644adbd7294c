//! Queries inside expressions.

use super::{
    ast::{Body, Distinct, Expr, Grade, Group, Kind, Node, Query, Select},
    expression::determined,
    generator::{Ask, Generator},
};
use rand::Rng as _;

impl Generator<'_> {
    /// A condition about a subquery, now and then.
    pub(super) fn subquery_condition(&mut self, depth: usize, leaves: &[Expr]) -> Option<Expr> {
        if !self.layers.subqueries || self.subqueries == 0 || !self.chance(0.2) {
            return None;
        }
        self.subqueries -= 1;
        let outer = readable(leaves);
        let (template, args, kinds) = match self.rng.random_range(0..10) {
            0..=2 => ("exists ({q})", Vec::new(), None),
            3 => ("(not exists ({q}))", Vec::new(), None),
            4 => {
                let kinds = vec![self.kind_of(leaves), self.kind_of(leaves)];
                let args = kinds.iter().map(|kind| self.leaf(*kind, leaves)).collect();
                let template = self.pick(&["(({}, {}) in ({q}))", "(({}, {}) not in ({q}))"]);
                (template, args, Some(kinds))
            }
            _ => {
                let kind = self.kind_of(leaves);
                let template = self.pick(&[
                    "({} in ({q}))",
                    "({} in ({q}))",
                    "({} not in ({q}))",
                    "({} = any ({q}))",
                    "({} <> all ({q}))",
                    "({} > all ({q}))",
                    "({} <= any ({q}))",
                ]);
                (template, vec![self.simple_or_leaf(kind, depth, leaves)], Some(vec![kind]))
            }
        };
        let (query, _) =
            self.query(Ask { depth: 0, kinds: kinds.as_deref(), outer: &outer, ..Ask::default() });
        let node = Node::Call(template.to_owned(), args, Some(Box::new(query)));
        Some(Expr { kind: Kind::Bool, grade: Grade::Fixed, node })
    }

    fn simple_or_leaf(&mut self, kind: Kind, depth: usize, leaves: &[Expr]) -> Expr {
        if depth > 1 && self.chance(0.3) { self.simple(kind, leaves) } else { self.leaf(kind, leaves) }
    }

    /// A subquery with one value, now and then: an aggregate, or the first row of several.
    pub(super) fn scalar_subquery(&mut self, kind: Kind, leaves: &[Expr]) -> Option<Expr> {
        if !self.layers.subqueries || self.subqueries == 0 || !self.chance(0.1) {
            return None;
        }
        self.subqueries -= 1;
        let outer = readable(leaves);
        if kind == Kind::Bool || self.chance(0.3) {
            let ask = Ask { depth: 0, kinds: Some(&[kind]), outer: &outer, determined: true, top: false };
            let (mut query, outs) = self.query(ask);
            (query.total, query.limit) = (true, Some(1));
            let node = Node::Call("({q})".to_owned(), Vec::new(), Some(Box::new(query)));
            return Some(Expr { kind, grade: outs[0].grade, node });
        }
        let (source, scope) = self.source(0, &outer);
        let item = match kind {
            Kind::Int => {
                Expr { kind, grade: Grade::Fixed, node: Node::Call("count(*)".to_owned(), vec![], None) }
            }
            Kind::Num => {
                let arg = self.simple(Kind::Int, &scope.leaves);
                Expr { kind, grade: Grade::Fixed, node: Node::Call("sum({})".to_owned(), vec![arg], None) }
            }
            _ => {
                let arg = determined(self.leaf(kind, &scope.leaves));
                let template = self.pick(&["min({})", "max({})"]);
                Expr { kind, grade: arg.grade, node: Node::Call(template.to_owned(), vec![arg], None) }
            }
        };
        let grade = item.grade;
        let filter = self.filter(&scope, &outer);
        let select = Select {
            distinct: Distinct::No,
            items: vec![(item, self.fresh("c"))],
            star: false,
            from: Some(source),
            filter,
            group: Group::No,
            having: None,
        };
        let body = Body::Select(Box::new(select));
        let query =
            Query { with: Vec::new(), body, order: Vec::new(), total: false, limit: None, offset: None };
        Some(Expr { kind, grade, node: Node::Call("({q})".to_owned(), Vec::new(), Some(Box::new(query))) })
    }
}

/// The columns among what can be read: a subquery may not read the aggregates around it. One that `using` makes of two is
/// named by its table, as by its name alone it would be a column of the subquery's own tables that have one.
fn readable(leaves: &[Expr]) -> Vec<Expr> {
    let qualified = |name: &str| {
        leaves.iter().find(|leaf| match &leaf.node {
            Node::Column(text) => text.rsplit_once('.').is_some_and(|(_, own)| own == name),
            _ => false,
        })
    };
    let columns = leaves.iter().filter_map(|leaf| match &leaf.node {
        Node::Column(text) if !text.contains('.') => Some(qualified(text).unwrap_or(leaf)),
        Node::Column(_) => Some(leaf),
        _ => None,
    });
    columns.cloned().collect()
}
