//! A query as JSON, parsed into a tree. Names and types are not looked at here; that is the replica's resolver.

use super::{Direction, Nulls, Order};
use serde_json::{Map, Value as Json};

/// Deepest nesting of queries (`related` and `exists`) below one root.
pub const QUERY_DEPTH_MAX: usize = 64;
/// Deepest nesting of operators within one condition.
pub const EXPRESSION_DEPTH_MAX: usize = 128;

/// A query: one table's rows, filtered, ordered and limited, each with its related rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The table's name.
    pub table: String,
    /// The condition; rows for which it is not true are left out.
    pub filter: Option<Expr>,
    /// The columns shown; `None` is all of them.
    pub select: Option<Vec<String>>,
    /// The order; the primary key is appended as a tie-break.
    pub order_by: Vec<OrderTerm>,
    /// Most rows shown (per parent row, inside `related`).
    pub limit: Option<u64>,
    /// Where to start in the order.
    pub start: Option<Start>,
    /// Child queries.
    pub related: Vec<Related>,
    /// Groups of the rows are shown instead of the rows; the outermost query's alone.
    pub grouping: Option<Grouping>,
}

/// What groups of rows show; `select`, `order_by` and `start` then speak of these columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// The columns whose equal values make a group; none for one group of all rows.
    pub columns: Vec<String>,
    /// What is computed of each group, with its name. No name is that of another or of a column above.
    pub aggregates: Vec<(String, Aggregation)>,
}

/// A value computed of many rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// Which.
    pub function: AggregationFunction,
    /// The column whose values it takes; `None` counts rows.
    pub column: Option<String>,
}

/// The aggregates of queries in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregationFunction {
    /// How many rows, or values that are not NULL.
    Count,
    /// The sum.
    Sum,
    /// The mean.
    Average,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// One term of `order_by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTerm {
    /// The column's name.
    pub column: String,
    /// Direction and NULL placement.
    pub order: Order,
}

/// A cursor: values for a prefix of the order's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Whether rows equal to the values on that prefix are included (`at`) or not (`after`).
    pub inclusive: bool,
    /// The values by column name.
    pub values: Map<String, Json>,
}

/// A child query whose rows stand under their parent row.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// The name under which they stand.
    pub name: String,
    /// One row or null instead of a list.
    pub one: bool,
    /// Pairs of parent column and child column that must be equal.
    pub on: Vec<(String, String)>,
    /// The child query.
    pub query: Query,
    /// A value computed of the child rows, which stands in their place.
    pub aggregate: Option<Aggregation>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal: a JSON scalar in the form of the column it meets.
    Literal(Json),
    /// A column of the query's table.
    Column(String),
    /// A parameter.
    Param(String),
    /// An operator or a function.
    Op(String, Vec<Expr>),
    /// Whether the child query has a row under this row's key.
    Exists(Box<Exists>),
}

/// The operand of `exists`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exists {
    /// The child query.
    pub query: Query,
    /// Pairs of parent column and child column that must be equal.
    pub on: Vec<(String, String)>,
}

/// Where and why a JSON value is not a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {path})")]
pub struct QueryParseError {
    /// The place in the JSON, such as `query.related[0].query.where`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl Query {
    /// Parses the JSON form.
    ///
    /// # Errors
    /// With the place at fault: a member that is missing, unknown or of the wrong form, or nesting beyond
    /// [`QUERY_DEPTH_MAX`] queries or [`EXPRESSION_DEPTH_MAX`] operators.
    pub fn from_json(json: &Json) -> Result<Self, QueryParseError> {
        let mut parser = Parser { path: vec!["query".to_owned()], depth: 0 };
        parser.query(json)
    }
}

impl Query {
    /// Whether a parameter occurs anywhere in the query.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.has_parameter(name))
            || self.related.iter().any(|related| related.query.has_parameter(name))
    }
}

impl Expr {
    fn has_parameter(&self, name: &str) -> bool {
        match self {
            Self::Literal(_) | Self::Column(_) => false,
            Self::Param(param) => param == name,
            Self::Op(_, args) => args.iter().any(|arg| arg.has_parameter(name)),
            Self::Exists(exists) => exists.query.has_parameter(name),
        }
    }
}

type Parsed<T> = Result<T, QueryParseError>;

struct Parser {
    path: Vec<String>,
    depth: usize,
}

