//! Queries as trees, so that they can be made smaller, and their texts.

use serde_json::{Map, Value as Json};

/// What type an expression has. `Int` is `int8` or PostgreSQL's `int4`, which the engine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Small whole numbers, to compute with.
    Int,
    /// Whole numbers up to the ends of their range, to compare and to sum.
    Big,
    /// `numeric`
    Num,
    /// `float8`
    Float,
    /// `text`
    Text,
    /// `bool`
    Bool,
    /// `date`
    Date,
    /// `timestamptz`
    Time,
    /// `json`, in results only.
    Json,
    /// An array of PostgreSQL's, in results only, where it is compared as JSON.
    Array,
}

impl Kind {
    /// Whether values are compared with those of another kind with the same outcome in PostgreSQL: that makes a double of a
    /// whole number beside one, which may round, where the engine compares exactly.
    pub fn compares_with(self, other: Self) -> bool {
        use Kind::{Big, Date, Float, Int, Num, Time};
        self == other
            || matches!(
                (self, other),
                (Int | Big | Num, Int | Big | Num)
                    | (Int | Num | Float, Int | Num | Float)
                    | (Date | Time, Date | Time)
            )
    }
}

/// How far the value is determined by what the expression means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Two that are equal have the same text, and sums are exact in any order.
    Fixed,
    /// Two that are equal may have different texts: `1.0` and `1.00`, 0 and −0. Sums may depend on the order.
    Computed,
    /// A floating-point number whose last digits are nobody's promise.
    Approximate,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its type.
    pub kind: Kind,
    /// How far its value is determined.
    pub grade: Grade,
    /// What it says.
    pub node: Node,
}

/// What an expression says.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A column.
    Column(String),
    /// A constant.
    Literal(String),
    /// The parameter of that name.
    Param(String),
    /// A text with a `{}` for each operand, and a `{q}` for the query if it has one.
    Call(String, Vec<Expr>, Option<Box<Query>>),
}

/// A query, with what orders and cuts its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Common table expressions.
    pub with: Vec<(String, Query)>,
    /// The rows.
    pub body: Body,
    /// Their order.
    pub order: Vec<OrderBy>,
    /// Whether the order goes on with all columns of the result, so that a limit takes determined rows.
    pub total: bool,
    /// Most rows.
    pub limit: Option<u64>,
    /// Rows passed over.
    pub offset: Option<u64>,
}

/// One term of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// What it orders by.
    pub by: By,
    /// Its direction and where NULLs go, as text.
    pub suffix: &'static str,
}

/// What a query is ordered by.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// A column of the result, as its number, counted from 0.
    Position(usize),
    /// A column of the result, by its name.
    Name(usize),
    /// An expression over the query's rows.
    Expr(Expr),
}

/// Where a query's rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A select.
    Select(Box<Select>),
    /// A set operation with its name.
    Set(&'static str, Box<Body>, Box<Body>),
    /// Constant rows.
    Values(Vec<Vec<Expr>>),
}

/// A select without order and limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// What becomes of duplicates.
    pub distinct: Distinct,
    /// The columns with their names.
    pub items: Vec<(Expr, String)>,
    /// Whether the items are all columns of the source, written `*`.
    pub star: bool,
    /// The sources.
    pub from: Option<Source>,
    /// Which rows.
    pub filter: Option<Expr>,
    /// How rows are grouped.
    pub group: Group,
    /// Which groups.
    pub having: Option<Expr>,
}

/// What becomes of duplicates.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    /// They stay.
    No,
    /// Each row once.
    Yes,
    /// One row for each value of the first so many items, which the order begins with.
    On(usize),
}

/// How rows are grouped.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// Not, or all together where there are aggregates.
    No,
    /// By these.
    By(Vec<Expr>),
    /// By these, after the word (`rollup`, `cube`).
    Word(&'static str, Vec<Expr>),
    /// By several sets of these, each given by positions.
    Sets(Vec<Expr>, Vec<Vec<usize>>),
}

/// What stands in `from`.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A table or a common table expression, and its alias.
    Named(String, String),
    /// A query, its alias, and whether it may read what stands before it.
    Derived(Box<Query>, String, bool),
    /// Constant rows with an alias and column names.
    Values(Vec<Vec<Expr>>, String, Vec<String>),
    /// A join.
    Join(&'static str, Box<Source>, Box<Source>, On),
}

/// What a join matches.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// Everything.
    Nothing,
    /// Where a condition holds.
    Condition(Expr),
    /// Where columns of these names are equal.
    Using(Vec<String>),
}

