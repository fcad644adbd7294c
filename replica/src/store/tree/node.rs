//! Nodes of the tree and how they grow, split and merge.
//!
//! A node is changed in place when the tree is its only owner and copied first when a snapshot holds it too.

use smallvec::SmallVec;
use triomphe::Arc;

use super::keys::{Keys, clone_with_room, insert_with_room};

/// Entries of a leaf, at most. A commit that changes one entry copies its leaf and touches the reference count of every
/// value in it, so small leaves make commits cheap; large ones spread the node's fixed cost over more entries.
pub(super) const LEAF_ENTRIES_MAX: usize = 32;
/// Children of an inner node, at most. Higher than the leaf's limit: inner nodes are few and mostly cached, so copying
/// them costs less than one more level on the way down.
pub(super) const INNER_CHILDREN_MAX: usize = 64;
/// Key bytes of a node above which it splits early, so that long keys do not make copies expensive.
pub(super) const NODE_KEY_BYTES_MAX: usize = 8 << 10;
/// Items that every node but the root and those on the right edge holds, whatever the length of its keys.
pub(super) const NODE_ITEMS_MIN: usize = 4;

const _: () = assert!(LEAF_ENTRIES_MAX >= 4 * NODE_ITEMS_MIN && INNER_CHILDREN_MAX >= 4 * NODE_ITEMS_MIN);

/// A separator is shortened when its key is longer than this. Short ones are kept whole: a node whose keys have one
/// width needs no key ends, which saves more.
const SEPARATOR_BYTES_WHOLE: usize = 16;

/// The key between two nodes: above every key to the left, at or below every key to the right.
pub(super) type Separator = SmallVec<[u8; 48]>;

pub(super) enum Node<V> {
    Leaf(Leaf<V>),
    Inner(Inner<V>),
}

/// Entries: value `i` stands under key `i`.
pub(super) struct Leaf<V> {
    pub(super) keys: Keys,
    pub(super) values: Vec<V>,
}

/// Children with the separators between them: separator `i` stands between children `i` and `i + 1`.
pub(super) struct Inner<V> {
    pub(super) keys: Keys,
    pub(super) children: Vec<Arc<Node<V>>>,
}

/// What a split leaves to the parent: the new right sibling and the separator before it.
pub(super) struct Split<V> {
    pub(super) separator: Separator,
    pub(super) right: Arc<Node<V>>,
}

impl<V: Clone> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(leaf) => {
                Node::Leaf(Leaf { keys: leaf.keys.clone(), values: clone_with_room(&leaf.values) })
            }
            Node::Inner(inner) => {
                Node::Inner(Inner { keys: inner.keys.clone(), children: clone_with_room(&inner.children) })
            }
        }
    }
}

/// A separator for neighbours whose last and first keys are `left` and `right`.
pub(super) fn separator(left: &[u8], right: &[u8]) -> Separator {
    debug_assert!(left < right, "keys ascend across neighbours");
    if right.len() <= SEPARATOR_BYTES_WHOLE {
        return Separator::from_slice(right);
    }
    let common = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    Separator::from_slice(&right[..common + 1])
}

impl<V> Node<V> {
    pub(super) fn empty() -> Self {
        Node::Leaf(Leaf { keys: Keys::new(), values: Vec::new() })
    }