impl Parser {
    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(QueryParseError { path: self.path.concat(), message: message.into() })
    }

    fn at<T>(&mut self, step: impl Into<String>, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.path.push(step.into());
        let parsed = parse(self);
        self.path.pop();
        parsed
    }

    fn object<'j>(&self, json: &'j Json, what: &str, known: &[&str]) -> Parsed<&'j Map<String, Json>> {
        let Json::Object(members) = json else { return self.fail(format!("{what} is a JSON object")) };
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                self.fail(format!("unknown member \"{key}\" of {what}; known are {}", known.join(", ")))
            }
            None => Ok(members),
        }
    }

    fn string(&self, json: Option<&Json>, what: &str) -> Parsed<String> {
        match json {
            Some(Json::String(text)) => Ok(text.clone()),
            Some(_) => self.fail(format!("\"{what}\" is a string")),
            None => self.fail(format!("\"{what}\" is missing")),
        }
    }

    fn array<'j>(&self, json: &'j Json, what: &str) -> Parsed<&'j [Json]> {
        match json {
            Json::Array(items) => Ok(items),
            _ => self.fail(format!("{what} is an array")),
        }
    }

    fn query(&mut self, json: &Json) -> Parsed<Query> {
        self.depth += 1;
        if self.depth > QUERY_DEPTH_MAX {
            return self.fail(format!("queries nest deeper than the limit of {QUERY_DEPTH_MAX}"));
        }
        let known =
            ["table", "where", "select", "order_by", "limit", "start", "related", "group_by", "aggregates"];
        let members = self.object(json, "a query", &known)?;
        let query = Query {
            grouping: self.grouping(members)?,
            table: self.string(members.get("table"), "table")?,
            filter: match members.get("where") {
                Some(json) => Some(self.at(".where", |p| p.expr(json, 0))?),
                None => None,
            },
            select: match members.get("select") {
                Some(json) => Some(self.at(".select", |p| p.select(json))?),
                None => None,
            },
            order_by: match members.get("order_by") {
                Some(json) => self.at(".order_by", |p| p.order_by(json))?,
                None => Vec::new(),
            },
            limit: match members.get("limit") {
                None | Some(Json::Null) => None,
                Some(json) => match json.as_u64() {
                    Some(limit) => Some(limit),
                    None => return self.at(".limit", |p| p.fail("a limit is a whole number, 0 or more")),
                },
            },
            start: match members.get("start") {
                None | Some(Json::Null) => None,
                Some(json) => Some(self.at(".start", |p| p.start(json))?),
            },
            related: match members.get("related") {
                Some(json) => self.at(".related", |p| p.related(json))?,
                None => Vec::new(),
            },
        };
        self.depth -= 1;
        Ok(query)
    }

    fn select(&mut self, json: &Json) -> Parsed<Vec<String>> {
        let columns = self.strings(json, "select")?;
        match twice(&columns) {
            Some(column) => self.fail(format!("column {column} is selected twice")),
            None => Ok(columns),
        }
    }

    fn strings(&mut self, json: &Json, what: &str) -> Parsed<Vec<String>> {
        self.array(json, what)?.iter().map(|item| self.string(Some(item), what)).collect()
    }

    fn grouping(&mut self, members: &Map<String, Json>) -> Parsed<Option<Grouping>> {
        let Some(columns) = members.get("group_by") else {
            return match members.get("aggregates") {
                None => Ok(None),
                Some(_) => self.at(".aggregates", |p| {
                    p.fail("\"aggregates\" needs \"group_by\"; \"group_by\":[] makes one group of all rows")
                }),
            };
        };
        if self.depth > 1 {
            return self.at(".group_by", |p| {
                p.fail("only the outermost query groups; a related query has \"aggregate\" beside it")
            });
        }
        if members.contains_key("related") {
            return self.at(".related", |p| {
                p.fail("a group has no related rows; leave \"related\" or \"group_by\" out")
            });
        }
        let columns = self.at(".group_by", |p| p.strings(columns, "group_by"))?;
        let aggregates = match members.get("aggregates") {
            None => Vec::new(),
            Some(json) => self.at(".aggregates", |p| {
                let items = p.array(json, "\"aggregates\"")?.iter().enumerate();
                items.map(|(index, item)| p.at(format!("[{index}]"), |p| p.named_aggregation(item))).collect()
            })?,
        };
        let names: Vec<String> =
            columns.iter().chain(aggregates.iter().map(|(name, _)| name)).cloned().collect();
        if names.is_empty() {
            return self.fail("a query that groups shows at least one column or aggregate");
        }
        match twice(&names) {
            Some(name) => self.fail(format!("two columns of a group are named {name}")),
            None => Ok(Some(Grouping { columns, aggregates })),
        }
    }

    fn named_aggregation(&mut self, json: &Json) -> Parsed<(String, Aggregation)> {
        let members = self.object(json, "an aggregate", &["as", "op", "col"])?;
        let name = self.string(members.get("as"), "as")?;
        Ok((name, self.aggregation_of(members)?))
    }

    fn aggregation_of(&mut self, members: &Map<String, Json>) -> Parsed<Aggregation> {
        let function = match self.string(members.get("op"), "op")?.to_ascii_lowercase().as_str() {
            "count" => AggregationFunction::Count,
            "sum" => AggregationFunction::Sum,
            "avg" => AggregationFunction::Average,
            "min" => AggregationFunction::Min,
            "max" => AggregationFunction::Max,
            other => {
                return self.fail(format!(
                    "unknown aggregate {other}; there are count, sum, avg, min and max (queries in SQL have more)"
                ));
            }
        };
        let column = match members.get("col") {
            None if function == AggregationFunction::Count => None,
            column => Some(self.string(column, "col")?),
        };
        Ok(Aggregation { function, column })
    }

    fn order_by(&mut self, json: &Json) -> Parsed<Vec<OrderTerm>> {
        let items = self.array(json, "order_by")?;
        items
            .iter()
            .enumerate()
            .map(|(index, item)| self.at(format!("[{index}]"), |p| p.order_term(item)))
            .collect()
    }

    fn order_term(&mut self, json: &Json) -> Parsed<OrderTerm> {
        const FORM: &str = "a term of order_by is [\"id\"], [\"id\", \"asc\"|\"desc\"] or [\"id\", \"asc\"|\"desc\", \"nulls first\"|\"nulls last\"]";
        let texts: Option<Vec<&str>> =
            json.as_array().and_then(|items| items.iter().map(Json::as_str).collect());
        let Some(([column], rest)) = texts.as_deref().and_then(|texts| texts.split_first_chunk()) else {
            return self.fail(FORM);
        };
        let (direction, nulls) = match rest {
            [] => ("asc", None),
            [direction] => (*direction, None),
            [direction, nulls] => (*direction, Some(*nulls)),
            _ => return self.fail(FORM),
        };
        let direction = match direction {
            "asc" => Direction::Asc,
            "desc" => Direction::Desc,
            _ => return self.fail(FORM),
        };
        let mut order = Order::with_default_nulls(direction);
        order.nulls = match nulls {
            None => order.nulls,
            Some("nulls first") => Nulls::First,
            Some("nulls last") => Nulls::Last,
            Some(_) => return self.fail(FORM),
        };
        Ok(OrderTerm { column: (*column).to_owned(), order })
    }

    fn start(&mut self, json: &Json) -> Parsed<Start> {
        let members = self.object(json, "a start", &["after", "at"])?;
        let (Some((kind, Json::Object(values))), 1) = (members.iter().next(), members.len()) else {
            return self.fail("a start is {\"after\":{…}} or {\"at\":{…}} with values by column");
        };
        if values.is_empty() {
            return self.fail("a start needs a value for at least the first order column");
        }
        Ok(Start { inclusive: kind == "at", values: values.clone() })
    }

    fn related(&mut self, json: &Json) -> Parsed<Vec<Related>> {
        let items = self.array(json, "related")?;
        let mut all: Vec<Related> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let related = self.at(format!("[{index}]"), |p| {
                let members =
                    p.object(item, "a related query", &["as", "one", "on", "query", "aggregate"])?;
                let one = match members.get("one") {
                    None => false,
                    Some(Json::Bool(one)) => *one,
                    Some(_) => return p.fail("\"one\" is true or false"),
                };
                let (on, query) = p.correlated(members)?;
                let aggregate = match members.get("aggregate") {
                    None => None,
                    Some(json) => Some(p.aggregate_of_rows(json, members, &query)?),
                };
                Ok(Related { name: p.string(members.get("as"), "as")?, one, on, query, aggregate })
            })?;
            if all.iter().any(|other| other.name == related.name) {
                return self.fail(format!("two related queries are named \"{}\"", related.name));
            }
            all.push(related);
        }
        Ok(all)
    }

    /// The aggregate of a related query, of whose rows nothing else shows.
    fn aggregate_of_rows(
        &mut self,
        json: &Json,
        members: &Map<String, Json>,
        query: &Query,
    ) -> Parsed<Aggregation> {
        let shown = [
            (".one", members.contains_key("one")),
            (".query.select", query.select.is_some()),
            (".query.related", !query.related.is_empty()),
        ];
        if let Some((place, _)) = shown.into_iter().find(|(_, is_there)| *is_there) {
            return self.at(place, |p| p.fail("an aggregate shows its value alone; leave this out"));
        }
        self.at(".aggregate", |p| {
            let members = p.object(json, "an aggregate", &["op", "col"])?;
            p.aggregation_of(members)
        })
    }

    fn correlated(&mut self, members: &Map<String, Json>) -> Parsed<(Vec<(String, String)>, Query)> {
        let Some(on) = members.get("on") else { return self.fail("\"on\" is missing") };
        let on = self.at(".on", |p| {
            let pairs = p.array(on, "\"on\"")?;
            pairs
                .iter()
                .map(|pair| match pair.as_array().map(Vec::as_slice) {
                    Some([Json::String(parent), Json::String(child)]) => Ok((parent.clone(), child.clone())),
                    _ => p.fail("\"on\" is a list of [parent column, child column]"),
                })
                .collect::<Parsed<Vec<_>>>()
        })?;
        if on.is_empty() {
            return self.fail("\"on\" needs at least one pair of columns");
        }
        match members.get("query") {
            Some(query) => Ok((on, self.at(".query", |p| p.query(query))?)),
            None => self.fail("\"query\" is missing"),
        }
    }

    fn expr(&mut self, json: &Json, depth: usize) -> Parsed<Expr> {
        if depth >= EXPRESSION_DEPTH_MAX {
            return self.fail(format!("a condition nests deeper than the limit of {EXPRESSION_DEPTH_MAX}"));
        }
        let members = match json {
            Json::Object(members) => members,
            Json::Array(_) => return self.fail("an expression is a scalar or an object, not an array"),
            scalar => return Ok(Expr::Literal(scalar.clone())),
        };
        let known = ["op", "args", "col", "param", "exists"];
        self.object(json, "an expression", &known)?;
        match (members.get("op"), members.get("col"), members.get("param"), members.get("exists"), members.len()) {
            (None, Some(Json::String(column)), None, None, 1) => Ok(Expr::Column(column.clone())),
            (None, None, Some(Json::String(param)), None, 1) => Ok(Expr::Param(param.clone())),
            (None, None, None, Some(exists), 1) => self.at(".exists", |p| {
                let members = p.object(exists, "exists", &["query", "on"])?;
                let (on, query) = p.correlated(members)?;
                Ok(Expr::Exists(Box::new(Exists { query, on })))
            }),
            (Some(Json::String(op)), None, None, None, 2) if members.contains_key("args") => {
                let args = self.array(&members["args"], "\"args\"")?;
                let args = args
                    .iter()
                    .enumerate()
                    .map(|(index, arg)| self.at(format!(".args[{index}]"), |p| p.expr(arg, depth + 1)))
                    .collect::<Parsed<_>>()?;
                Ok(Expr::Op(op.to_ascii_lowercase(), args))
            }
            _ => self.fail(
                "an expression is a scalar, {\"col\":c}, {\"param\":p}, {\"op\":o,\"args\":[…]} or {\"exists\":{\"query\":…,\"on\":…}}",
            ),
        }
    }
}

