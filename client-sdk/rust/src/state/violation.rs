//! What a server may not do, named after the invariants that it would break.

use tidegate_wire::model::{Cv, Epoch, Seq, SubId};

/// A breach of the protocol by the server. The connection is given up and made anew; what is shown stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A batch is missing, or came twice.
    #[error("seq_is_gapless: subscription {sub}, epoch {epoch}: expected batch {expected}, got {found}")]
    SeqIsGapless {
        /// The subscription.
        sub: SubId,
        /// Its epoch.
        epoch: Epoch,
        /// The number that had to follow.
        expected: Seq,
        /// The number that came.
        found: Seq,
    },
    /// `cv_min` went back.
    #[error("progress_is_irrevocable: cv_min went from {from} back to {to}")]
    ProgressIsIrrevocable {
        /// The last `cv_min`.
        from: Cv,
        /// The one that came.
        to: Cv,
    },
    /// An incremental batch of a commit version that was released already, or before its predecessor's.
    #[error("batches_precede_progress: subscription {sub}: a batch of cv {cv} came after {after}")]
    BatchesPrecedeProgress {
        /// The subscription.
        sub: SubId,
        /// The batch's commit version.
        cv: Cv,
        /// The commit version that it had to be above.
        after: Cv,
    },
    /// An operation that does not fit what is held: an add of a held row, an edit or remove of one that is not.
    #[error("view_equals_fresh_query: subscription {sub}: {what}")]
    ViewEqualsFreshQuery {
        /// The subscription.
        sub: SubId,
        /// What does not fit.
        what: String,
    },
    /// A batch that was sent under another layout than its epoch's.
    #[error("fp_is_constant: subscription {sub}, epoch {epoch}: a batch or resume with another fingerprint")]
    FpIsConstant {
        /// The subscription.
        sub: SubId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// Too many operations wait for their release.
    #[error("queues_are_bounded: more than {max} operations wait for progress")]
    QueuesAreBounded {
        /// The limit, operations.
        max: usize,
    },
    /// A message that cannot be decoded, or whose parts contradict each other.
    #[error("messages_are_well_formed: {0}")]
    MessagesAreWellFormed(String),
}

impl Violation {
    /// The broken invariant's name.
    #[must_use]
    pub fn invariant(&self) -> &'static str {
        match self {
            Self::SeqIsGapless { .. } => "seq_is_gapless",
            Self::ProgressIsIrrevocable { .. } => "progress_is_irrevocable",
            Self::BatchesPrecedeProgress { .. } => "batches_precede_progress",
            Self::ViewEqualsFreshQuery { .. } => "view_equals_fresh_query",
            Self::FpIsConstant { .. } => "fp_is_constant",
            Self::QueuesAreBounded { .. } => "queues_are_bounded",
            Self::MessagesAreWellFormed(_) => "messages_are_well_formed",
        }
    }
}
