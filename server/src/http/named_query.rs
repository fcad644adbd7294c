//! What `rows`, `changes` and `explain` of a named query have in common: the query string, and the query made ready.

use super::{error::ApiError, query_string::Members, request::arguments};
use crate::codes::check_args;
use serde_json::Map;
use std::{fmt, str::FromStr};
use tidegate_replica::handle::{PreparedQuery, QueryRequest, QuerySource, Replica};
use tidegate_wire::{
    model::{Cv, Epoch},
    protocol::ErrorCode,
};

/// What the members of a query string say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueryString {
    /// `args`: the values of the parameters, still JSON text.
    pub args: Option<String>,
    /// `since`: where the client's rows stand.
    pub since: Option<Since>,
    /// `analyze`: whether what operators hold and did is told too.
    pub analyze: bool,
}

impl QueryString {
    /// Reads what the members say; there are none but these.
    ///
    /// # Errors
    /// `bad_message`, naming the member that has the wrong form.
    pub fn parse(Members(members): Members) -> Result<Self, ApiError> {
        let mut out = Self::default();
        for (name, value) in members {
            match name.as_str() {
                "args" => out.args = Some(value),
                "analyze" => {
                    out.analyze = value.parse().map_err(|_| {
                        let message = format!("analyze is {value:?}; it is true or false");
                        ApiError::new(ErrorCode::BadMessage, message)
                    })?;
                }
                _ => {
                    let since = value.parse().map_err(|problem| {
                        ApiError::new(ErrorCode::BadMessage, format!("{name} is {value:?}: {problem}"))
                    })?;
                    out.since = Some(since);
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
        check_args(request.args.keys()).map_err(|(code, text)| ApiError::new(code, text))?;
        Ok(replica.prepare(&request, &Map::new())?)
    }
}

/// Where a stream goes on from: a commit version, and the epoch it was released in. Written `cv-epoch`, or `cv` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The commit version.
    pub cv: Cv,
    /// The epoch.
    pub epoch: Option<Epoch>,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Some(epoch) => write!(f, "{}-{epoch}", self.cv),
            None => write!(f, "{}", self.cv),
        }
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| -> Result<u64, Self::Err> {
            text.parse().map_err(|_| "expected a commit version, or one with its epoch: cv-epoch")
        };
        let (cv, epoch) = match text.split_once('-') {
            Some((cv, epoch)) => (cv, Some(epoch)),
            None => (text, None),
        };
        Ok(Self { cv: Cv(number(cv)?), epoch: epoch.map(number).transpose()?.map(Epoch) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_form() {
        let parse = |members: &[(&str, &str)]| {
            let owned = members.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
            QueryString::parse(Members(owned.collect()))
        };
        assert_eq!(parse(&[]), Ok(QueryString::default()));
        assert_eq!(
            parse(&[("since", "7-2"), ("args", "{}"), ("analyze", "true")]),
            Ok(QueryString {
                analyze: true,
                args: Some("{}".to_owned()),
                since: Some(Since { cv: Cv(7), epoch: Some(Epoch(2)) })
            })
        );
        for (name, value) in [("since", "x"), ("since", "7-"), ("analyze", "yes")] {
            let error = parse(&[(name, value)]).expect_err(value);
            assert!(error.code == ErrorCode::BadMessage && error.message.contains(name), "{error:?}");
        }
    }
}
