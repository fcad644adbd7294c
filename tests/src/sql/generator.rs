//! Random queries: what they select, and from whole queries down.

use super::{
    Layers,
    ast::{Body, By, Distinct, Expr, Grade, Group, Kind, Node, OrderBy, Query, Select, Source},
    expression::{KINDS, column, determined},
    schema::{Domain, Table},
};
use rand::{Rng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

/// What a query is made with.
pub(super) struct Generator<'t> {
    pub(super) rng: ChaCha8Rng,
    pub(super) layers: Layers,
    pub(super) tables: &'t [Table],
    /// The values of the parameters so far.
    pub(super) args: Map<String, Json>,
    /// Their kinds.
    pub(super) arg_kinds: HashMap<String, Kind>,
    /// Whether a parameter may stand here.
    pub(super) parameters_allowed: bool,
    /// How many more subqueries there may be.
    pub(super) subqueries: usize,
    /// The common table expressions that can be read.
    pub(super) ctes: Vec<(String, Vec<Out>)>,
    next: usize,
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) grade: Grade,
}

/// What expressions can read.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) leaves: Vec<Expr>,
    /// Expressions that together tell any two rows apart that differ; none where nothing does.
    pub(super) identity: Option<Vec<Expr>>,
    /// Whether no two rows are the same.
    pub(super) unique: bool,
}

/// What is asked of a select.
#[derive(Clone, Copy, Default)]
pub(super) struct Ask<'a> {
    /// How many levels of queries may be below.
    pub(super) depth: usize,
    /// The kinds of its columns, if they are given.
    pub(super) kinds: Option<&'a [Kind]>,
    /// Columns of the queries around.
    pub(super) outer: &'a [Expr],
    /// Whether equal rows have to be the same row, since something removes or cuts them.
    pub(super) determined: bool,
    /// Whether its result is the whole query's.
    pub(super) top: bool,
}

const SUFFIXES: &[&str] = &[
    "",
    "",
    " asc",
    " desc",
    " desc",
    " nulls first",
    " asc nulls last",
    " desc nulls last",
    " desc nulls first",
];

impl<'t> Generator<'t> {
    pub(super) fn new(rng: ChaCha8Rng, layers: Layers, tables: &'t [Table]) -> Self {
        Self {
            rng,
            layers,
            tables,
            args: Map::new(),
            arg_kinds: HashMap::new(),
            parameters_allowed: true,
            subqueries: 3,
            ctes: Vec::new(),
            next: 0,
        }
    }

