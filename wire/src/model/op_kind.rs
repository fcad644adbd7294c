//! The kinds of row operation in a batch.

/// The kinds of row operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// `+`: the row enters.
    Add,
    /// `~`: its content or places changed.
    Edit,
    /// `-`: it stands nowhere any more.
    Remove,
}
