//! The members of a request's query string. Each call has a layer that reads them and refuses those it does not take.

use super::error::ApiError;
use axum::{
    extract::{Query, Request, State},
    http::Uri,
    middleware::Next,
    response::Response,
};
use tidegate_wire::protocol::ErrorCode;

/// The members, decoded, in the order they came in; each is known to the call and there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(pub Vec<(String, String)>);

/// Reads the members, for the call to take as an extension; `known` are those that it takes.
///
/// # Errors
/// `bad_message`, naming what is not known.
pub async fn read(
    State(known): State<&'static [&'static str]>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let members = parse(request.uri(), known)?;
    request.extensions_mut().insert(members);
    Ok(next.run(request).await)
}

fn parse(uri: &Uri, known: &[&str]) -> Result<Members, ApiError> {
    let refuse = |message: String| Err(ApiError::new(ErrorCode::BadMessage, message));
    let members = match Query::<Vec<(String, String)>>::try_from_uri(uri) {
        Ok(Query(members)) => members,
        Err(error) => {
            return refuse(format!("the query string cannot be read: {}", error.body_text()));
        }
    };
    for (index, (name, _)) in members.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            let path = uri.path();
            return refuse(match known {
                [] => format!("unknown member {name:?} of the query string; {path} takes none"),
                known => format!(
                    "unknown member {name:?} of the query string; {path} takes {}",
                    known.join(" and ")
                ),
            });
        }
        if members[..index].iter().any(|(other, _)| other == name) {
            return refuse(format!("the query string has {name} twice"));
        }
    }
    Ok(Members(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_known_and_there_once() {
        let parse = |text: &'static str, known: &[&str]| {
            parse(&Uri::from_static(text), known).map(|members| members.0).map_err(|error| error.message)
        };
        let known = ["args", "since"];
        assert_eq!(parse("/p", &known), Ok(vec![]));
        assert_eq!(parse("/p?", &[]), Ok(vec![]));
        assert_eq!(
            parse("/p?since=7&args=%7B%22p%22%3A1%7D", &known),
            Ok(vec![("since".to_owned(), "7".to_owned()), ("args".to_owned(), "{\"p\":1}".to_owned())])
        );
        for (text, named) in [("/p?arg=1", "\"arg\""), ("/p?args=1&args=2", "args"), ("/p?=", "\"\"")] {
            let message = parse(text, &known).expect_err(text);
            assert!(message.contains(named), "{message}");
        }
        let message = parse("/p?arg=1", &known).expect_err("refused");
        assert!(message.ends_with("/p takes args and since"), "{message}");
        let message = parse("/p?args=1", &[]).expect_err("refused");
        assert!(message.ends_with("/p takes none"), "{message}");
    }
}
