//! From the address that people give to the one of the WebSocket.

use crate::error::ConnectError;

const PATH: &str = "/v1/sync";

/// `http(s)://…` or `ws(s)://…` as the WebSocket's address; `/v1/sync` is added unless it is there.
pub(crate) fn sync_url(url: &str) -> Result<String, ConnectError> {
    let fail = |what| ConnectError::Url { url: url.to_owned(), what };
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(|| fail("it has no scheme"))?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => "ws",
        "https" | "wss" if cfg!(feature = "tls") => "wss",
        "https" | "wss" => return Err(fail("TLS needs the crate feature `tls`")),
        _ => return Err(fail("its scheme is none of http, https, ws, wss")),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, format!("?{query}")),
        None => (rest, String::new()),
    };
    let rest = rest.trim_end_matches('/');
    if rest.is_empty() || rest.starts_with('/') {
        return Err(fail("it has no host"));
    }
    let rest = rest.strip_suffix(PATH).unwrap_or(rest);
    Ok(format!("{scheme}://{rest}{PATH}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_the_sockets() {
        for (given, want) in [
            ("http://127.0.0.1:7300", "ws://127.0.0.1:7300/v1/sync"),
            ("http://host/", "ws://host/v1/sync"),
            ("WS://host/base/?a=b", "ws://host/base/v1/sync?a=b"),
            ("ws://host/v1/sync", "ws://host/v1/sync"),
        ] {
            assert_eq!(sync_url(given).expect(given), want);
        }
        for bad in ["127.0.0.1:7300", "ftp://host", "http:///v1/sync", "http://"] {
            assert!(matches!(sync_url(bad), Err(ConnectError::Url { .. })), "{bad}");
        }
    }
}
