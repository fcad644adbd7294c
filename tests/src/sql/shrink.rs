//! Making a failing case small.

use super::{
    Case, Question,
    ast::{Body, By, Distinct, Expr, Group, Node, On, Query, Select, Source},
};
use crate::shrink::fewer;
use serde_json::Value as Json;

impl Case {
    /// Looks for a smaller case with one query on which `fails` still holds: fewer commits and operations, a simpler
    /// query, fewer tables. What no longer makes sense has to be no failure.
    #[must_use]
    pub fn shrink(&self, question: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
        let mut best = Case { questions: vec![self.questions[question].clone()], ..self.clone() };
        if !fails(&best) {
            return best;
        }
        loop {
            let before = best.clone();
            // A simpler query first: it makes everything else quicker.
            while let Some(simpler) =
                simpler_queries(&best.questions[0].query).into_iter().find_map(|query| {
                    let questions = vec![Question { query, args: best.questions[0].args.clone() }];
                    let candidate = Case { questions, ..best.clone() };
                    fails(&candidate).then_some(candidate)
                })
            {
                best = simpler;
            }
            best.commits =
                fewer(&best.commits, |commits| fails(&Case { commits: commits.to_vec(), ..best.clone() }));
            for index in 0..best.commits.len() {
                let ops = best.commits[index]["ops"].as_array().cloned().unwrap_or_default();
                let kept = fewer(&ops, |ops| {
                    let mut candidate = best.clone();
                    candidate.commits[index]["ops"] = ops.to_vec().into();
                    fails(&candidate)
                });
                best.commits[index]["ops"] = kept.into();
            }
            best.shrink_columns(&mut fails);
            let tables = best.tables["tables"].as_array().cloned().unwrap_or_default();
            let tables = fewer(&tables, |tables| {
                fails(&Case { tables: serde_json::json!({ "tables": tables }), ..best.clone() })
            });
            best.tables = serde_json::json!({ "tables": tables });
            if best == before {
                break;
            }
        }
        let text = best.questions[0].statement().sql;
        best.questions[0].args.retain(|name, _| text.contains(&format!(":{name}")));
        best
    }

    /// Drops columns that are not asked for from tables and rows.
    fn shrink_columns(&mut self, fails: &mut impl FnMut(&Case) -> bool) {
        let tables = self.tables["tables"].as_array().cloned().unwrap_or_default();
        for (index, table) in tables.iter().enumerate() {
            for column in table["columns"].as_array().into_iter().flatten() {
                let name = &column["name"];
                if table["primary_key"].as_array().is_some_and(|key| key.contains(name)) {
                    continue;
                }
                let mut candidate = self.clone();
                if let Some(columns) = candidate.tables["tables"][index]["columns"].as_array_mut() {
                    columns.retain(|other| other["name"] != *name);
                }
                for op in
                    candidate.commits.iter_mut().flat_map(|it| it["ops"].as_array_mut().into_iter().flatten())
                {
                    let of_table = ["insert", "update"].iter().any(|word| op[*word] == table["name"]);
                    for part in ["row", "set"] {
                        if let (true, Some(values)) =
                            (of_table, op.get_mut(part).and_then(Json::as_object_mut))
                        {
                            values.remove(name.as_str().unwrap_or_default());
                        }
                    }
                }
                for commit in &mut candidate.commits {
                    if let Some(ops) = commit["ops"].as_array_mut() {
                        ops.retain(|op| op.get("set") != Some(&serde_json::json!({})));
                    }
                }
                if fails(&candidate) {
                    *self = candidate;
                }
            }
        }
    }
}

/// Lists with one thing less, or with one thing simpler.
fn simpler_list<T: Clone>(list: &[T], least: usize, simpler: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut found = Vec::new();
    if list.len() > least {
        found.extend((0..list.len()).map(|index| {
            let mut less = list.to_vec();
            less.remove(index);
            less
        }));
    }
    for (index, item) in list.iter().enumerate() {
        found.extend(simpler(item).into_iter().map(|item| {
            let mut changed = list.to_vec();
            changed[index] = item;
            changed
        }));
    }
    found
}

