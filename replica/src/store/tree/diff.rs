//! The difference of two trees. Nodes that both hold are skipped whole, so that the cost follows what changed between
//! two snapshots and not their size.

use std::cmp::Ordering;

use triomphe::Arc;

use super::node::{Leaf, Node};

/// Something still to be compared. A subtree's height is 0 for a leaf.
enum Head<'a, V> {
    Subtree(&'a Arc<Node<V>>, usize),
    Entry(&'a Leaf<V>, usize),
}

impl<'a, V> Head<'a, V> {
    /// The lowest key, `None` for an empty subtree.
    fn first_key(&self) -> Option<&'a [u8]> {
        match *self {
            Head::Entry(leaf, index) => Some(leaf.keys.get(index)),
            Head::Subtree(mut node, _) => loop {
                match &**node {
                    Node::Inner(inner) => node = &inner.children[0],
                    Node::Leaf(leaf) => return (leaf.keys.len() > 0).then(|| leaf.keys.get(0)),
                }
            },
        }
    }

    /// Levels of nodes in it; 0 for an entry.
    fn levels(&self) -> usize {
        match self {
            Head::Entry(..) => 0,
            Head::Subtree(_, height) => height + 1,
        }
    }
}

/// One tree's part still to be compared, the lowest keys last.
struct Remaining<'a, V>(Vec<Head<'a, V>>);

impl<'a, V> Remaining<'a, V> {
    fn new(root: &'a Arc<Node<V>>) -> Self {
        let mut height = 0;
        let mut node = root;
        while let Node::Inner(inner) = &**node {
            height += 1;
            node = &inner.children[0];
        }
        Remaining(vec![Head::Subtree(root, height)])
    }

    /// Replaces the subtree at the front by its children or entries.
    fn expand(&mut self) {
        let Some(Head::Subtree(node, height)) = self.0.pop() else {
            unreachable!("only subtrees are expanded")
        };
        match &**node {
            Node::Inner(inner) => {
                self.0.extend(inner.children.iter().rev().map(|child| Head::Subtree(child, height - 1)));
            }
            Node::Leaf(leaf) => {
                self.0.extend((0..leaf.values.len()).rev().map(|index| Head::Entry(leaf, index)));
            }
        }
    }
}

/// Calls `f` for each key whose entry differs, ascending.
pub(super) fn diff<'a, V: PartialEq>(
    before: &'a Arc<Node<V>>,
    after: &'a Arc<Node<V>>,
    mut f: impl FnMut(&[u8], Option<&'a V>, Option<&'a V>),
) {
    let (mut old, mut new) = (Remaining::new(before), Remaining::new(after));
    loop {
        // A node that both hold has the same lowest key on both sides. The side whose front is lower is taken apart
        // first, and of two with the same lowest key the higher one, so the node gets to both fronts at once.
        let order = match (old.0.last(), new.0.last()) {
            (None, None) => return,
            (Some(Head::Subtree(left, _)), Some(Head::Subtree(right, _))) if Arc::ptr_eq(left, right) => {
                old.0.pop();
                new.0.pop();
                continue;
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => {
                let by_key = left.first_key().cmp(&right.first_key());
                if by_key.is_eq() && left.levels() != right.levels() {
                    right.levels().cmp(&left.levels())
                } else {
                    by_key
                }
            }
        };
        if order.is_le() && matches!(old.0.last(), Some(Head::Subtree(..))) {
            old.expand();
            if order.is_lt() {
                continue;
            }
        }
        if order.is_ge() && matches!(new.0.last(), Some(Head::Subtree(..))) {
            new.expand();
            continue;
        }
        let left = if order.is_le() { entry(old.0.pop()) } else { None };
        let right = if order.is_ge() { entry(new.0.pop()) } else { None };
        let changed = match (left, right) {
            (Some((_, left)), Some((_, right))) => left != right,
            _ => true,
        };
        if let (true, Some((key, _))) = (changed, left.or(right)) {
            f(key, left.map(|(_, value)| value), right.map(|(_, value)| value));
        }
    }
}

/// The entry at a front, once that is no subtree.
fn entry<'a, V>(head: Option<Head<'a, V>>) -> Option<(&'a [u8], &'a V)> {
    match head? {
        Head::Entry(leaf, index) => Some((leaf.keys.get(index), &leaf.values[index])),
        Head::Subtree(..) => unreachable!("subtrees are expanded before entries are taken"),
    }
}
