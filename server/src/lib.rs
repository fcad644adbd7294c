//! Tidegate's server: sockets, HTTP API, configuration and command line around one replica. Modules stand in flow
//! order, from the drain's output to the client.
//!
//! [`Server::start`] runs a server inside any Tokio runtime, which is how tests use it; the binary adds the command
//! line.

pub mod cli;
pub mod codes;
pub mod config;
pub mod connection;
pub mod hub;
pub mod metrics;
pub mod socket;

pub mod http;
pub mod runtime;
pub mod server;
pub mod state;
pub mod telemetry;

pub use config::Config;
pub use server::{RunningServer, Server, StartError};
pub use state::Page;

/// Name and version, as `welcome` and `/v1/status` tell them.
pub const SERVER: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));
