//! Ascending iteration: a stack of (inner node, next child) and a place in the current leaf. Nothing is allocated per
//! item, and per leaf only when the tree is deeper than the inline stack.

use std::iter::FusedIterator;
use std::ops::Bound;

use smallvec::SmallVec;

use super::node::{Inner, Leaf, Node};

/// The entries of a [`Tree`](super::Tree) from a lower bound on, ascending by key.
pub struct Iter<'a, V> {
    /// The inner nodes above the current leaf with the child to visit after it; the root's first.
    stack: SmallVec<[(&'a Inner<V>, usize); 6]>,
    leaf: Option<&'a Leaf<V>>,
    /// The next entry of `leaf`, and where this iteration leaves it.
    at: usize,
    end: usize,
}

/// The entries of a [`Tree`](super::Tree) whose keys start with a prefix, ascending by key.
pub struct PrefixIter<'a, V> {
    entries: Iter<'a, V>,
    /// The prefix, borrowed from the first key that has it.
    prefix: &'a [u8],
}

impl<'a, V> Iter<'a, V> {
    pub(super) fn new(mut node: &'a Node<V>, start: Bound<&[u8]>) -> Self {
        let mut stack = SmallVec::new();
        loop {
            match node {
                Node::Inner(inner) => {
                    let child = match start {
                        Bound::Included(key) | Bound::Excluded(key) => inner.keys.upper_bound(key),
                        Bound::Unbounded => 0,
                    };
                    stack.push((inner, child + 1));
                    node = &inner.children[child];
                }
                Node::Leaf(leaf) => {
                    let at = match start {
                        Bound::Included(key) => leaf.keys.lower_bound(key),
                        Bound::Excluded(key) => leaf.keys.upper_bound(key),
                        Bound::Unbounded => 0,
                    };
                    return Iter { stack, leaf: Some(leaf), at, end: leaf.values.len() };
                }
            }
        }
    }

    /// Moves to the first entry of the next leaf, if there is one.
    fn next_leaf(&mut self) -> Option<()> {
        self.leaf = None;
        (self.at, self.end) = (0, 0);
        loop {
            let (inner, next) = self.stack.last_mut()?;
            let Some(child) = inner.children.get(*next) else {
                self.stack.pop();
                continue;
            };
            *next += 1;
            let mut node = &**child;
            loop {
                match node {
                    Node::Inner(inner) => {
                        self.stack.push((inner, 1));
                        node = &inner.children[0];
                    }
                    Node::Leaf(leaf) => {
                        self.leaf = Some(leaf);
                        self.end = leaf.values.len();
                        return Some(());
                    }
                }
            }
        }
    }

    /// The key of the next entry.
    fn peek_key(&mut self) -> Option<&'a [u8]> {
        if self.at == self.end {
            self.next_leaf()?;
        }
        self.leaf.map(|leaf| leaf.keys.get(self.at))
    }

    /// Ends the iteration within the current leaf where keys stop having `prefix`; all keys from `at` on are at or
    /// above it.
    fn limit_to(&mut self, prefix: &[u8]) {
        let Some(leaf) = self.leaf else { return };
        if leaf.keys.last().is_some_and(|key| key.starts_with(prefix)) {
            return;
        }
        self.end = leaf.keys.partition_point(|key| &key[..key.len().min(prefix.len())] <= prefix);
        self.stack.clear();
    }
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a [u8], &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end {
            self.next_leaf()?;
        }
        let (leaf, at) = (self.leaf?, self.at);
        self.at += 1;
        Some((leaf.keys.get(at), &leaf.values[at]))
    }
}

impl<V> FusedIterator for Iter<'_, V> {}

impl<'a, V> PrefixIter<'a, V> {
    pub(super) fn new(root: &'a Node<V>, prefix: &[u8], start: Bound<&[u8]>) -> Self {
        // A start at or above the prefix already skips everything below it.
        let start = match start {
            Bound::Included(key) | Bound::Excluded(key) if key >= prefix => start,
            _ => Bound::Included(prefix),
        };
        let mut entries = Iter::new(root, start);
        match entries.peek_key() {
            Some(key) if key.starts_with(prefix) => {
                let prefix = &key[..prefix.len()];
                entries.limit_to(prefix);
                PrefixIter { entries, prefix }
            }
            _ => {
                entries.stack.clear();
                entries.end = entries.at;
                PrefixIter { entries, prefix: &[] }
            }
        }
    }
}

impl<'a, V> Iterator for PrefixIter<'a, V> {
    type Item = (&'a [u8], &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.entries.at == self.entries.end {
            self.entries.next_leaf()?;
            self.entries.limit_to(self.prefix);
        }
        if self.entries.at == self.entries.end { None } else { self.entries.next() }
    }
}

impl<V> FusedIterator for PrefixIter<'_, V> {}