/// The first name that occurs a second time.
fn twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_found_wherever_they_stand() {
        let param = |name: &str| json!({"op":"=","args":[{"col":"id"},{"param":name}]});
        let query = Query::from_json(&json!({
            "table": "t",
            "where": {"op":"or","args":[param("a"), {"exists":{"on":[["id","id"]],"query":{"table":"u","where":param("b")}}}]},
            "related": [{"as":"r","on":[["id","id"]],"query":{"table":"u","where":{"op":"not","args":[param("c")]}}}],
        }))
        .expect("a query");
        for (name, there) in [("a", true), ("b", true), ("c", true), ("id", false), ("r", false)] {
            assert_eq!(query.has_parameter(name), there, "{name}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        let parse = |json| Query::from_json(&json).expect_err("refused");
        assert_eq!(parse(json!({})).path, "query");
        let error = parse(
            json!({"table":"t","related":[{"as":"x","on":[["a","b"]],"query":{"table":"u","where":{"op":"="}}}]}),
        );
        assert_eq!(error.path, "query.related[0].query.where");
        let error = parse(json!({"table":"t","where":{"op":"and","args":[true,{"col":5}]}}));
        assert_eq!(error.path, "query.where.args[1]");
        assert!(parse(json!({"table":"t","limits":3})).message.contains("\"limits\""));
        assert_eq!(parse(json!({"table":"t","limit":-1})).path, "query.limit");
        let error = parse(json!({"table":"t","order_by":["a"]}));
        assert!(error.path == "query.order_by[0]" && error.message.contains("[\"id\"],"), "{error}");
        assert_eq!(parse(json!({"table":"t","order_by":[["a","up"]]})).path, "query.order_by[0]");
    }

    #[test]
    fn aggregates_are_refused_with_their_place() {
        let refused = |json| Query::from_json(&json).expect_err("refused");
        let related = |related: Json| {
            let mut whole =
                json!({"as":"n","on":[["id","t"]],"query":{"table":"u"},"aggregate":{"op":"count"}});
            whole.as_object_mut().expect("an object").extend(related.as_object().expect("an object").clone());
            json!({"table":"t","related":[whole]})
        };
        assert!(Query::from_json(&related(json!({}))).is_ok());
        for (own, place, words) in [
            (json!({"aggregate":{"op":"median","col":"x"}}), "aggregate", "unknown aggregate median"),
            (json!({"aggregate":{"op":"sum"}}), "aggregate", "\"col\""),
            (json!({"aggregate":{"op":"count","of":"x"}}), "aggregate", "\"of\""),
            (json!({"one":true}), "one", "leave this out"),
            (json!({"query":{"table":"u","select":["x"]}}), "query.select", "leave this out"),
            (json!({"query":{"table":"u","group_by":["x"]}}), "query.group_by", "only the outermost"),
        ] {
            let error = refused(related(own));
            assert_eq!(error.path, format!("query.related[0].{place}"), "{error}");
            assert!(error.message.contains(words), "{error}");
        }
        let count = json!([{"as":"n","op":"count"}]);
        for (query, place, words) in [
            (json!({"table":"t","aggregates":count}), ".aggregates", "\"group_by\":[]"),
            (json!({"table":"t","group_by":[]}), "", "at least one"),
            (json!({"table":"t","group_by":["n"],"aggregates":count}), "", "named n"),
            (json!({"table":"t","group_by":["a","a"]}), "", "named a"),
            (json!({"table":"t","group_by":[5]}), ".group_by", "group_by"),
            (
                json!({"table":"t","group_by":[],"aggregates":[{"as":"s","op":"sum"}]}),
                ".aggregates[0]",
                "\"col\"",
            ),
            (json!({"table":"t","group_by":[],"aggregates":[{"op":"count"}]}), ".aggregates[0]", "\"as\""),
            (json!({"table":"t","group_by":["a"],"related":[]}), ".related", "no related rows"),
        ] {
            let error = refused(query);
            assert_eq!(error.path, format!("query{place}"), "{error}");
            assert!(error.message.contains(words), "{error}");
        }
    }

    #[test]
    fn depth_is_bounded_at_its_limit() {
        let nest = |levels: usize| {
            (1..levels).fold(
                json!({"table":"t"}),
                |query, _| json!({"table":"t","where":{"exists":{"on":[["a","b"]],"query":query}}}),
            )
        };
        assert!(Query::from_json(&nest(QUERY_DEPTH_MAX)).is_ok());
        assert!(Query::from_json(&nest(QUERY_DEPTH_MAX + 1)).expect_err("too deep").message.contains("64"));
        let negate = |levels: usize| {
            let expr = (1..levels).fold(json!(true), |expr, _| json!({"op":"not","args":[expr]}));
            Query::from_json(&json!({"table":"t","where":expr}))
        };
        assert!(negate(EXPRESSION_DEPTH_MAX).is_ok());
        assert!(negate(EXPRESSION_DEPTH_MAX + 1).is_err());
    }

    #[test]
    fn default_null_placement_follows_the_direction() {
        let query = Query::from_json(
            &json!({"table":"t","order_by":[["a","asc"],["b","desc"],["c","desc","nulls last"]]}),
        )
        .expect("valid");
        let nulls: Vec<_> = query.order_by.iter().map(|term| term.order.nulls).collect();
        assert_eq!(nulls, [Nulls::Last, Nulls::First, Nulls::Last]);
    }
}
