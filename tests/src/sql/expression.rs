//! Random expressions over given leaves.

use super::{
    ast::{Expr, Grade, Kind, Node},
    generator::Generator,
};
use rand::{Rng as _, seq::IndexedRandom as _};
use serde_json::Value as Json;

/// The kinds that columns of tables have.
pub(super) const KINDS: &[Kind] = &[
    Kind::Int,
    Kind::Int,
    Kind::Text,
    Kind::Num,
    Kind::Float,
    Kind::Bool,
    Kind::Date,
    Kind::Time,
    Kind::Big,
];

/// Templates by result. Operands: `i` int, `n` numeric, `f` float, `t` text, `b` bool, `d` date, `m` timestamptz, `x` any
/// kind that is the result's. A `!` in front says that the result is [`Grade::Computed`] whatever goes in.
const INTS: &[&str] = &[
    "({i} + {i})",
    "({i} - {i})",
    "({i} * 3)",
    "(- {i})",
    "({i} / nullif({i}, 0))",
    "({i} % 3)",
    "mod({i}, 4)",
    "abs({i})",
    "length({t})",
    "position({t} in coalesce({t}, ''))",
    "strpos({t}, 'b')",
    "({b})::int",
    "extract(year from {d})::int8",
    "extract(day from {m})::int8",
    "extract(dow from {d})::int8",
    "({d} - {d})",
    "round({s})::int8",
    "cast({s} as int8)",
];
const NUMS: &[&str] = &[
    "({n} + {n})",
    "({n} - {n})",
    "({n} * {i})",
    "({n} + {i})",
    "!({n} * {n})",
    "!({n} / nullif({n}, 0))",
    "!({i} / 4.0)",
    "!({n} % 7)",
    "round({n}::numeric, 1)",
    "round({n}::numeric)",
    "!floor({n}::numeric)",
    "!ceil({n}::numeric)",
    "abs({n})",
    "(- {n})",
    "{i}::numeric",
    "!sign({n}::numeric)",
    "!sqrt(abs({i}::numeric))",
    "!power({i}::numeric, 2)",
    "extract(month from {d})",
    "extract(epoch from {m})",
];
const FLOATS: &[&str] = &[
    "({f} + {f})",
    "({f} - {f})",
    "({f} * {i})",
    "({f} + {i})",
    "({f} * 0.5)",
    "!(- {f})",
    "!({f} / nullif({f}, 0))",
    "abs({f})",
    "floor({f})",
    "!round({f})",
    "{i}::float8",
    "!sqrt(abs({f}))",
    "!{n}::float8",
];
const TEXTS: &[&str] = &[
    "({t} || {t})",
    "lower({t})",
    "upper({t})",
    "substring({t} from 1 for 2)",
    "substring({t} from 2)",
    "substr({t}, 2, 1)",
    "trim({t})",
    "trim(both 'a' from {t})",
    "replace({t}, 'a', 'xy')",
    "left({t}, 1)",
    "right({t}, 2)",
    "lpad({t}, 3, '*')",
    "concat({t}, '-', {i})",
    "split_part({t}, ' ', 1)",
    "{i}::text",
    "cast({d} as text)",
    "({b})::text",
    "to_char({d}, 'YYYY-MM-DD')",
    "to_char({m}, 'YYYY-MM-DD HH24:MI:SS')",
    "({t} || {i})",
];
const BOOLS: &[&str] = &[
    "({b} and {b})",
    "({b} or {b})",
    "({b} and {b})",
    "({b} or {b})",
    "(not {b})",
    "({b} is true)",
    "({b} is not false)",
    "({b} is unknown)",
    "({b} = {b})",
    "({t} like 'a%')",
    "({t} like '%b_')",
    "({t} not like '%x%')",
    "({t} like 'x!_y' escape '!')",
    "({t} ilike 'A%')",
    "({t} ~ '^[a-z]+$')",
    "({t} ~* 'B')",
    "({t} !~ 'a.b')",
    "starts_with({t}, 'a')",
    "({i} between {i} and {i})",
    "({n} not between -1 and {n})",
    "({i} in (0, 1, 2))",
    "({i} not in (1, {i}))",
    "({t} in ('a', 'b', {t}))",
    "({i} < {n})",
    "({i} >= {f})",
    "({d} < {m})",
    "({g} > {i})",
    "({g} <= {g})",
];
const DATES: &[&str] = &[
    "({d} + 3)",
    "({d} - 7)",
    "date_trunc('month', {d})::date",
    "{m}::date",
    "(({d} + interval '1 month')::date)",
];
const TIMES: &[&str] = &[
    "({m} + interval '1 day')",
    "({m} - interval '90 minutes')",
    "date_trunc('hour', {m})",
    "date_trunc('year', {m})",
    "{d}::timestamptz",
    "({m} + interval '1 month')",
];
/// For every kind.
const ANY: &[&str] = &[
    "coalesce({x}, {x})",
    "coalesce({x}, {x})",
    "nullif({x}, {x})",
    "case when {b} then {x} else {x} end",
    "case when {b} then {x} end",
    "case when {b} then {x} when {b} then {x} else {x} end",
    "case {i} when 0 then {x} when 1 then {x} else {x} end",
    "greatest({x}, {x})",
    "least({x}, {x}, {x})",
];