    /// Entries of a leaf, children of an inner node.
    pub(super) fn items(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.values.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    pub(super) fn items_max(&self) -> usize {
        match self {
            Node::Leaf(_) => LEAF_ENTRIES_MAX,
            Node::Inner(_) => INNER_CHILDREN_MAX,
        }
    }

    pub(super) fn keys(&self) -> &Keys {
        match self {
            Node::Leaf(leaf) => &leaf.keys,
            Node::Inner(inner) => &inner.keys,
        }
    }

    /// Whether the node has to split. Few items never do, however long their keys, so that both halves keep
    /// `NODE_ITEMS_MIN`.
    pub(super) fn is_overfull(&self) -> bool {
        let items = self.items();
        items > self.items_max()
            || (items >= 2 * NODE_ITEMS_MIN && self.keys().total_bytes() > NODE_KEY_BYTES_MAX)
    }

    /// Whether the node should join a neighbour.
    fn is_underfull(&self) -> bool {
        let items = self.items();
        items < NODE_ITEMS_MIN
            || (items < self.items_max() / 3 && self.keys().total_bytes() < NODE_KEY_BYTES_MAX / 4)
    }

    /// Moves the items from `at` on into a new right sibling. Both sides get at least one.
    fn split(&mut self, at: usize) -> Split<V> {
        debug_assert!(0 < at && at < self.items(), "a split leaves nothing empty");
        match self {
            Node::Leaf(leaf) => {
                let count = leaf.values.len();
                let separator = separator(leaf.keys.get(at - 1), leaf.keys.get(at));
                let keys = leaf.keys.slice(at, count);
                leaf.keys = leaf.keys.slice(0, at);
                let values = leaf.values.split_off(at);
                leaf.values.shrink_to_fit();
                Split { separator, right: Arc::new(Node::Leaf(Leaf { keys, values })) }
            }
            Node::Inner(inner) => {
                let count = inner.keys.len();
                let separator = Separator::from_slice(inner.keys.get(at - 1));
                let keys = inner.keys.slice(at, count);
                inner.keys = inner.keys.slice(0, at - 1);
                let children = inner.children.split_off(at);
                inner.children.shrink_to_fit();
                Split { separator, right: Arc::new(Node::Inner(Inner { keys, children })) }
            }
        }
    }
}

impl<V: Clone> Node<V> {
    /// Inserts below `this`; `right_edge` says that no node of the tree stands to its right.
    pub(super) fn insert(
        this: &mut Arc<Self>,
        key: &[u8],
        value: V,
        right_edge: bool,
    ) -> (Option<V>, Option<Split<V>>) {
        let node = Arc::make_mut(this);
        let appended = match node {
            Node::Leaf(leaf) => match leaf.keys.search(key) {
                Ok(index) => return (Some(std::mem::replace(&mut leaf.values[index], value)), None),
                Err(index) => {
                    leaf.keys.insert(index, key);
                    insert_with_room(&mut leaf.values, index, value);
                    index + 1 == leaf.values.len()
                }
            },
            Node::Inner(inner) => {
                let index = inner.keys.upper_bound(key);
                let last = index + 1 == inner.children.len();
                let (replaced, split) =
                    Node::insert(&mut inner.children[index], key, value, right_edge && last);
                let Some(Split { separator, right }) = split else { return (replaced, None) };
                inner.keys.insert(index, &separator);
                insert_with_room(&mut inner.children, index + 1, right);
                last
            }
        };
        if !node.is_overfull() {
            return (None, None);
        }
        // Keys that arrive in ascending order never come back to the left side of a split at the right edge: it stays
        // full. An inner node keeps two children, so that each has a neighbour to merge with.
        let at = match node {
            _ if !(appended && right_edge) => node.items() / 2,
            Node::Leaf(_) => node.items() - 1,
            Node::Inner(_) => node.items() - 2,
        };
        (None, Some(node.split(at)))
    }

    /// Removes `key`, which is present, from below `this`. The caller mends `this` when it is underfull afterwards.
    pub(super) fn remove(this: &mut Arc<Self>, key: &[u8]) -> V {
        match Arc::make_mut(this) {
            Node::Leaf(leaf) => {
                let index = leaf.keys.search(key).expect("the caller has found the key");
                leaf.keys.remove(index);
                leaf.values.remove(index)
            }
            Node::Inner(inner) => {
                let index = inner.keys.upper_bound(key);
                let removed = Node::remove(&mut inner.children[index], key);
                if inner.children[index].is_underfull() {
                    inner.mend(index);
                }
                removed
            }
        }
    }

    /// Appends the items of `right`, the next node of the same kind.
    fn append(&mut self, separator: &[u8], right: Self) {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(mut right)) => {
                left.keys.append(&right.keys);
                left.values.reserve_exact(right.values.len());
                left.values.append(&mut right.values);
            }
            (Node::Inner(left), Node::Inner(mut right)) => {
                left.keys.push(separator);
                left.keys.append(&right.keys);
                left.children.reserve_exact(right.children.len());
                left.children.append(&mut right.children);
            }
            _ => unreachable!("all leaves are at one depth"),
        }
    }
}

impl<V: Clone> Inner<V> {
    /// Joins the underfull child `index` with a neighbour; where both together are too much for one node, shares
    /// their items evenly.
    fn mend(&mut self, index: usize) {
        debug_assert!(self.children.len() >= 2, "every inner node has two children");
        let left = index.saturating_sub(1);
        let right = Arc::unwrap_or_clone(self.children.remove(left + 1));
        let separator = Separator::from_slice(self.keys.get(left));
        self.keys.remove(left);
        let joined = Arc::make_mut(&mut self.children[left]);
        joined.append(&separator, right);
        if joined.is_overfull() {
            let middle = joined.items() / 2;
            let Split { separator, right } = joined.split(middle);
            self.keys.insert(left, &separator);
            insert_with_room(&mut self.children, left + 1, right);
        }
    }
}
