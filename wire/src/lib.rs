//! Tidegate's vocabulary and protocol.
//!
//! [`model`] holds the words that every part shares: ids, types, values, rows, keys, schemas and queries. The
//! replica imports only that. [`protocol`] holds the messages between clients and the server, [`codec`] their two
//! encodings (MessagePack and JSON). Nothing here does I/O.

pub mod codec;
pub mod maps_only;
pub mod model;
pub mod protocol;
