//! A query with its arguments, in any of the three forms that the server takes.

use serde_json::{Map, Value as Json};
use tidegate_wire::{
    model::SubId,
    protocol::client::{Resume, Subscribe},
};

/// What to subscribe to.
///
/// ```
/// use serde_json::json;
/// use tidegate_client::Query;
///
/// let open = Query::sql("select id, title from issues where project = :p").arg("p", 7);
/// let nested = Query::json(json!({"table": "issues", "related": [
///     {"as": "labels", "on": [["id", "issue_id"]], "query": {"table": "labels"}}]}));
/// let named = Query::named("open_issues");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    form: Form,
    args: Map<String, Json>,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Json(Json),
    Sql(String),
    Named(String),
}

impl Query {
    /// A query as JSON, whose result may be nested.
    #[must_use]
    pub fn json(query: Json) -> Self {
        Self { form: Form::Json(query), args: Map::new() }
    }

    /// A `select`, whose result is flat; parameters are written `:name`.
    #[must_use]
    pub fn sql(text: impl Into<String>) -> Self {
        Self { form: Form::Sql(text.into()), args: Map::new() }
    }

    /// A query that the server knows by name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { form: Form::Named(name.into()), args: Map::new() }
    }

    /// Sets a parameter.
    #[must_use]
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.args.insert(name.into(), value.into());
        self
    }

    /// Sets several parameters.
    #[must_use]
    pub fn args(mut self, args: Map<String, Json>) -> Self {
        self.args.extend(args);
        self
    }

    /// The message that subscribes to it, for programs that speak the protocol themselves.
    #[must_use]
    pub fn to_subscribe(&self, sub: SubId) -> Subscribe {
        self.subscribe(sub, None)
    }

    pub(crate) fn subscribe(&self, sub: SubId, resume: Option<Resume>) -> Subscribe {
        let mut subscribe = Subscribe { sub, args: self.args.clone(), resume, ..Subscribe::default() };
        match &self.form {
            Form::Json(query) => subscribe.query = Some(query.clone()),
            Form::Sql(text) => subscribe.sql = Some(text.clone()),
            Form::Named(name) => subscribe.name = Some(name.clone()),
        }
        subscribe
    }
}
