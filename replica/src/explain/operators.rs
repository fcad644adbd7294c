//! A select's operators as a tree, the last one first. An operator that several read is shown once.

use super::{
    Names, measured,
    text::{aggregate, condition, counted, list, order_by, scalar, window},
};
use crate::{
    algebra::SetKind,
    expr::{Condition, Scalar, row_and_column},
    pipeline::OperatorProfile,
    plan::{Input, Join, Lookup, LookupAccess, Mark, Operator, Plan, Source},
    query::shape::Access,
    store::TableId,
};

pub(super) fn lines(
    plan: &Plan,
    names: &Names<'_>,
    profiles: Option<&[OperatorProfile]>,
    out: &mut Vec<String>,
) {
    let mut columns: Vec<Vec<String>> = Vec::with_capacity(plan.nodes.len());
    for node in plan.nodes.iter() {
        let own = output(&node.operator, plan.slots, names, &columns);
        columns.push(own);
    }
    let mut tree = Tree { plan, names, profiles, columns, shown: vec![false; plan.nodes.len()], out };
    tree.show(plan.nodes.len() - 1, 0);
}

struct Tree<'a> {
    plan: &'a Plan,
    names: &'a Names<'a>,
    profiles: Option<&'a [OperatorProfile]>,
    /// Per operator, its columns' names.
    columns: Vec<Vec<String>>,
    shown: Vec<bool>,
    out: &'a mut Vec<String>,
}

impl Tree<'_> {
    fn show(&mut self, at: usize, depth: usize) {
        let indent = "  ".repeat(depth);
        if std::mem::replace(&mut self.shown[at], true) {
            self.out.push(format!("{indent}#{}, as above", at + 1));
            return;
        }
        let operator = &self.plan.nodes[at].operator;
        let profile = self
            .profiles
            .and_then(|profiles| profiles.get(at))
            .map_or_else(String::new, |profile| format!("  [{}]", measured(profile)));
        self.out.push(format!("{indent}#{} {}{profile}", at + 1, self.title(operator)));
        match operator {
            Operator::Join(join) => self.paths(join, &indent),
            Operator::Mark(mark) => self.sides(mark, &indent),
            _ => {}
        }
        for input in operator.inputs() {
            self.show(input, depth + 1);
        }
    }

    fn title(&self, operator: &Operator) -> String {
        let of = |input: &usize| -> Box<dyn Fn(usize) -> String + '_> {
            let columns = &self.columns[*input];
            Box::new(move |at| columns.get(at).cloned().unwrap_or_default())
        };
        match operator {
            Operator::Parameters => "parameters, one row for each tuple of them".to_owned(),
            Operator::Working { .. } => "what the recursion has found".to_owned(),
            Operator::Values(rows) => counted(rows.len(), "constant row"),
            Operator::Join(join) => match join.inputs.as_slice() {
                [input] => format!("rows of {}", self.input(input)),
                inputs => format!("join of {}", list(inputs, ", ", |input| self.input(input))),
            },
            Operator::Mark(mark) => {
                format!("{} marked by {}", self.input(&mark.left), self.input(&mark.right))
            }
            Operator::Single { keys, .. } => format!("at most one row per {}", counted(keys, "column")),
            Operator::Aggregate { input, keys, aggregates } => {
                let column = of(input);
                let keys = list(&(0..*keys).collect::<Vec<_>>(), ", ", |at| column(*at));
                let aggregates = list(aggregates, ", ", |of| aggregate(of, &*column));
                match (keys.is_empty(), aggregates.is_empty()) {
                    (true, _) => format!("aggregate {aggregates}"),
                    (_, true) => format!("distinct {keys}"),
                    _ => format!("group by {keys}: {aggregates}"),
                }
            }
            Operator::Concat(_) => "all rows of".to_owned(),
            Operator::SetOperation { kind, all, .. } => {
                let kind = if *kind == SetKind::Except { "except" } else { "intersect" };
                format!("{kind}{}", if *all { " all" } else { "" })
            }
            Operator::Top { input, partition, order: by, offset, limit } => {
                let column = of(input);
                let limit = limit.map_or_else(|| "rows".to_owned(), |limit| counted(limit, "row"));
                let offset = if *offset > 0 { format!(" after {offset}") } else { String::new() };
                let by =
                    if by.is_empty() { " order by all columns".to_owned() } else { order_by(by, &*column) };
                format!("{limit}{offset}{}{by}", per(partition, &*column))
            }
            Operator::Window { input, partition, order: by, functions } => {
                let column = of(input);
                let functions = list(functions, ", ", |of| window(of, &*column));
                format!("{functions} over{}{}", per(partition, &*column), order_by(by, &*column))
            }
            Operator::Recursive(recursive) => {
                let often = if recursive.all { "as often as found" } else { "once each" };
                format!("recursion from #{} by #{}, rows {often}", recursive.base + 1, recursive.step + 1)
            }
        }
    }

    fn source(&self, source: &Source) -> String {
        match source {
            Source::Table { table, .. } => self.names.table(*table),
            Source::Node(node) => format!("#{}", node + 1),
        }
    }

    fn input(&self, input: &Input) -> String {
        let source = self.source(&input.source);
        if input.filter == Condition::Constant(Some(true)) {
            return source;
        }
        let columns = self.columns_of(input);
        format!("{source} where {}", condition(&input.filter, &|at| columns[at].clone()))
    }

    fn columns_of(&self, input: &Input) -> Vec<String> {
        columns_of(input, self.names, &self.columns)
    }

    /// How a change of each input is completed.
    fn paths(&mut self, join: &Join, indent: &str) {
        if join.inputs.len() < 2 {
            return;
        }
        for (input, path) in join.inputs.iter().zip(&join.paths) {
            let mut known = vec![self.columns_of(input)];
            let mut steps = Vec::new();
            for step in &path.steps {
                let found = &join.inputs[step.input];
                let mut text = self.lookup(found, &step.by, &known);
                known.push(self.columns_of(found));
                if step.condition != Condition::Constant(Some(true)) {
                    text.push_str(&format!(" if {}", condition(&step.condition, &|at| name(&known, at))));
                }
                steps.push(text);
            }
            let source = self.source(&input.source);
            self.out.push(format!("{indent}   a change of {source} finds {}", steps.join(", then ")));
        }
    }

    fn sides(&mut self, mark: &Mark, indent: &str) {
        let (left, right) = (self.columns_of(&mark.left), self.columns_of(&mark.right));
        let finds = self.lookup(&mark.right, &mark.find_right, std::slice::from_ref(&left));
        let found = self.lookup(&mark.left, &mark.find_left, std::slice::from_ref(&right));
        let known = [left, right];
        let tested = if mark.condition == Condition::Constant(Some(true)) {
            String::new()
        } else {
            format!(", true if {}", condition(&mark.condition, &|at| name(&known, at)))
        };
        self.out.push(format!("{indent}   a left row finds {finds}{tested}"));
        self.out.push(format!("{indent}   a right row finds {found}"));
    }

    fn lookup(&self, found: &Input, by: &Lookup, known: &[Vec<String>]) -> String {
        let keys = list(&by.keys, ", ", |key| scalar(key, &|at| name(known, at)));
        match (&found.source, &by.access) {
            (Source::Table { table, .. }, LookupAccess::Table(access)) => {
                let table_name = self.names.table(*table);
                if by.keys.is_empty() {
                    return format!("all of {table_name}");
                }
                match access {
                    Access::Primary => format!("{table_name} by {} = {keys}", self.primary(*table, by)),
                    Access::Index(spec) => format!("{table_name} by {} = {keys}", self.names.index(spec)),
                }
            }
            (Source::Node(node), _) if by.keys.is_empty() => format!("all of #{}", node + 1),
            (Source::Node(node), _) => format!("#{} by {keys}", node + 1),
            (Source::Table { table, .. }, _) => self.names.table(*table),
        }
    }

    /// The part of the primary key that is looked up by.
    fn primary(&self, table: TableId, by: &Lookup) -> String {
        let key = self.names.snapshot.table(table).map(|table| table.schema().primary_key.clone());
        let key = key.unwrap_or_default();
        let columns = key.iter().take(by.keys.len()).map(|&column| self.names.column(table, column));
        format!("primary key ({})", columns.collect::<Vec<_>>().join(", "))
    }
}