/// Queries with one thing less. Some may be no queries at all.
fn simpler_queries(query: &Query) -> Vec<Query> {
    let mut found = Vec::new();
    let with = simpler_list(&query.with, 0, |(name, query)| {
        simpler_queries(query).into_iter().map(|query| (name.clone(), query)).collect()
    });
    found.extend(with.into_iter().map(|with| Query { with, ..query.clone() }));
    if query.limit.is_some() || query.offset.is_some() {
        found.push(Query { limit: None, offset: None, total: query.total && on(query), ..query.clone() });
        if query.limit.is_some() && query.offset.is_some() {
            found.push(Query { offset: None, ..query.clone() });
        }
    }
    // What `distinct on` begins with has to stay.
    let fixed = match &query.body {
        Body::Select(select) => match select.distinct {
            Distinct::On(count) => count,
            _ => 0,
        },
        _ => 0,
    };
    for index in fixed..query.order.len() {
        let mut order = query.order.clone();
        order.remove(index);
        found.push(Query { order, ..query.clone() });
    }
    for (index, term) in query.order.iter().enumerate() {
        let mut order = query.order.clone();
        if !term.suffix.is_empty() {
            order[index].suffix = "";
            found.push(Query { order, ..query.clone() });
        }
    }
    found.extend(simpler_bodies(&query.body).into_iter().filter_map(|body| {
        let (was, is) = (query.body.width(), body.width());
        let mut simpler = Query { body, ..query.clone() };
        if is < was {
            // Positions would shift; an order by expressions stays.
            simpler.order.retain(|term| matches!(term.by, By::Expr(_)));
            if fixed > 0 {
                return None;
            }
        }
        Some(simpler)
    }));
    found
}

fn on(query: &Query) -> bool {
    matches!(&query.body, Body::Select(select) if matches!(select.distinct, Distinct::On(_)))
}

fn simpler_bodies(body: &Body) -> Vec<Body> {
    match body {
        Body::Select(select) => {
            simpler_selects(select).into_iter().map(|select| Body::Select(Box::new(select))).collect()
        }
        Body::Set(word, left, right) => {
            let mut found = vec![(**left).clone(), (**right).clone()];
            found.extend(
                simpler_bodies(left).into_iter().map(|it| Body::Set(word, Box::new(it), right.clone())),
            );
            found.extend(
                simpler_bodies(right).into_iter().map(|it| Body::Set(word, left.clone(), Box::new(it))),
            );
            found
        }
        Body::Values(rows) => simpler_list(rows, 1, |_| Vec::new()).into_iter().map(Body::Values).collect(),
    }
}

fn simpler_selects(select: &Select) -> Vec<Select> {
    let mut found = Vec::new();
    if select.star {
        found.push(Select { star: false, ..select.clone() });
    }
    if select.distinct == Distinct::Yes {
        found.push(Select { distinct: Distinct::No, ..select.clone() });
    }
    if let Some(filter) = &select.filter {
        found.push(Select { filter: None, ..select.clone() });
        found.extend(
            simpler_exprs(filter).into_iter().map(|filter| Select { filter: Some(filter), ..select.clone() }),
        );
    }
    if let Some(having) = &select.having {
        found.push(Select { having: None, ..select.clone() });
        found.extend(
            simpler_exprs(having).into_iter().map(|having| Select { having: Some(having), ..select.clone() }),
        );
    }
    if let Some(from) = &select.from {
        found.extend(
            simpler_sources(from).into_iter().map(|from| Select { from: Some(from), ..select.clone() }),
        );
    }
    let groups = match &select.group {
        Group::No => Vec::new(),
        Group::By(keys) => {
            let mut groups = vec![Group::No];
            groups.extend(simpler_list(keys, 1, |_| Vec::new()).into_iter().map(Group::By));
            groups
        }
        Group::Word(word, keys) => {
            let mut groups = vec![Group::By(keys.clone())];
            groups.extend(
                simpler_list(keys, 1, |_| Vec::new()).into_iter().map(|keys| Group::Word(word, keys)),
            );
            groups
        }
        Group::Sets(keys, sets) => {
            let mut groups = vec![Group::By(keys.clone())];
            let fewer = simpler_list(sets, 1, |_| Vec::new());
            groups.extend(fewer.into_iter().map(|sets| Group::Sets(keys.clone(), sets)));
            groups
        }
    };
    found.extend(groups.into_iter().map(|group| Select { group, ..select.clone() }));
    if !select.star {
        // The first items of a `distinct on` have to stay, simpler or not.
        let least = if matches!(select.distinct, Distinct::On(_)) { select.items.len() } else { 1 };
        let items = simpler_list(&select.items, least, |(expr, name)| {
            simpler_exprs(expr).into_iter().map(|expr| (expr, name.clone())).collect()
        });
        found.extend(items.into_iter().map(|items| Select { items, ..select.clone() }));
    }
    found
}