impl Generator<'_> {
    /// An expression of a kind. Its subexpressions are at most `depth` deep.
    pub(super) fn expr(&mut self, kind: Kind, depth: usize, leaves: &[Expr]) -> Expr {
        if depth == 0 || (kind != Kind::Bool && self.rng.random_bool(0.45)) {
            return self.leaf(kind, leaves);
        }
        if let Some(scalar) = self.scalar_subquery(kind, leaves) {
            return scalar;
        }
        if kind == Kind::Bool {
            return self.condition(depth, leaves);
        }
        let of_kind = match kind {
            Kind::Int => INTS,
            Kind::Num => NUMS,
            Kind::Float => FLOATS,
            Kind::Text => TEXTS,
            Kind::Date => DATES,
            Kind::Time => TIMES,
            _ => &[],
        };
        let any = of_kind.is_empty() || self.rng.random_bool(0.3);
        let template = (if any { ANY } else { of_kind }).choose(&mut self.rng).expect("there are some");
        self.fill(template, kind, depth, leaves)
    }

    /// Puts operands into a template.
    fn fill(&mut self, template: &str, kind: Kind, depth: usize, leaves: &[Expr]) -> Expr {
        let (computed, template) = match template.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, template),
        };
        let mut args = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            let operand = match &rest[at + 1..at + 2] {
                "i" => Kind::Int,
                "n" => Kind::Num,
                "f" => Kind::Float,
                "t" => Kind::Text,
                "b" => Kind::Bool,
                "d" => Kind::Date,
                "m" => Kind::Time,
                "g" => Kind::Big,
                _ => kind,
            };
            // A rounded number has to fit its integer.
            let small = &rest[at + 1..at + 2] == "s";
            args.push(if small { self.literal(Kind::Num) } else { self.expr(operand, depth - 1, leaves) });
            text.push_str(&rest[..at]);
            text.push_str("{}");
            rest = &rest[at + 3..];
        }
        text.push_str(rest);
        let mut grade = if computed { Grade::Computed } else { Grade::Fixed };
        if matches!(kind, Kind::Num | Kind::Float) {
            // Operands of other kinds are determined; and what picks one of several numbers may pick several scales.
            let numbers = args.iter().filter(|arg| arg.kind == kind);
            grade = numbers.clone().map(|arg| arg.grade).fold(grade, Grade::max);
            let picks = !text.starts_with('(') && !text.starts_with("round") && numbers.count() > 1;
            if picks && kind == Kind::Num {
                grade = grade.max(Grade::Computed);
            }
            if text.starts_with("round") && kind == Kind::Num {
                grade = Grade::Fixed;
            }
        }
        Expr { kind, grade, node: Node::Call(text, args, None) }
    }

    /// A condition.
    pub(super) fn condition(&mut self, depth: usize, leaves: &[Expr]) -> Expr {
        if depth == 0 {
            return self.leaf(Kind::Bool, leaves);
        }
        if let Some(subquery) = self.subquery_condition(depth, leaves) {
            return subquery;
        }
        if self.rng.random_bool(0.45) {
            return self.comparison(depth, leaves);
        }
        if self.rng.random_bool(0.2) {
            let kind = self.kind_of(leaves);
            let template = ["({} is null)", "({} is not null)"].choose(&mut self.rng).expect("two");
            let operand = self.expr(kind, depth - 1, leaves);
            return call(Kind::Bool, template, vec![operand]);
        }
        let template = BOOLS.choose(&mut self.rng).expect("there are some");
        self.fill(template, Kind::Bool, depth, leaves)
    }

    fn comparison(&mut self, depth: usize, leaves: &[Expr]) -> Expr {
        let kind = self.kind_of(leaves);
        let left = if self.rng.random_bool(0.6) {
            self.leaf(kind, leaves)
        } else {
            self.expr(kind, depth - 1, leaves)
        };
        if self.layers.parameters
            && self.parameters_allowed
            && matches!(left.node, Node::Column(_))
            && self.rng.random_bool(0.25)
        {
            let parameter = self.parameter(kind);
            return call(Kind::Bool, "({} = {})", vec![left, parameter]);
        }
        let right = match self.rng.random_range(0..3) {
            0 => self.literal(kind),
            1 => self.leaf(kind, leaves),
            _ => self.expr(kind, depth - 1, leaves),
        };
        let template = [
            "({} = {})",
            "({} <> {})",
            "({} <> {})",
            "({} < {})",
            "({} <= {})",
            "({} <= {})",
            "({} > {})",
            "({} >= {})",
            "({} >= {})",
            "({} is distinct from {})",
            "({} is not distinct from {})",
        ]
        .choose(&mut self.rng)
        .expect("there are some");
        call(Kind::Bool, template, vec![left, right])
    }

    fn parameter(&mut self, kind: Kind) -> Expr {
        let name = format!("p{}", self.args.len() + 1);
        let domain = self.domain_of(kind);
        let value = domain.value(&mut self.rng);
        self.args.insert(name.clone(), value);
        self.arg_kinds.insert(name.clone(), kind);
        Expr { kind, grade: Grade::Fixed, node: Node::Param(name) }
    }

    /// A leaf or, rather rarely, a constant.
    pub(super) fn leaf(&mut self, kind: Kind, leaves: &[Expr]) -> Expr {
        let of_kind: Vec<&Expr> = leaves.iter().filter(|leaf| leaf.kind == kind).collect();
        match of_kind.choose(&mut self.rng) {
            Some(leaf) if self.rng.random_bool(0.85) => (*leaf).clone(),
            _ => self.literal(kind),
        }
    }

    /// A constant.
    pub(super) fn literal(&mut self, kind: Kind) -> Expr {
        let domain = self.domain_of(kind);
        let value = domain.value(&mut self.rng);
        let text = match (&value, kind) {
            _ if self.rng.random_bool(0.05) => format!("null::{}", type_name(kind)),
            (Json::String(text), Kind::Num) => text.clone(),
            (Json::String(text), Kind::Text) => format!("'{}'", text.replace('\'', "''")),
            (Json::String(text), Kind::Float) => format!("'{text}'::float8"),
            (Json::String(text), _) => format!("{} '{text}'", type_name(kind)),
            (number, Kind::Float) => format!("{number}::float8"),
            // The least int8 is not a constant but the negation of one that does not fit.
            (number, _) if number.as_i64() == Some(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
            (value, _) => value.to_string(),
        };
        let text = if text.starts_with('-') { format!("({text})") } else { text };
        Expr { kind, grade: Grade::Fixed, node: Node::Literal(text) }
    }

    /// The kind of some leaf, mostly.
    pub(super) fn kind_of(&mut self, leaves: &[Expr]) -> Kind {
        match leaves.choose(&mut self.rng) {
            Some(leaf) if self.rng.random_bool(0.9) => leaf.kind,
            _ => *KINDS.choose(&mut self.rng).expect("there are some"),
        }
    }
}

