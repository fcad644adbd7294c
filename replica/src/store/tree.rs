//! The ordered map that holds every relation and every secondary index: a copy-on-write B+tree whose versions share
//! structure.
//!
//! A clone is a snapshot: it costs one reference count and stays exactly as it was. The writer changes nodes in place
//! while it is their only owner and copies those that a snapshot holds too, so a commit copies one path per key it
//! touches, and memory is freed when the last snapshot that needs it goes.
//!
//! The thread that applies commits writes; any thread reads snapshots, without locks.

mod diff;
mod iter;
mod keys;
mod node;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;

use triomphe::Arc;

pub use iter::{Iter, PrefixIter};
use keys::{KEY_BYTES_MAX, Keys};
use node::{
    INNER_CHILDREN_MAX, Inner, LEAF_ENTRIES_MAX, Leaf, NODE_ITEMS_MIN, NODE_KEY_BYTES_MAX, Node, Separator,
    Split,
};

/// An ordered map from byte strings to `V`. Keys are ordered bytewise, a key before those it is a prefix of.
///
/// Cloning is O(1) and gives a snapshot: later changes to either side do not show in the other. `V` should be cheap to
/// clone (a reference-counted handle), for a changed node that a snapshot shares is copied with all its values.
#[derive(Clone)]
pub struct Tree<V> {
    root: Arc<Node<V>>,
    len: usize,
}

impl<V: Clone> Tree<V> {
    /// An empty tree.
    pub fn new() -> Self {
        Tree { root: Arc::new(Node::empty()), len: 0 }
    }

