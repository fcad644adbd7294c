//! Names of hosts: what `server.allowed_hosts` lists, and what a request's `Host` holds.

use std::net::{IpAddr, Ipv6Addr};

/// One entry of `server.allowed_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// `*`: every name.
    Any,
    /// A name, or an address.
    One(Host),
    /// `.example.com`: this name and all below it.
    Below(String),
}

/// A host's name or address, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, without the dot that may end it.
    Name(String),
    /// An address; that of an IPv4 host is one, also when it is written as IPv6.
    Address(IpAddr),
}

impl HostPattern {
    /// Reads an entry; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        if let Some(name) = text.strip_prefix('.') {
            return match Host::parse(name)? {
                Host::Name(name) => Some(Self::Below(name)),
                Host::Address(_) => None,
            };
        }
        Host::parse(text).map(Self::One)
    }

    /// Whether a host is one of these.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::One(own), host) => own == host,
            (Self::Below(own), Host::Name(name)) => is_at_or_below(name, own),
            (Self::Below(_), Host::Address(_)) => false,
        }
    }
}

impl Host {
    /// Reads a host without a port; an IPv6 address may stand in brackets. `None` when it is neither name nor address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Some(text) = bracketed {
            return text
                .parse::<Ipv6Addr>()
                .ok()
                .map(|address| Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        name.split('.').all(is_label).then(|| Self::Name(name.to_ascii_lowercase()))
    }

    /// Reads what stands in `Host`: a host, and perhaps a port.
    #[must_use]
    pub fn of_authority(text: &str) -> Option<Self> {
        let host = match text.rsplit_once(':') {
            // Without brackets, the last colon of an IPv6 address would be taken for the port's.
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => text,
        };
        match Self::parse(host) {
            Some(Self::Address(IpAddr::V6(_))) if !host.starts_with('[') => None,
            host => host,
        }
    }

    /// Whether it can only mean the machine itself: `localhost`, a name below it, or a loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => is_at_or_below(name, "localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }
}

fn is_at_or_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_whole_names() {
        let matches = |entry: &str, host: &str| {
            HostPattern::parse(entry).expect(entry).matches(&Host::of_authority(host).expect(host))
        };
        assert!(matches("App.example", "app.EXAMPLE.:443"));
        assert!(!matches("app.example", "x.app.example"));
        assert!(!matches("app.example", "xapp.example"));
        assert!(matches(".app.example", "app.example"));
        assert!(matches(".app.example", "a.b.app.example:1"));
        assert!(!matches(".app.example", "xapp.example"));
        assert!(!matches(".app.example", "app.example.evil"));
        assert!(matches("10.0.0.1", "10.0.0.1:80") && matches("10.0.0.1", "[::ffff:10.0.0.1]"));
        assert!(matches("fd00::1", "[FD00::1]:80") && matches("[fd00::1]", "[fd00::1]"));
        assert!(!matches("10.0.0.1", "10.0.0.2"));
        assert!(matches("*", "evil.example") && matches("*", "10.0.0.1"));
    }

    #[test]
    fn what_means_the_machine_itself_is_recognized() {
        let loopback = |host: &str| Host::of_authority(host).is_some_and(|host| host.is_loopback());
        for own in [
            "localhost",
            "LOCALHOST:7300",
            "localhost.",
            "app.localhost:1",
            "127.0.0.1:7300",
            "127.9.9.9",
            "[::1]:7300",
            "[::1]",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(loopback(own), "{own}");
        }
        for other in [
            "evil.example:7300",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "0.0.0.0:7300",
            "10.0.0.1",
            "[::]:7300",
            "",
            ":7300",
            "localhost:http",
            "evil.example@localhost",
            "localhost, evil.example",
            "::1",
        ] {
            assert!(!loopback(other), "{other}");
        }
    }
}