/// For whom a text is.
#[derive(Clone, Copy, Debug)]
pub enum Dialect<'a> {
    /// The engine: parameters are named.
    Engine,
    /// PostgreSQL: parameters are their values, and what orders the result shows as further columns.
    Postgres(&'a Map<String, Json>),
}

impl Expr {
    /// Whether it reads a column, not counting what subqueries do.
    #[must_use]
    pub fn reads(&self) -> bool {
        match &self.node {
            Node::Column(_) => true,
            Node::Literal(_) | Node::Param(_) => false,
            Node::Call(_, args, _) => args.iter().any(Expr::reads),
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self, dialect: Dialect<'_>) -> String {
        match (&self.node, dialect) {
            (Node::Column(text) | Node::Literal(text), _) => text.clone(),
            (Node::Param(name), Dialect::Engine) => format!(":{name}"),
            (Node::Param(name), Dialect::Postgres(args)) => match self.kind {
                // Beside an int4, a constant without a type would be one too.
                Kind::Int | Kind::Big => format!("{}::int8", literal(&args[name])),
                _ => literal(&args[name]),
            },
            (Node::Call(template, args, query), _) => {
                let mut text = String::new();
                let mut pieces = template.split("{}");
                text.push_str(pieces.next().unwrap_or_default());
                for (piece, arg) in pieces.zip(args) {
                    text.push_str(&arg.text(dialect));
                    text.push_str(piece);
                }
                match query {
                    Some(query) => text.replacen("{q}", &query.text(dialect), 1),
                    None => text,
                }
            }
        }
    }
}

/// A JSON value as a constant of PostgreSQL's that takes the type of what it meets.
#[must_use]
pub(super) fn literal(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => format!("'{other}'"),
    }
}

impl Query {
    /// The text as a subquery has it.
    #[must_use]
    pub fn text(&self, dialect: Dialect<'_>) -> String {
        self.render(dialect, false)
    }

    /// The whole query's text. For PostgreSQL, expressions that order the result are columns at its end, and arrays are
    /// shown as JSON.
    #[must_use]
    pub fn top_text(&self, dialect: Dialect<'_>) -> String {
        self.render(dialect, true)
    }

    /// The positions of the columns that order the result in PostgreSQL's answer to the whole query.
    #[must_use]
    pub fn ordering(&self) -> Vec<usize> {
        let width = self.body.width();
        let mut hidden = width..;
        let mut positions: Vec<usize> = self
            .order
            .iter()
            .map(|term| match &term.by {
                By::Position(position) | By::Name(position) => *position,
                By::Expr(_) => hidden.next().expect("numbers do not end"),
            })
            .collect();
        if self.total {
            positions.extend(0..width);
        }
        positions
    }

