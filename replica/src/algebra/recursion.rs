//! What the step of a recursion may do with the rows found so far.

use super::{JoinKind, Rel};

/// What stands between a step and the rows it reads that may not: an operator to which more rows may mean fewer, which looks
/// at several rows together, or which nets its changes. `None` when all is well.
#[must_use]
pub fn misuse(step: &Rel, working: usize) -> Option<&'static str> {
    if !reads(step, working) {
        return None;
    }
    let inside = |rel: &Rel| misuse(rel, working);
    match step {
        Rel::Working { .. } => None,
        Rel::Filter { input, .. } | Rel::Project { input, .. } => inside(input),
        Rel::Join { left, right, .. } if reads(left, working) && reads(right, working) => {
            Some("both sides of a join")
        }
        Rel::Join { kind: JoinKind::Inner, left, right, .. } => inside(left).or_else(|| inside(right)),
        Rel::Join { kind: JoinKind::Left, left, right, .. } if !reads(right, working) => inside(left),
        Rel::Join { .. } => Some("the optional side of an outer join"),
        Rel::Mark { input, subquery, .. }
        | Rel::Lookup { input, subquery }
        | Rel::Lateral { input, subquery, .. } => {
            if reads(&subquery.rel, working) {
                Some("a subquery")
            } else {
                inside(input)
            }
        }
        Rel::Concat { .. } => Some("a union"),
        Rel::Aggregate { .. } => Some("an aggregate or group by"),
        Rel::Distinct { .. } => Some("distinct"),
        Rel::SetOperation { .. } => Some("except or intersect"),
        Rel::Top { .. } => Some("limit or distinct on"),
        Rel::Window { .. } => Some("a window function"),
        Rel::Recursive { .. } => Some("another recursion"),
        Rel::Table { .. } | Rel::Values { .. } => None,
    }
}

/// Whether a relation reads the rows of a recursion.
#[must_use]
pub fn reads(rel: &Rel, working: usize) -> bool {
    matches!(rel, Rel::Working { working: own, .. } if *own == working)
        || rel.inputs().into_iter().any(|input| reads(input, working))
}
