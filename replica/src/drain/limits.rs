//! The drain's limits, each with its unit and what happens at it.

/// Row bytes per batch, in bytes of the store's encoding, estimated before projection, unless fewer are asked for. A
/// larger result is split; a single larger row still travels, alone.
pub const BATCH_ROW_BYTES_MAX: usize = 256 * 1024;

/// Inputs waiting for the drain's thread. When it is full, workers and coordinator wait.
pub const INPUT_QUEUE_MAX: usize = 4_096;

/// Families with events that won the race against their registration. Beyond it the one that has waited longest is
/// given up: its registration is answered with a fault.
pub const EARLY_FAMILIES_MAX: usize = 1_024;

/// Events and changes kept for unregistered families, all together. Beyond it the same happens.
pub const EARLY_CHANGES_MAX: usize = 1 << 20;

/// Bindings hydrated before they are bound. Beyond it the one that has waited longest is given up: its bind is
/// answered with a fault.
pub const EARLY_BINDINGS_MAX: usize = 1_024;

/// Ended families and bindings whose faults are remembered. Beyond it the oldest is forgotten: an attach to it is
/// told so in general terms.
pub const ENDED_MAX: usize = 8_192;

/// Distinct commit versions a connection can have delivered and not released, each released in its own step. Beyond
/// it newer ones are released together.
pub const OWED_MAX: usize = 1_024;

/// Merges of commits remembered per worker. Beyond it the two oldest count as one: connections whose other workers
/// lag that far behind are released in larger steps.
pub const MERGES_MAX: usize = 1_024;

const _: () = assert!(MERGES_MAX >= 2);
const _: () = assert!(OWED_MAX >= 1 && INPUT_QUEUE_MAX >= 1 && BATCH_ROW_BYTES_MAX >= 1);
const _: () = assert!(
    ENDED_MAX >= EARLY_FAMILIES_MAX + EARLY_BINDINGS_MAX,
    "what is given up at the early limits stays remembered"
);