    fn render(&self, dialect: Dialect<'_>, top: bool) -> String {
        let mut text = String::new();
        for (index, (name, query)) in self.with.iter().enumerate() {
            let query = query.text(dialect);
            let word = match index {
                // It reads itself under an alias, as every source is read.
                0 if query.contains(&format!(" {name} as ")) => "with recursive",
                0 => "with",
                _ => ",",
            };
            text.push_str(&format!("{word} {name} as ({query}) "));
        }
        let hidden: Vec<&Expr> = match (top, dialect) {
            (true, Dialect::Postgres(_)) => self
                .order
                .iter()
                .filter_map(|term| match &term.by {
                    By::Expr(expr) => Some(expr),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        text.push_str(&self.body.render(dialect, top, &hidden));
        let mut terms: Vec<String> = Vec::new();
        for OrderBy { by, suffix } in &self.order {
            let by = match by {
                By::Position(position) => (position + 1).to_string(),
                By::Name(position) => self.body.name(*position),
                By::Expr(expr) => expr.text(dialect),
            };
            terms.push(format!("{by}{suffix}"));
        }
        if self.total {
            terms.extend((1..=self.body.width()).map(|position| position.to_string()));
        }
        if !terms.is_empty() {
            text.push_str(&format!(" order by {}", terms.join(", ")));
        }
        if let Some(limit) = self.limit {
            text.push_str(&format!(" limit {limit}"));
        }
        if let Some(offset) = self.offset {
            text.push_str(&format!(" offset {offset}"));
        }
        text
    }
}

impl Body {
    /// How many columns there are.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Body::Select(select) => select.items.len(),
            Body::Set(_, left, _) => left.width(),
            Body::Values(rows) => rows.first().map_or(0, Vec::len),
        }
    }

    fn name(&self, position: usize) -> String {
        match self {
            Body::Select(select) => select.items[position].1.clone(),
            Body::Set(_, left, _) => left.name(position),
            Body::Values(_) => format!("column{}", position + 1),
        }
    }

    fn render(&self, dialect: Dialect<'_>, top: bool, hidden: &[&Expr]) -> String {
        match self {
            Body::Select(select) => select.render(dialect, top, hidden),
            Body::Set(word, left, right) => {
                let (first, second) = (left.render(dialect, false, &[]), right.render(dialect, false, &[]));
                match **left {
                    Body::Set(..) => format!("({first}) {word} ({second})"),
                    _ => format!("{first} {word} ({second})"),
                }
            }
            Body::Values(rows) => values(rows, dialect),
        }
    }
}

fn values(rows: &[Vec<Expr>], dialect: Dialect<'_>) -> String {
    let rows: Vec<String> = rows.iter().map(|row| format!("({})", list(row, dialect))).collect();
    format!("values {}", rows.join(", "))
}

fn list(exprs: &[Expr], dialect: Dialect<'_>) -> String {
    exprs.iter().map(|expr| expr.text(dialect)).collect::<Vec<_>>().join(", ")
}

impl Select {
    fn render(&self, dialect: Dialect<'_>, top: bool, hidden: &[&Expr]) -> String {
        let mut text = "select ".to_owned();
        match &self.distinct {
            Distinct::No => {}
            Distinct::Yes => text.push_str("distinct "),
            Distinct::On(count) => {
                let on: Vec<String> = self.items[..*count].iter().map(|item| item.0.text(dialect)).collect();
                text.push_str(&format!("distinct on ({}) ", on.join(", ")));
            }
        }
        let as_json = top && matches!(dialect, Dialect::Postgres(_));
        let mut items: Vec<String> = self
            .items
            .iter()
            .map(|(expr, name)| {
                let expr_text = expr.text(dialect);
                match expr.kind {
                    Kind::Array if as_json => format!("to_json({expr_text}) as {name}"),
                    _ => format!("{expr_text} as {name}"),
                }
            })
            .collect();
        if self.star {
            items = vec!["*".to_owned()];
        }
        items.extend(hidden.iter().map(|expr| expr.text(dialect)));
        text.push_str(&items.join(", "));
        if let Some(from) = &self.from {
            text.push_str(&format!(" from {}", from.render(dialect)));
        }
        if let Some(filter) = &self.filter {
            text.push_str(&format!(" where {}", filter.text(dialect)));
        }
        match &self.group {
            Group::No => {}
            Group::By(keys) => text.push_str(&format!(" group by {}", list(keys, dialect))),
            Group::Word(word, keys) => {
                // In parentheses of its own, a key is a set of one.
                let keys: Vec<String> = keys.iter().map(|key| format!("({})", key.text(dialect))).collect();
                text.push_str(&format!(" group by {word}({})", keys.join(", ")));
            }
            Group::Sets(keys, sets) => {
                let sets: Vec<String> = sets
                    .iter()
                    .map(|set| {
                        let set: Vec<String> = set.iter().map(|key| keys[*key].text(dialect)).collect();
                        format!("({})", set.join(", "))
                    })
                    .collect();
                text.push_str(&format!(" group by grouping sets ({})", sets.join(", ")));
            }
        }
        if let Some(having) = &self.having {
            text.push_str(&format!(" having {}", having.text(dialect)));
        }
        text
    }
}

impl Source {
    fn render(&self, dialect: Dialect<'_>) -> String {
        match self {
            Source::Named(name, alias) => format!("{name} as {alias}"),
            Source::Derived(query, alias, lateral) => {
                format!("{}({}) as {alias}", if *lateral { "lateral " } else { "" }, query.text(dialect))
            }
            Source::Values(rows, alias, names) => {
                format!("({}) as {alias}({})", values(rows, dialect), names.join(", "))
            }
            Source::Join(word, left, right, on) => {
                let right = match **right {
                    Source::Join(..) => format!("({})", right.render(dialect)),
                    _ => right.render(dialect),
                };
                let on = match on {
                    On::Nothing => String::new(),
                    On::Condition(condition) => format!(" on {}", condition.text(dialect)),
                    On::Using(names) => format!(" using ({})", names.join(", ")),
                };
                format!("{} {word} {right}{on}", left.render(dialect))
            }
        }
    }
}