    /// The number of entries; O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are the same version of one tree, by identity: `true` guarantees equal entries, `false` says
    /// nothing.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(inner) => node = &inner.children[inner.keys.upper_bound(key)],
                Node::Leaf(leaf) => return leaf.keys.search(key).ok().map(|index| &leaf.values[index]),
            }
        }
    }

    /// Whether there is an entry under `key`.
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Puts `value` under `key` and returns the value that stood there before.
    ///
    /// # Panics
    /// When `key` is longer than 32 MiB.
    pub fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        assert_key_length(key);
        let (replaced, split) = Node::insert(&mut self.root, key, value, true);
        if replaced.is_none() {
            self.len += 1;
        }
        if let Some(Split { separator, right }) = split {
            let mut keys = Keys::new();
            keys.push(&separator);
            let children = vec![self.root.clone(), right];
            self.root = Arc::new(Node::Inner(Inner { keys, children }));
        }
        replaced
    }

    /// Takes out the entry under `key` and returns its value. Nothing is copied when there is none.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        if !self.contains_key(key) {
            return None;
        }
        let removed = Node::remove(&mut self.root, key);
        self.len -= 1;
        if let Node::Inner(inner) = &*self.root
            && let [only] = inner.children.as_slice()
        {
            self.root = only.clone();
        }
        debug_assert!(self.len > 0 || self.root.items() == 0, "an emptied tree keeps no nodes");
        Some(removed)
    }

    /// The entries from `start` on, ascending.
    pub fn range_from(&self, start: Bound<&[u8]>) -> Iter<'_, V> {
        Iter::new(&self.root, start)
    }

    /// All entries, ascending.
    pub fn iter(&self) -> Iter<'_, V> {
        self.range_from(Bound::Unbounded)
    }

    /// The entries whose keys start with `prefix`, ascending. Every key starts with the empty prefix.
    pub fn prefix(&self, prefix: &[u8]) -> PrefixIter<'_, V> {
        self.prefix_from(prefix, Bound::Unbounded)
    }

    /// The entries whose keys start with `prefix` and are not below `start` (a whole key, which need not have the
    /// prefix), ascending.
    pub fn prefix_from(&self, prefix: &[u8], start: Bound<&[u8]>) -> PrefixIter<'_, V> {
        PrefixIter::new(&self.root, prefix, start)
    }

    /// All entries in at most so many portions of about one size, ascending.
    pub fn portions(&self, count: usize) -> impl Iterator<Item = impl Iterator<Item = (&[u8], &V)>> {
        // Subtrees of one height, enough of them that their differences even out.
        let mut subtrees: Vec<&Node<V>> = vec![&self.root];
        while subtrees.len() < 16 * count
            && let Some(Node::Inner(_)) = subtrees.first()
        {
            let children = subtrees.iter().flat_map(|node| match node {
                Node::Inner(inner) => inner.children.as_slice(),
                Node::Leaf(_) => &[],
            });
            subtrees = children.map(|child| &**child).collect();
        }
        let size = subtrees.len().div_ceil(count.max(1)).max(1);
        let portions: Vec<Vec<&Node<V>>> = subtrees.chunks(size).map(<[_]>::to_vec).collect();
        portions
            .into_iter()
            .map(|subtrees| subtrees.into_iter().flat_map(|subtree| Iter::new(subtree, Bound::Unbounded)))
    }

    /// Values at so many random places, the same for the same tree. A value may come twice. Nothing for an empty tree.
    pub fn sample(&self, count: usize) -> impl Iterator<Item = &V> {
        let mut seed = 1_u64;
        let mut below = move |count: usize| {
            // Knuth's linear congruential generator; its high bits are the random ones.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % count
        };
        (0..if self.is_empty() { 0 } else { count }).map(move |_| {
            let mut node = &*self.root;
            loop {
                match node {
                    Node::Inner(inner) => node = &inner.children[below(inner.children.len())],
                    Node::Leaf(leaf) => return &leaf.values[below(leaf.values.len())],
                }
            }
        })
    }

    /// The lowest entry whose key starts with `prefix`.
    pub fn first_with_prefix(&self, prefix: &[u8]) -> Option<(&[u8], &V)> {
        self.range_from(Bound::Included(prefix)).next().filter(|(key, _)| key.starts_with(prefix))
    }

    /// Builds a tree from entries in strictly ascending order of keys. Its nodes are full, so it takes less memory than
    /// one built by inserts, and less time.
    ///
    /// # Panics
    /// When a key is not above the one before it, or is longer than 32 MiB.
    pub fn from_sorted(entries: impl Iterator<Item = (impl AsRef<[u8]>, V)>) -> Self {
        let mut builder = Builder::new();
        let mut len = 0;
        for (key, value) in entries {
            builder.push(key.as_ref(), value);
            len += 1;
        }
        Tree { root: builder.finish(), len }
    }

    /// Bytes of the tree's nodes on the heap, including the allocator's rounding but not what values point at. Nodes
    /// shared with snapshots count in full. Visits every node.
    pub fn heap_bytes(&self) -> usize {
        fn visit<V>(node: &Node<V>) -> usize {
            let (key_bytes, end_bytes) = node.keys().capacity_bytes();
            let (item_bytes, below) = match node {
                Node::Leaf(leaf) => (leaf.values.capacity() * size_of::<V>(), 0),
                Node::Inner(inner) => {
                    let below = inner.children.iter().map(|child| visit(child)).sum();
                    (inner.children.capacity() * size_of::<Arc<Node<V>>>(), below)
                }
            };
            let own = size_of::<usize>() + size_of::<Node<V>>();
            [own, key_bytes, end_bytes, item_bytes].into_iter().map(allocated).sum::<usize>() + below
        }
        visit(&self.root)
    }

    /// Calls `f` with each key whose entry differs between two trees, ascending, with its value before and after
    /// (`None` where the key is absent). Nodes that both share are skipped, so comparing two versions of one tree costs
    /// what changed between them.
    pub fn diff<'a>(before: &'a Self, after: &'a Self, f: impl FnMut(&[u8], Option<&'a V>, Option<&'a V>))
    where
        V: PartialEq,
    {
        diff::diff(&before.root, &after.root, f);
    }
}

impl<V: Clone> Default for Tree<V> {
    fn default() -> Self {
        Tree::new()
    }
}

