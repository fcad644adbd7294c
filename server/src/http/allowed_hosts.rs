//! Which names requests may address the server by.
//!
//! A page can have its own name resolve to the address of a server on its visitor's machine or network. To the browser
//! the server's answers are then the page's own, so that no rule on origins holds it back. What gives it away is `Host`,
//! which names the page's host: a name that is not the server's is refused, whatever is asked for.
//!
//! `/healthz` and `/readyz` are answered under every name: load balancers and orchestrators ask an address that no
//! configuration knows beforehand, and the answers tell nothing but the server's state.

use super::error::ApiError;
use crate::config::{Host, HostPattern};
use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::{net::IpAddr, sync::Arc};
use tidegate_wire::protocol::ErrorCode;

/// The names of one server. Those that can only mean the machine itself always belong to them.
#[derive(Debug)]
pub struct AllowedHosts(Vec<HostPattern>);

impl AllowedHosts {
    /// Those of `server.allowed_hosts`, for a server that listens on an address. When the setting names none, a server
    /// that only its own machine can reach needs no others, and of any other the names are not known.
    #[must_use]
    pub fn new(names: &[String], listens_on: IpAddr) -> Self {
        if names.is_empty() && !listens_on.to_canonical().is_loopback() {
            return Self(vec![HostPattern::Any]);
        }
        Self(names.iter().filter_map(|name| HostPattern::parse(name)).collect())
    }

    fn allow(&self, host: &str) -> bool {
        Host::of_authority(host)
            .is_some_and(|host| host.is_loopback() || self.0.iter().any(|pattern| pattern.matches(&host)))
    }

    /// # Errors
    /// `forbidden`, naming a host that is not allowed. A request without any is no browser's.
    fn check(&self, request: &Request) -> Result<(), ApiError> {
        if self.0.contains(&HostPattern::Any) {
            return Ok(());
        }
        // A request that names the whole address means that one, whatever its headers say.
        let target = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let headers = request.headers().get_all(header::HOST).iter().map(text);
        match target.into_iter().chain(headers).find(|host| !self.allow(host)) {
            None => Ok(()),
            Some(host) => Err(ApiError::new(
                ErrorCode::Forbidden,
                format!(
                    "this server does not answer to the host {host:?}; if that is a name of its own, add it to server.allowed_hosts"
                ),
            )),
        }
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Refuses requests that address the server by a name that is not its own.
pub async fn refuse_others(
    State(allowed): State<Arc<AllowedHosts>>,
    request: Request,
    next: Next,
) -> Response {
    let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
    match allowed.check(&request) {
        Err(refusal) if !is_probe => refusal.into_response(),
        _ => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const EVERYWHERE: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

    fn allowed(names: &[&str], listens_on: IpAddr, host: &str) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let request = Request::builder().header("host", host).body(Body::empty()).expect("a request");
        AllowedHosts::new(&names, listens_on).check(&request).is_ok()
    }

    #[test]
    fn without_names_it_matters_where_the_server_listens() {
        for loopback in [LOOPBACK, IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9))] {
            assert!(allowed(&[], loopback, "localhost:7300") && allowed(&[], loopback, "127.0.0.1:7300"));
            assert!(!allowed(&[], loopback, "evil.example:7300"));
        }
        for other in [EVERYWHERE, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))] {
            assert!(allowed(&[], other, "app.example") && allowed(&[], other, "nonsense?"));
        }
    }

    #[test]
    fn with_names_only_those_and_the_machine_itself_count() {
        for listens_on in [LOOPBACK, EVERYWHERE] {
            let allowed = |host| allowed(&["app.example", ".b.example"], listens_on, host);
            for own in
                ["app.example", "App.Example.:443", "b.example", "x.b.example:1", "localhost", "[::1]:1"]
            {
                assert!(allowed(own), "{own}");
            }
            for other in ["evil.example", "x.app.example", "10.0.0.1:7300", "", "app.example, evil.example"] {
                assert!(!allowed(other), "{other}");
            }
        }
        assert!(allowed(&["*"], LOOPBACK, "evil.example"));
    }

    #[test]
    fn every_host_that_a_request_names_must_be_allowed() {
        let check = |uri: &str, hosts: &[&[u8]]| {
            let mut request = Request::builder().uri(uri).body(Body::empty()).expect("a request");
            for host in hosts {
                let host = HeaderValue::from_bytes(host).expect("a header value");
                request.headers_mut().append(header::HOST, host);
            }
            AllowedHosts::new(&[], LOOPBACK).check(&request).map_err(|error| error.message)
        };
        assert_eq!(check("/v1/sql", &[]), Ok(()));
        assert_eq!(check("http://localhost/v1/sql", &[b"localhost"]), Ok(()));
        assert!(check("http://evil.example/v1/sql", &[b"localhost"]).is_err());
        assert!(check("/v1/sql", &[b"localhost", b"evil.example"]).is_err());
        assert!(check("/v1/sql", &[b"\xff"]).is_err());
        let message = check("/v1/sql", &[b"evil.example:7300"]).expect_err("refused");
        assert!(
            message.contains("evil.example:7300") && message.contains("server.allowed_hosts"),
            "{message}"
        );
    }
}
