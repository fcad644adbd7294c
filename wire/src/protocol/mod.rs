//! The protocol's messages, error codes and limits. `docs/protocol.md` is their reference.

pub mod cell;
pub mod client;
pub mod error_code;
pub mod limits;
pub mod server;

pub use cell::Cell;
pub use client::ClientMessage;
pub use error_code::ErrorCode;
pub use server::ServerMessage;

/// The protocol's version, announced in `welcome`.
pub const PROTOCOL_VERSION: u32 = 1;