impl<V: Clone + fmt::Debug> fmt::Debug for Tree<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a, V: Clone> IntoIterator for &'a Tree<V> {
    type Item = (&'a [u8], &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Iter<'a, V> {
        self.iter()
    }
}

fn assert_key_length(key: &[u8]) {
    assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes is longer than {KEY_BYTES_MAX}", key.len());
}

/// What an allocation of `bytes` takes: common allocators keep one word beside it and round to 16 bytes.
fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + size_of::<usize>()).next_multiple_of(16).max(32) }
}

/// A finished node and the separator between it and its left neighbour (empty for the first one).
type Sibling<V> = (Separator, Arc<Node<V>>);

/// Packs ascending entries into full leaves, then builds the levels above.
struct Builder<V> {
    keys: Keys,
    values: Vec<V>,
    separator: Separator,
    leaves: Vec<Sibling<V>>,
}

impl<V> Builder<V> {
    fn new() -> Self {
        Builder { keys: Keys::new(), values: Vec::new(), separator: Separator::new(), leaves: Vec::new() }
    }

    fn push(&mut self, key: &[u8], value: V) {
        assert_key_length(key);
        if let Some(last) = self.keys.last() {
            assert!(last < key, "the keys of sorted entries ascend strictly");
            if is_packed(self.values.len(), LEAF_ENTRIES_MAX, self.keys.total_bytes() + key.len()) {
                let separator = node::separator(last, key);
                self.close_leaf();
                self.separator = separator;
            }
        }
        self.keys.push(key);
        self.values.push(value);
    }

    fn close_leaf(&mut self) {
        let mut keys = std::mem::replace(&mut self.keys, Keys::new());
        let mut values = std::mem::take(&mut self.values);
        keys.shrink();
        values.shrink_to_fit();
        let leaf = Arc::new(Node::Leaf(Leaf { keys, values }));
        self.leaves.push((std::mem::take(&mut self.separator), leaf));
    }

    fn finish(mut self) -> Arc<Node<V>> {
        self.close_leaf();
        let mut level = self.leaves;
        while level.len() > 1 {
            level = level_above(level);
        }
        level.pop().expect("a level has at least one node").1
    }
}

/// Whether a node under construction is closed before its next item, with which its keys would take `key_bytes`.
fn is_packed(items: usize, items_max: usize, key_bytes: usize) -> bool {
    items == items_max || (items >= NODE_ITEMS_MIN && key_bytes > NODE_KEY_BYTES_MAX)
}

/// Packs the nodes of one level (two or more) into inner nodes.
fn level_above<V>(level: Vec<Sibling<V>>) -> Vec<Sibling<V>> {
    let mut above: Vec<Sibling<V>> = Vec::new();
    let mut remaining = level.len();
    let mut open: Option<(Separator, Inner<V>)> = None;
    for (separator, child) in level {
        // The last child never stands alone: every inner node has two.
        let next = open.take_if(|(_, inner)| {
            let items = inner.children.len();
            let packed = is_packed(items, INNER_CHILDREN_MAX, inner.keys.total_bytes() + separator.len());
            remaining > 1 && (packed || (remaining == 2 && items + 1 == INNER_CHILDREN_MAX))
        });
        if let Some((first, inner)) = next {
            above.push(close_inner(first, inner));
        }
        match &mut open {
            None => open = Some((separator, Inner { keys: Keys::new(), children: vec![child] })),
            Some((_, inner)) => {
                inner.keys.push(&separator);
                inner.children.push(child);
            }
        }
        remaining -= 1;
    }
    let (first, inner) = open.expect("a level has at least one node");
    above.push(close_inner(first, inner));
    above
}

fn close_inner<V>(separator: Separator, mut inner: Inner<V>) -> Sibling<V> {
    inner.keys.shrink();
    inner.children.shrink_to_fit();
    (separator, Arc::new(Node::Inner(inner)))
}