/// A call.
pub(super) fn call(kind: Kind, template: &str, args: Vec<Expr>) -> Expr {
    let grade = args.iter().filter(|arg| arg.kind == kind).map(|arg| arg.grade).max();
    Expr { kind, grade: grade.unwrap_or(Grade::Fixed), node: Node::Call(template.to_owned(), args, None) }
}

/// A column.
pub(super) fn column(kind: Kind, grade: Grade, text: String) -> Expr {
    Expr { kind, grade, node: Node::Column(text) }
}

/// The expression itself, or one that has one text for equal values.
pub(super) fn determined(expr: Expr) -> Expr {
    let (template, grade) = match (expr.kind, expr.grade, &expr.node) {
        (Kind::Num, Grade::Computed, _) => ("round({}, 2)", Grade::Fixed),
        // −0 becomes 0.
        (Kind::Float, Grade::Fixed, Node::Column(_) | Node::Literal(_)) => return expr,
        (Kind::Float, grade, _) => ("({} + 0)", grade),
        _ => return expr,
    };
    Expr { kind: expr.kind, grade, node: Node::Call(template.to_owned(), vec![expr], None) }
}

/// The name of a kind's type.
pub(super) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::Big => "int8",
        Kind::Num => "numeric",
        Kind::Float => "float8",
        Kind::Text => "text",
        Kind::Bool => "bool",
        Kind::Date => "date",
        Kind::Time => "timestamptz",
        Kind::Json | Kind::Array => "json",
    }
}
