//! What `rows` and `changes` of a named query have in common: the query string, and the query made ready.

use super::{
    error::ApiError,
    request::{arguments, parameters},
};
use crate::codes::check_args;
use serde_json::Map;
use tidegate_replica::handle::{PreparedQuery, QueryRequest, QuerySource, Replica};
use tidegate_wire::{model::Cv, protocol::ErrorCode};

/// The members of a query string.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueryString {
    /// `args`: the values of the parameters, still JSON text.
    pub args: Option<String>,
    /// `since`: the commit version that the client's rows stand at.
    pub since: Option<Cv>,
}

impl QueryString {
    /// Parses a query string; `known` are the members that the call takes.
    ///
    /// # Errors
    /// `bad_message`, naming the member that is unknown, occurs twice or has the wrong form.
    pub fn parse(text: Option<&str>, known: &[&str]) -> Result<Self, ApiError> {
        let mut out = Self::default();
        for (name, value) in parameters(text, known)? {
            match name.as_str() {
                "args" => out.args = Some(value),
                _ => {
                    let cv = value.parse().map_err(|_| {
                        ApiError::new(
                            ErrorCode::BadMessage,
                            format!("{name} must be a commit version, not {value:?}"),
                        )
                    })?;
                    out.since = Some(Cv(cv));
                }
            }
        }
        Ok(out)
    }

    /// The named query with these arguments.
    ///
    /// # Errors
    /// When there is none of that name, or the arguments are not its own.
    pub fn prepare(&self, replica: &Replica, name: String) -> Result<PreparedQuery, ApiError> {
        let args = arguments(self.args.as_deref())?;
        let request = QueryRequest { source: QuerySource::Name(name), args };
        check_args(request.args.keys())
            .map_err(|(code, text)| ApiError::new(code, text))?;
        Ok(replica.prepare(&request, &Map::new())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_strings_hold_known_members_once() {
        let parse = |text| QueryString::parse(text, &["args", "since"]);
        assert_eq!(parse(None), Ok(QueryString::default()));
        assert_eq!(
            parse(Some("since=7&args=%7B%22p%22%3A1%7D")),
            Ok(QueryString { args: Some("{\"p\":1}".to_owned()), since: Some(Cv(7)) })
        );
        for (text, named) in
            [("arg=1", "arg"), ("args=1&args=2", "args"), ("since=x", "since"), ("=", "\"\"")]
        {
            let error = parse(Some(text)).expect_err(text);
            assert!(error.code == ErrorCode::BadMessage && error.message.contains(named), "{error:?}");
        }
        let error = QueryString::parse(Some("since=7"), &["args"]).expect_err("rows take none");
        assert!(error.message.contains("since") && error.message.contains("args"), "{error:?}");
    }
}
