//! Groups and aggregates.

use super::{
    ast::{Expr, Grade, Group, Kind, Node, Select},
    expression::{call, determined},
    generator::{Ask, Generator, Scope, comparable},
};
use rand::Rng as _;

impl Generator<'_> {
    /// Groups a select's rows; returns what can be read of the groups. What only a result may have goes into `last`.
    pub(super) fn group(
        &mut self,
        select: &mut Select,
        scope: &Scope,
        ask: Ask<'_>,
        last: &mut Vec<Expr>,
    ) -> Scope {
        let count = [0, 0, 1, 1, 1, 1, 2, 2, 2, 3][self.rng.random_range(0..10)];
        let grouping = self.rng.random_range(0..12);
        let is_in_sets = grouping <= 2 && self.layers.laterals;
        let mut keys: Vec<Expr> = Vec::new();
        for _ in 0..count {
            let kind = self.kind_of(&scope.leaves);
            // Of grouping sets with keys that come to one expression PostgreSQL 15 makes a different result depending on
            // what else is selected.
            let key = if (is_in_sets && count > 1) || self.chance(0.7) {
                self.leaf(kind, &scope.leaves)
            } else {
                self.simple(kind, &scope.leaves)
            };
            let key = determined(key);
            if key.reads() && !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut leaves = keys.clone();
        let aggregates = self.rng.random_range(1..=3);
        for _ in 0..aggregates {
            leaves.push(self.aggregate(&scope.leaves));
        }
        if ask.top {
            if self.chance(0.1) {
                last.push(self.approximate(&scope.leaves));
            }
            if self.layers.lists && self.chance(0.2) {
                last.push(self.collected(&scope.leaves));
            }
        }
        let mut identity = Some(keys.clone());
        select.group = match grouping {
            _ if keys.is_empty() => Group::No,
            kind if is_in_sets => {
                identity = None;
                leaves.push(call(Kind::Int, "grouping({})", vec![keys[0].clone()]));
                match kind {
                    0 => Group::Word("rollup ", keys.clone()),
                    1 => Group::Word("cube ", keys.clone()),
                    _ => {
                        let set = |rng: &mut rand_chacha::ChaCha8Rng| -> Vec<usize> {
                            (0..keys.len()).filter(|_| rng.random_bool(0.6)).collect()
                        };
                        let mut sets = vec![(0..keys.len()).collect()];
                        for _ in 0..self.rng.random_range(1..=2) {
                            sets.push(set(&mut self.rng));
                        }
                        Group::Sets(keys.clone(), sets)
                    }
                }
            }
            _ => Group::By(keys.clone()),
        };
        if self.chance(0.25) {
            select.having = Some(self.broad_condition(1, &leaves));
        }
        let unique = identity.is_some();
        Scope { leaves, identity, unique }
    }

    /// An aggregate whose value is determined.
    pub(super) fn aggregate(&mut self, leaves: &[Expr]) -> Expr {
        let (kind, grade, template, args) = self.aggregate_parts(leaves);
        self.filtered(Expr { kind, grade, node: Node::Call(template, args, None) }, leaves)
    }

    /// An aggregate's kind, grade, template and arguments.
    pub(super) fn aggregate_parts(&mut self, leaves: &[Expr]) -> (Kind, Grade, String, Vec<Expr>) {
        let distinct = if self.chance(0.2) { "distinct " } else { "" };
        match self.rng.random_range(0..20) {
            0..=3 => (Kind::Int, Grade::Fixed, "count(*)".to_owned(), Vec::new()),
            4 | 5 => {
                let kind = self.kind_of(leaves);
                let arg = self.simple(kind, leaves);
                (Kind::Int, Grade::Fixed, format!("count({distinct}{{}})"), vec![arg])
            }
            6 | 7 => {
                let kind = if self.chance(0.15) { Kind::Big } else { Kind::Int };
                let arg = self.simple(kind, leaves);
                (Kind::Num, Grade::Fixed, format!("sum({distinct}{{}})"), vec![arg])
            }
            8 | 9 => {
                let arg = determined(self.simple(Kind::Num, leaves));
                (Kind::Num, Grade::Fixed, format!("sum({distinct}{{}})"), vec![arg])
            }
            10 => {
                let arg = self.exact_float(leaves);
                (Kind::Float, Grade::Fixed, format!("sum({distinct}{{}})"), vec![arg])
            }
            11 => {
                let kind = if self.chance(0.5) { Kind::Num } else { Kind::Int };
                let arg = determined(self.simple(kind, leaves));
                (Kind::Num, Grade::Computed, format!("avg({distinct}{{}})"), vec![arg])
            }
            12 => {
                let arg = self.exact_float(leaves);
                (Kind::Float, Grade::Computed, "avg({})".to_owned(), vec![arg])
            }
            13 => {
                let function = self.pick(&["bool_and", "bool_or", "every"]);
                let arg = self.simple(Kind::Bool, leaves);
                (Kind::Bool, Grade::Fixed, format!("{function}({{}})"), vec![arg])
            }
            14 => {
                let functions = ["stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"];
                let function = self.pick(&functions);
                let kind = if self.chance(0.5) { Kind::Num } else { Kind::Int };
                let arg = determined(self.simple(kind, leaves));
                (Kind::Num, Grade::Computed, format!("{function}({{}})"), vec![arg])
            }
            15 if self.layers.lists => {
                let arg = self.simple(Kind::Text, leaves);
                let distinct = if arg.reads() { distinct } else { "" };
                let order = self.pick(&[" order by {}", " order by {} desc", " order by {} nulls first"]);
                let template = format!("string_agg({distinct}{{}}, ',' {order})");
                (Kind::Text, Grade::Fixed, template, vec![arg.clone(), arg])
            }
            _ => {
                let mut kind = self.kind_of(leaves);
                if kind == Kind::Bool {
                    kind = Kind::Int;
                }
                let arg = determined(self.simple(kind, leaves));
                let function = self.pick(&["min", "max"]);
                let grade = arg.grade;
                (kind, grade, format!("{function}({{}})"), vec![arg])
            }
        }
    }

    /// Floating-point numbers whose sum does not depend on the order.
    pub(super) fn exact_float(&mut self, leaves: &[Expr]) -> Expr {
        let arg = self.simple(Kind::Float, leaves);
        if arg.grade == Grade::Fixed {
            return arg;
        }
        let fixed: Vec<Expr> = leaves.iter().filter(|leaf| leaf.grade == Grade::Fixed).cloned().collect();
        self.leaf(Kind::Float, &fixed)
    }

    fn filtered(&mut self, aggregate: Expr, leaves: &[Expr]) -> Expr {
        if !self.chance(0.2) {
            return aggregate;
        }
        let Node::Call(template, mut args, None) = aggregate.node else { return aggregate };
        args.push(self.simple(Kind::Bool, leaves));
        let node = Node::Call(format!("{template} filter (where {{}})"), args, None);
        Expr { node, ..aggregate }
    }

    /// An aggregate whose last digits are nobody's promise.
    fn approximate(&mut self, leaves: &[Expr]) -> Expr {
        let function = self.pick(&["stddev", "stddev_pop", "variance", "var_pop"]);
        let arg = self.exact_float(leaves);
        let node = Node::Call(format!("{function}({{}})"), vec![arg], None);
        Expr { kind: Kind::Float, grade: Grade::Approximate, node }
    }

    /// All values of a group, in order, as one.
    fn collected(&mut self, leaves: &[Expr]) -> Expr {
        let (kind, function) =
            self.pick(&[(Kind::Array, "array_agg"), (Kind::Json, "json_agg"), (Kind::Json, "jsonb_agg")]);
        let of = self.kind_of(leaves);
        let arg = determined(self.simple(of, leaves));
        let (template, mut args) = if self.chance(0.5) {
            let (_, by) = (0, self.simple(Kind::Int, leaves));
            (format!("{function}({{}} order by {{}} desc, {{}})"), vec![arg.clone(), by, arg])
        } else {
            (format!("{function}({{}} order by {{}})"), vec![arg.clone(), arg])
        };
        args.retain(comparable);
        let aggregate = Expr { kind, grade: Grade::Fixed, node: Node::Call(template, args, None) };
        self.filtered(aggregate, leaves)
    }
}