    /// A name that nothing else has.
    pub(super) fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from.choose(&mut self.rng).expect("there are some").clone()
    }

    /// A domain whose values have that kind.
    pub(super) fn domain_of(&mut self, kind: Kind) -> Domain {
        match kind {
            Kind::Int if self.chance(0.5) => Domain::Id(6),
            Kind::Int => Domain::Small,
            Kind::Big => Domain::Huge,
            Kind::Num => Domain::Decimal,
            Kind::Float => Domain::Quarters,
            Kind::Bool => Domain::Flag,
            Kind::Date => Domain::Day,
            Kind::Time => Domain::Moment,
            Kind::Text | Kind::Json | Kind::Array => Domain::Word,
        }
    }

    /// Another value for a parameter.
    pub(super) fn redraw(&mut self, name: &str) -> Json {
        let domain = self.domain_of(self.arg_kinds[name]);
        domain.value(&mut self.rng)
    }

    /// A whole query.
    pub(super) fn whole(&mut self) -> Query {
        let depth = if self.chance(0.65) { 1 } else { 2 };
        let ask = Ask { depth, top: true, ..Ask::default() };
        let mut with = Vec::new();
        if self.layers.subqueries && self.chance(0.2) {
            for _ in 0..self.rng.random_range(1..=2) {
                let (query, outs) = self.query(Ask { depth: 1, ..Ask::default() });
                let name = self.fresh("w");
                self.ctes.push((name.clone(), outs));
                with.push((name, query));
            }
        }
        let (query, _) = self.query(ask);
        Query { with, ..query }
    }

    /// A query without common table expressions.
    pub(super) fn query(&mut self, mut ask: Ask<'_>) -> (Query, Vec<Out>) {
        let cut = if ask.top { self.chance(0.25) } else { self.chance(0.12) };
        ask.determined |= cut;
        ask.top &= !cut;
        let (body, outs, scope) = self.body(ask);
        let on = match &body {
            Body::Select(select) => match select.distinct {
                Distinct::On(count) => count,
                _ => 0,
            },
            _ => 0,
        };
        let mut order: Vec<OrderBy> = Vec::new();
        for position in 0..on {
            order.push(OrderBy { by: By::Position(position), suffix: self.pick(SUFFIXES) });
        }
        if cut || (ask.top && self.chance(0.6)) {
            for _ in 0..self.rng.random_range(if cut { 0 } else { 1 }..=2) {
                order.extend(self.order_by(&body, &outs, &scope));
            }
        }
        let total = cut || on > 0;
        let limit = (cut && self.chance(0.9)).then(|| self.rng.random_range(0..=8));
        let offset = (cut && (limit.is_none() || self.chance(0.25))).then(|| self.rng.random_range(0..=2));
        (Query { with: Vec::new(), body, order, total, limit, offset }, outs)
    }

    fn order_by(&mut self, body: &Body, outs: &[Out], scope: &Scope) -> Option<OrderBy> {
        let suffix = self.pick(SUFFIXES);
        let plain = matches!(body, Body::Select(select) if select.distinct == Distinct::No);
        if plain && self.chance(0.35) {
            let kind = self.kind_of(&scope.leaves);
            let expr = if self.chance(0.5) {
                self.leaf(kind, &scope.leaves)
            } else {
                self.simple(kind, &scope.leaves)
            };
            // A bare constant would be a position, or nothing.
            return (expr.reads() && expr.grade < Grade::Approximate)
                .then_some(OrderBy { by: By::Expr(expr), suffix });
        }
        let position = self.rng.random_range(0..outs.len());
        let out = &outs[position];
        if matches!(out.kind, Kind::Json | Kind::Array) || out.grade == Grade::Approximate {
            return None;
        }
        let by = if self.rng.random_bool(0.5) { By::Position(position) } else { By::Name(position) };
        Some(OrderBy { by, suffix })
    }

    /// An expression without subqueries and parameters.
    pub(super) fn simple(&mut self, kind: Kind, leaves: &[Expr]) -> Expr {
        let (subqueries, parameters) = (std::mem::take(&mut self.subqueries), self.parameters_allowed);
        self.parameters_allowed = false;
        let expr = self.expr(kind, 1, leaves);
        (self.subqueries, self.parameters_allowed) = (subqueries, parameters);
        expr
    }

    fn body(&mut self, ask: Ask<'_>) -> (Body, Vec<Out>, Scope) {
        if self.layers.sets && self.chance(if ask.top { 0.12 } else { 0.06 }) {
            let kinds = ask.kinds.map_or_else(|| self.kinds(3), <[Kind]>::to_vec);
            // An expression does not begin with two parentheses in every parser.
            let levels = if ask.kinds.is_none() { 2 } else { 1 };
            let (body, outs) =
                self.set(Ask { kinds: Some(&kinds), determined: true, top: false, ..ask }, levels);
            return (body, outs, Scope::default());
        }
        if self.layers.sets && ask.kinds.is_none() && self.chance(0.02) {
            let kinds = self.kinds(3);
            let rows = self.constant_rows(&kinds);
            let out = |(position, kind): (usize, &Kind)| Out {
                name: format!("column{}", position + 1),
                kind: *kind,
                grade: Grade::Fixed,
            };
            return (Body::Values(rows), kinds.iter().enumerate().map(out).collect(), Scope::default());
        }
        let (select, outs, scope) = self.select(ask);
        (Body::Select(Box::new(select)), outs, scope)
    }

    fn set(&mut self, ask: Ask<'_>, levels: usize) -> (Body, Vec<Out>) {
        if levels == 0 {
            let (mut select, mut outs, _) = self.select(ask);
            for ((item, _), out) in select.items.iter_mut().zip(&mut outs) {
                // Both sides need one scale.
                if item.kind == Kind::Num {
                    *item = super::expression::call(Kind::Num, "round({}, 2)", vec![item.clone()]);
                    item.grade = Grade::Fixed;
                    out.grade = Grade::Fixed;
                }
            }
            select.star = false;
            return (Body::Select(Box::new(select)), outs);
        }
        let words = ["union", "union", "union all", "intersect", "intersect all", "except", "except all"];
        let word = self.pick(&words);
        let (left_levels, right_levels) = match levels {
            1 => (0, 0),
            _ => (usize::from(self.chance(0.25)), usize::from(self.chance(0.25))),
        };
        let (left, mut outs) = self.set(ask, left_levels);
        let (right, others) = self.set(ask, right_levels);
        for (out, other) in outs.iter_mut().zip(others) {
            out.grade = out.grade.max(other.grade);
        }
        (Body::Set(word, Box::new(left), Box::new(right)), outs)
    }

    fn kinds(&mut self, most: usize) -> Vec<Kind> {
        let count = self.rng.random_range(1..=most);
        (0..count).map(|_| self.pick(KINDS)).collect()
    }

    /// Rows of constants.
    pub(super) fn constant_rows(&mut self, kinds: &[Kind]) -> Vec<Vec<Expr>> {
        let count = self.rng.random_range(1..=4);
        (0..count).map(|_| kinds.iter().map(|kind| self.literal(*kind)).collect()).collect()
    }

    /// A select, its columns, and what its order can read.
    fn select(&mut self, ask: Ask<'_>) -> (Select, Vec<Out>, Scope) {
        let (from, mut scope) = self.source(ask.depth, ask.outer);
        let filter = self.filter(&scope, ask.outer);
        let mut select = Select {
            distinct: Distinct::No,
            items: Vec::new(),
            star: false,
            from: Some(from),
            filter,
            group: Group::No,
            having: None,
        };
        let mut last = Vec::new();
        if self.layers.groups && self.chance(0.35) {
            scope = self.group(&mut select, &scope, ask, &mut last);
        } else if ask.kinds.is_none() && matches!(select.from, Some(Source::Named(..))) && self.chance(0.12) {
            return self.all_columns(select, scope);
        }
        let mut item_scope = scope.clone();
        let grouping_sets = matches!(select.group, Group::Word(..) | Group::Sets(..));
        if self.layers.windows && self.chance(if ask.top { 0.3 } else { 0.1 }) && !grouping_sets {
            // Rows that are the same stand in any order in each of two windows, and that would show.
            for _ in 0..self.rng.random_range(1..=if scope.unique { 2 } else { 1 }) {
                if let Some(window) = self.window(&scope) {
                    item_scope.leaves.push(window.clone());
                    if ask.kinds.is_none() {
                        last.push(window);
                    }
                }
            }
        }
        // PostgreSQL 15 has a key that the filter makes equal to a constant stand for the constant, also where a grouping
        // set leaves it out, and then loses one of two rows.
        let may_lose = grouping_sets && select.filter.is_some();
        let distinct = self.layers.sets && self.chance(0.12) && !may_lose;
        let on = distinct && ask.kinds.is_none() && self.chance(0.5);
        let dedup = ask.determined || distinct;
        let kinds = match ask.kinds {
            Some(kinds) => kinds.to_vec(),
            None => {
                let count = self.rng.random_range(1..=3);
                (0..count).map(|_| self.kind_of(&item_scope.leaves)).collect()
            }
        };
        let mut exprs: Vec<Expr> = kinds
            .into_iter()
            .map(|kind| {
                let depth = self.rng.random_range(0..=2);
                self.expr(kind, depth, &item_scope.leaves)
            })
            .collect();
        if !dedup || ask.kinds.is_none() {
            exprs.extend(last.into_iter().filter(|expr| !dedup || comparable(expr)));
        }
        for expr in exprs {
            let expr = if dedup { determined(expr) } else { expr };
            let name = self.fresh("c");
            select.items.push((expr, name));
        }
        if distinct {
            let count = self.rng.random_range(1..=select.items.len());
            let keys = &select.items[..count];
            // PostgreSQL takes no constants there, and no expression twice.
            let sound = keys
                .iter()
                .enumerate()
                .all(|(index, (key, _))| key.reads() && keys[..index].iter().all(|(other, _)| other != key));
            select.distinct = if on && sound { Distinct::On(count) } else { Distinct::Yes };
        }
        let outs = select.items.iter().map(|(expr, name)| Out {
            name: name.clone(),
            kind: expr.kind,
            grade: expr.grade,
        });
        (select.clone(), outs.collect(), scope)
    }

    /// `select *` of a single table.
    fn all_columns(&mut self, mut select: Select, scope: Scope) -> (Select, Vec<Out>, Scope) {
        select.star = true;
        let mut outs = Vec::new();
        for leaf in &scope.leaves {
            let Node::Column(text) = &leaf.node else { continue };
            let name = text.rsplit('.').next().unwrap_or(text).to_owned();
            outs.push(Out { name: name.clone(), kind: leaf.kind, grade: leaf.grade });
            select.items.push((leaf.clone(), name));
        }
        (select, outs, scope)
    }

    pub(super) fn filter(&mut self, scope: &Scope, outer: &[Expr]) -> Option<Expr> {
        let mut leaves = scope.leaves.clone();
        let mut filter = None;
        if !outer.is_empty() && self.chance(0.75) {
            let mine = self.pick(&scope.leaves);
            // Values of different types are seldom equal.
            let mixed = self.chance(0.1);
            let meets = |kind: Kind| kind == mine.kind || mixed && kind.compares_with(mine.kind);
            let theirs: Vec<Expr> = outer.iter().filter(|expr| meets(expr.kind)).cloned().collect();
            if !theirs.is_empty() {
                let theirs = self.pick(&theirs);
                let template = if self.chance(0.85) { "({} = {})" } else { "({} < {})" };
                filter = Some(super::expression::call(Kind::Bool, template, vec![mine, theirs]));
            }
            if self.chance(0.3) {
                leaves.extend_from_slice(outer);
            }
        }
        if self.chance(if filter.is_some() { 0.2 } else { 0.4 }) {
            let depth = self.rng.random_range(1..=2);
            let more = self.broad_condition(depth, &leaves);
            filter = Some(match filter {
                Some(filter) => super::expression::call(Kind::Bool, "({} and {})", vec![filter, more]),
                None => more,
            });
        }
        filter
    }

    /// A condition that leaves some rows: one alone is often true of none.
    pub(super) fn broad_condition(&mut self, depth: usize, leaves: &[Expr]) -> Expr {
        let condition = self.condition(depth, leaves);
        if self.chance(0.4) {
            return condition;
        }
        let other = self.condition(1, leaves);
        super::expression::call(Kind::Bool, "({} or {})", vec![condition, other])
    }
}

/// Whether values can be compared, and are the same where they are equal.
pub(super) fn comparable(expr: &Expr) -> bool {
    !matches!(expr.kind, Kind::Json | Kind::Array) && expr.grade < Grade::Approximate
}

/// The columns of a result, as an alias has them.
pub(super) fn columns_of(alias: &str, outs: &[Out]) -> Scope {
    let leaves: Vec<Expr> =
        outs.iter().map(|out| column(out.kind, out.grade, format!("{alias}.{}", out.name))).collect();
    let fixed = leaves.iter().all(|leaf| leaf.grade == Grade::Fixed);
    Scope { identity: fixed.then(|| leaves.clone()), unique: false, leaves }
}