fn per(partition: &[Scalar], column: &dyn Fn(usize) -> String) -> String {
    if partition.is_empty() {
        return String::new();
    }
    format!(" per {}", list(partition, ", ", |of| scalar(of, column)))
}

/// The name of a column of rows side by side.
fn name(known: &[Vec<String>], at: usize) -> String {
    let (row, column) = row_and_column(at);
    known.get(row).and_then(|columns| columns.get(column)).cloned().unwrap_or_default()
}

/// The names of an input's columns.
fn columns_of(input: &Input, names: &Names<'_>, columns: &[Vec<String>]) -> Vec<String> {
    match &input.source {
        Source::Table { table, .. } => {
            let name = names.table(*table);
            (0..input.width).map(|column| format!("{name}.{}", names.column(*table, column))).collect()
        }
        Source::Node(node) => columns[*node].clone(),
    }
}

/// The names of an operator's columns, given those of the operators before it.
fn output(operator: &Operator, slots: usize, names: &Names<'_>, columns: &[Vec<String>]) -> Vec<String> {
    let numbered = |count: usize| (1..=count).map(|number| format!("c{number}")).collect();
    match operator {
        Operator::Parameters => (1..=slots).map(|number| format!("p{number}")).collect(),
        Operator::Working { width, .. } => numbered(*width),
        Operator::Values(rows) => numbered(rows.first().map_or(0, Vec::len)),
        Operator::Join(join) => {
            let (Some(input), Some(path)) = (join.inputs.first(), join.paths.first()) else {
                return Vec::new();
            };
            let steps = path.steps.iter().map(|step| &join.inputs[step.input]);
            let inputs = std::iter::once(input).chain(steps);
            let known: Vec<_> = inputs.map(|input| columns_of(input, names, columns)).collect();
            path.columns.iter().map(|of| scalar(of, &|at| name(&known, at))).collect()
        }
        Operator::Mark(mark) => {
            let mut own = columns_of(&mark.left, names, columns);
            own.push("mark".to_owned());
            own
        }
        Operator::Single { input, .. } | Operator::Top { input, .. } => columns[*input].clone(),
        Operator::Aggregate { input, keys, aggregates } => {
            let name = |at: usize| columns[*input].get(at).cloned().unwrap_or_default();
            let own = columns[*input].iter().take(*keys).cloned();
            own.chain(aggregates.iter().map(|of| aggregate(of, &name))).collect()
        }
        Operator::Concat(inputs) => inputs.first().map_or_else(Vec::new, |input| columns[*input].clone()),
        Operator::SetOperation { left, .. } => columns[*left].clone(),
        Operator::Window { input, functions, .. } => {
            let name = |at: usize| columns[*input].get(at).cloned().unwrap_or_default();
            let own = functions.iter().map(|of| window(of, &name));
            columns[*input].iter().cloned().chain(own).collect()
        }
        Operator::Recursive(recursive) => columns[recursive.base].clone(),
    }
}
