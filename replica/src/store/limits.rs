//! Limits of the store, with their units, and how they depend on each other.

/// Largest encoded row, in bytes.
pub const ROW_BYTES_MAX: usize = 4 << 20;

/// Longest encoded primary key, in bytes.
pub const KEY_BYTES_MAX: usize = 1 << 20;

/// Most bytes of an ordered encoding for one byte of a row's: a JSON array of one-digit numbers is the worst case.
const ORDERED_BYTES_PER_ROW_BYTE_MAX: usize = 6;

/// Longest key a tree takes, in bytes.
const TREE_KEY_BYTES_MAX: usize = 32 << 20;

// An index over all columns of the largest row, with the longest primary key at its end, fits into a tree.
const _: () = assert!(ORDERED_BYTES_PER_ROW_BYTE_MAX * ROW_BYTES_MAX + KEY_BYTES_MAX < TREE_KEY_BYTES_MAX);

/// Most commits that one sync makes durable.
pub const GROUP_COMMITS_MAX: usize = 1_024;

/// Bytes of records after which a group is synced, whatever waits.
pub const GROUP_BYTES_MAX: usize = 8 << 20;

// One record more than the group's bytes fits into a batch of the log.
const _: () = assert!(
    (GROUP_BYTES_MAX as u64 + crate::commit_log::RECORD_BYTES_MAX_DEFAULT as u64) * 2
        < crate::commit_log::BATCH_BYTES_MAX
);

/// Default of the submissions that wait for the store thread; more make their senders wait.
pub const SUBMISSIONS_MAX_DEFAULT: usize = 1_024;

/// Default of the snapshots kept for resuming, in commits.
pub const SNAPSHOTS_KEPT_MAX_DEFAULT: usize = 1_024;

/// Default of the memory that kept snapshots may hold beyond the newest, in estimated bytes.
pub const SNAPSHOT_BYTES_MAX_DEFAULT: u64 = 256 << 20;

/// Default of the idempotency keys remembered; the oldest are forgotten first.
pub const IDEMPOTENCY_KEYS_MAX_DEFAULT: usize = 100_000;

/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Refused mutations remembered, to answer them again; the oldest are forgotten first.
pub const REFUSALS_KEPT_MAX: usize = 4_096;

/// Longest client id, in bytes.
pub const CLIENT_ID_BYTES_MAX: usize = 255;

/// Default of the rows up to which an index is built on the store thread itself, which takes a few milliseconds.
pub const INDEX_INLINE_ROWS_MAX_DEFAULT: usize = 20_000;

/// Row changes up to which an index built aside is caught up on the store thread.
pub const INDEX_CATCH_UP_CHANGES_MAX: usize = 2_000;

/// Rounds of catching up aside; after the last one the store thread does the rest, however much it is.
pub const INDEX_CATCH_UP_ROUNDS_MAX: usize = 8;

/// Indexes built aside at one time; further ones wait.
pub const INDEX_BUILDS_MAX: usize = 2;

/// Commits of one body up to which each is published by itself, so that whoever posts a few sees each one's effect.
pub const RUN_BODY_MIN: usize = 8;

/// Most commits of a longer body that are published together, as one delta.
pub const RUN_COMMITS_MAX: u64 = 64;
