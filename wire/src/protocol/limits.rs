//! Default limits of the protocol. Each can be configured (`limits` in `docs/operations.md`) and is announced in
//! `welcome`.

/// Largest message a client may send, bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Largest WebSocket message the server sends by choice, bytes: snapshots are split and small messages gathered at
/// this size. One row larger than this still travels, in a message of its own.
pub const FRAME_BYTES_TARGET: usize = 1 << 20;
/// Most subscriptions a connection may have at once.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Most mutations in one `push`.
pub const MUTATIONS_MAX: usize = 1_000;
/// Most operations in one commit.
pub const COMMIT_OPS_MAX: usize = 1_000_000;
/// Longest `client_id`, bytes.
pub const CLIENT_ID_BYTES_MAX: usize = 255;
/// Most bytes a connection's outbox may hold before the client counts as slow.
pub const OUTBOX_BYTES_MAX: usize = 16 << 20;

const _: () = assert!(FRAME_BYTES_TARGET < OUTBOX_BYTES_MAX, "an outbox holds at least one full frame");