fn simpler_sources(source: &Source) -> Vec<Source> {
    match source {
        Source::Named(..) => Vec::new(),
        Source::Values(rows, alias, names) => {
            let rows = simpler_list(rows, 1, |_| Vec::new());
            rows.into_iter().map(|rows| Source::Values(rows, alias.clone(), names.clone())).collect()
        }
        Source::Derived(query, alias, lateral) => {
            let mut found = Vec::new();
            if *lateral {
                found.push(Source::Derived(query.clone(), alias.clone(), false));
            }
            let queries = simpler_queries(query).into_iter();
            found.extend(queries.map(|query| Source::Derived(Box::new(query), alias.clone(), *lateral)));
            found
        }
        Source::Join(word, left, right, on) => {
            let mut found = vec![(**left).clone(), (**right).clone()];
            let join = |left: &Source, right: &Source, on: &On| {
                Source::Join(word, Box::new(left.clone()), Box::new(right.clone()), on.clone())
            };
            if !matches!(*word, "join" | "cross join" | ",") {
                found.push(Source::Join("join", left.clone(), right.clone(), on.clone()));
            }
            found.extend(simpler_sources(left).iter().map(|left| join(left, right, on)));
            found.extend(simpler_sources(right).iter().map(|right| join(left, right, on)));
            if let On::Condition(condition) = on {
                found.extend(
                    simpler_exprs(condition).into_iter().map(|it| join(left, right, &On::Condition(it))),
                );
            }
            found
        }
    }
}

/// The expression's operands in its place, where they have its kind and are determined as far, and simpler operands.
fn simpler_exprs(expr: &Expr) -> Vec<Expr> {
    let Node::Call(template, args, query) = &expr.node else { return Vec::new() };
    let operands = args.iter().filter(|arg| arg.kind == expr.kind && arg.grade <= expr.grade);
    let mut found: Vec<Expr> = operands.cloned().collect();
    if let Some((function, filter)) = template.split_once(" filter (where {})") {
        let args = args[..args.len() - 1].to_vec();
        let node = Node::Call(format!("{function}{filter}"), args, None);
        found.push(Expr { node, ..expr.clone() });
    }
    // Both operands of an aggregate's order and argument have to be the same.
    if !template.contains("order by") {
        let simpler = args
            .iter()
            .enumerate()
            .flat_map(|(index, arg)| simpler_exprs(arg).into_iter().map(move |simpler| (index, simpler)));
        found.extend(simpler.map(|(index, simpler)| {
            let mut args = args.clone();
            args[index] = simpler;
            Expr { node: Node::Call(template.clone(), args, query.clone()), ..expr.clone() }
        }));
    }
    if let Some(query) = query {
        found.extend(simpler_queries(query).into_iter().map(|query| {
            let node = Node::Call(template.clone(), args.clone(), Some(Box::new(query)));
            Expr { node, ..expr.clone() }
        }));
    }
    found
}
