//! What commands share that talk to a running server.

use super::Failure;
use clap::Args;
use serde_json::Value;
use std::{error::Error, fmt, io, str::FromStr, time::Duration};
use ureq::Agent;

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Which server.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The server
    #[arg(long, env = "TIDEGATE_URL", default_value = "http://127.0.0.1:7300", value_name = "URL")]
    pub url: ServerUrl,
}

/// The address of a server, as every client command takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Host, port and perhaps a path, without a slash at the end.
    place: String,
}

impl ServerUrl {
    /// The address of one of the API's paths.
    #[must_use]
    pub fn http(&self, path: &str) -> String {
        format!("http://{}{path}", self.place)
    }

    /// The address of the WebSocket.
    #[must_use]
    pub fn sync(&self) -> String {
        format!("ws://{}/v1/sync", self.place)
    }

    /// The failure to reach the server, with what to do.
    #[must_use]
    pub fn unreachable(&self, error: &(dyn Error + 'static)) -> Failure {
        let hint = if is_nobody_there(error) {
            "is the server running? (tidegate serve)"
        } else {
            "is this the address of a Tidegate server? (--url or TIDEGATE_URL)"
        };
        // "io: " is how the HTTP library begins what the system says.
        let error = error.to_string();
        Failure::Failed(format!("cannot reach {self}: {}; {hint}", error.trim_start_matches("io: ")))
    }

    /// The failure of an answer that no Tidegate server gives.
    #[must_use]
    pub fn not_json(&self, status: ureq::http::StatusCode) -> Failure {
        Failure::Failed(format!(
            "{self} answered {status} and no JSON; is this the address of a Tidegate server? (--url or TIDEGATE_URL)"
        ))
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.http(""))
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(match text {
                "" => "write http://HOST:PORT".to_owned(),
                _ => format!("write http://{text}"),
            });
        };
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => {}
            "https" | "wss" => {
                return Err("this build has no TLS: the address must start with http://".to_owned());
            }
            _ => return Err(format!("the address must start with http://, not {scheme}://")),
        }
        let place = rest.trim_end_matches('/');
        let place = place.strip_suffix("/v1/sync").unwrap_or(place).trim_end_matches('/');
        let authority = place.split('/').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(format!("{authority} is not HOST:PORT, as in http://127.0.0.1:7300"));
        }
        if host.is_empty()
            || place.contains(['?', '#', '@'])
            || ureq::http::Uri::try_from(format!("http://{place}")).is_err()
        {
            return Err("write http://HOST:PORT, as in http://127.0.0.1:7300".to_owned());
        }
        Ok(Self { place: place.to_owned() })
    }
}

/// Whether a connection was refused or nothing answered in time.
fn is_nobody_there(error: &(dyn Error + 'static)) -> bool {
    use tidegate_client::{ConnectError, transport::TransportError};
    let of_io = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::TimedOut)
    };
    let mut cause = Some(error);
    while let Some(error) = cause {
        let found = if let Some(error) = error.downcast_ref::<io::Error>() {
            of_io(error)
        } else if let Some(error) = error.downcast_ref::<ureq::Error>() {
            match error {
                ureq::Error::Io(error) => of_io(error),
                ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed => true,
                _ => false,
            }
        } else if let Some(TransportError::Io(error)) = error.downcast_ref::<TransportError>() {
            of_io(error)
        } else if let Some(error) = error.downcast_ref::<tokio_tungstenite::tungstenite::Error>() {
            matches!(error, tokio_tungstenite::tungstenite::Error::Io(error) if of_io(error))
        } else {
            matches!(error.downcast_ref::<ConnectError>(), Some(ConnectError::Silent))
        };
        if found {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Makes the command line's HTTP requests; an answer with an error status is an answer.
#[must_use]
pub fn agent(limit: Option<Duration>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(limit)
        .timeout_connect(Some(CONNECT_TIME_MAX))
        .build();
    Agent::new_with_config(config)
}

impl Target {
    /// The answer to a GET.
    ///
    /// # Errors
    /// When the server cannot be reached or answers with an error.
    pub fn get(&self, path: &str, limit: Duration) -> Result<Value, Failure> {
        let response = agent(Some(limit)).get(self.url.http(path)).call();
        self.answer(response)
    }

    /// The answer to a POST of JSON, or the error that it is.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn post(&self, path: &str, body: &Value, limit: Duration) -> Result<Result<Value, Refusal>, Failure> {
        let response = agent(Some(limit)).post(self.url.http(path)).send_json(body);
        self.answer_or_refusal(response)
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, Failure> {
        self.answer_or_refusal(response)?.map_err(|refusal| Failure::Failed(refusal.to_string()))
    }

    fn answer_or_refusal(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Result<Value, Refusal>, Failure> {
        let mut response = response.map_err(|error| self.url.unreachable(&error))?;
        let status = response.status();
        let mut body: Value = response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_json()
            .map_err(|_| self.url.not_json(status))?;
        Ok(if status.is_success() { Ok(body) } else { Err(Refusal(body["error"].take())) })
    }
}

/// The member `error` of an answer.
#[derive(Debug)]
pub struct Refusal(pub Value);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name: &str| self.0[name].as_str().unwrap_or("?");
        write!(f, "{} ({})", part("message"), part("code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_in_every_usual_form() {
        for (given, want) in [
            ("http://127.0.0.1:7300", "http://127.0.0.1:7300"),
            ("ws://127.0.0.1:7300/", "http://127.0.0.1:7300"),
            (" HTTP://host/base/ ", "http://host/base"),
            ("ws://host/v1/sync", "http://host"),
            ("http://[::1]:7300", "http://[::1]:7300"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(ServerUrl::from_str(given).expect(given).to_string(), want, "{given}");
        }
        assert_eq!(ServerUrl::from_str("http://host/base").expect("taken").sync(), "ws://host/base/v1/sync");
    }

    #[test]
    fn what_is_wrong_with_an_address_is_told_with_what_to_write() {
        for (given, told) in [
            ("127.0.0.1:7300", "write http://127.0.0.1:7300"),
            ("", "write http://"),
            ("https://host", "no TLS"),
            ("wss://host", "http://"),
            ("ftp://host", "http://"),
            ("http://", "http://HOST:PORT"),
            ("http:///v1/sync", "http://HOST:PORT"),
            ("http://:7300", "http://HOST:PORT"),
            ("http://host:port", "HOST:PORT"),
            ("http://host:70000", "HOST:PORT"),
            ("http://ho st", "http://HOST:PORT"),
        ] {
            let error = ServerUrl::from_str(given).expect_err(given);
            assert!(error.contains(told), "{given}: {error}");
        }
    }

    #[test]
    fn the_hint_to_start_a_server_stands_only_where_nobody_answers() {
        let url = ServerUrl::from_str("http://host").expect("taken");
        let hinted = |error: &(dyn Error + 'static)| match url.unreachable(error) {
            Failure::Failed(text) => {
                let is_hinted = text.contains("is the server running?");
                assert!(is_hinted != text.contains("--url"), "one hint: {text}");
                is_hinted
            }
            other => panic!("{other:?}"),
        };
        assert!(hinted(&io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert!(hinted(&ureq::Error::ConnectionFailed));
        assert!(hinted(&ureq::Error::Io(io::ErrorKind::TimedOut.into())));
        assert!(hinted(&tidegate_client::ConnectError::Silent));
        assert!(!hinted(&ureq::Error::HostNotFound));
        assert!(!hinted(&io::Error::from(io::ErrorKind::ConnectionReset)));
    }
}
