//! A persistent ordered sequence: a copy-on-write B+ tree of shared items, keyed by the items' encoded order.
//!
//! A place's rows under one correlation key are one sequence. Readers keep clones, which cost one reference count;
//! a change copies only the path to one leaf, and nothing at all while nobody else holds that path.

use std::{fmt, sync::Arc};

/// Most items of a leaf and most children of a branch.
const FANOUT_MAX: usize = 32;
/// Neighbours that together hold at most this many are merged after a removal.
const MERGE_MAX: usize = 24;

/// An item's place in the order: bytes whose order is the order, unique within one sequence.
pub(crate) trait Keyed {
    /// The encoded order, shared so that branches can name it without a copy.
    fn order_key(&self) -> &Arc<[u8]>;
}

/// Shared items in the order of their keys.
pub(crate) struct Sequence<T> {
    root: Arc<Tree<T>>,
    len: usize,
}

enum Tree<T> {
    Leaf(Vec<Arc<T>>),
    Branch(Vec<Child<T>>),
}

struct Child<T> {
    /// No key of this child is below, none of its left neighbour's is at or above. The first child's also covers
    /// everything below it.
    least: Arc<[u8]>,
    len: usize,
    tree: Arc<Tree<T>>,
}

impl<T> Clone for Sequence<T> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root), len: self.len }
    }
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(items) => {
                let mut copy = Vec::with_capacity(FANOUT_MAX + 1);
                copy.extend(items.iter().cloned());
                Self::Leaf(copy)
            }
            Self::Branch(children) => {
                let mut copy = Vec::with_capacity(FANOUT_MAX + 1);
                copy.extend(children.iter().cloned());
                Self::Branch(copy)
            }
        }
    }
}

impl<T> Clone for Child<T> {
    fn clone(&self) -> Self {
        Self { least: Arc::clone(&self.least), len: self.len, tree: Arc::clone(&self.tree) }
    }
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self { root: Arc::new(Tree::Leaf(Vec::new())), len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sequence<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Sequence<T> {
    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether both are one and the same version, without looking at any item.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// The item at a position.
    pub(crate) fn at(&self, mut index: usize) -> Option<&Arc<T>> {
        let mut tree = &*self.root;
        loop {
            match tree {
                Tree::Leaf(items) => return items.get(index),
                Tree::Branch(children) => {
                    let child = children.iter().find(|child| {
                        let here = index < child.len;
                        if !here {
                            index -= child.len;
                        }
                        here
                    })?;
                    tree = &child.tree;
                }
            }
        }
    }

    /// The items in order.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { path: Vec::new(), leaf: [].iter(), left: self.len };
        iter.descend(&self.root);
        iter
    }
}

impl<T: Keyed> Sequence<T> {
    /// The item under a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Arc<T>> {
        let mut tree = &*self.root;
        loop {
            match tree {
                Tree::Leaf(items) => return find(items, key).ok().map(|index| &items[index]),
                Tree::Branch(children) => tree = &children[child_for(children, key)].tree,
            }
        }
    }

    /// Puts an item in its position; returns the one that stood there under the same key.
    pub(crate) fn insert(&mut self, item: Arc<T>) -> Option<Arc<T>> {
        let (replaced, split) = insert(&mut self.root, item);
        if let Some(right) = split {
            let left = Arc::clone(&self.root);
            let left = Child { least: Arc::from([]), len: left.len(), tree: left };
            self.root = Arc::new(Tree::Branch(vec![left, right]));
        }
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Takes the item under a key out.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Arc<T>> {
        // Looking first keeps a miss from copying the path.
        self.get(key)?;
        let removed = remove(&mut self.root, key);
        self.len -= usize::from(removed.is_some());
        while let Tree::Branch(children) = &*self.root
            && let [only] = children.as_slice()
        {
            self.root = Arc::clone(&only.tree);
        }
        removed
    }
}

impl<T> Tree<T> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    /// Items of a leaf or children of a branch.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.len(),
        }
    }
}

fn find<T: Keyed>(items: &[Arc<T>], key: &[u8]) -> Result<usize, usize> {
    items.binary_search_by(|item| (**item.order_key()).cmp(key))
}

fn child_for<T>(children: &[Child<T>], key: &[u8]) -> usize {
    children.partition_point(|child| *child.least <= *key).saturating_sub(1)
}

fn insert<T: Keyed>(tree: &mut Arc<Tree<T>>, item: Arc<T>) -> (Option<Arc<T>>, Option<Child<T>>) {
    match Arc::make_mut(tree) {
        Tree::Leaf(items) => match find(items, item.order_key()) {
            Ok(index) => (Some(std::mem::replace(&mut items[index], item)), None),
            Err(index) => {
                items.insert(index, item);
                if items.len() <= FANOUT_MAX {
                    return (None, None);
                }
                // A list that is filled in its order leaves full leaves behind rather than half-full ones.
                let at = if index + 1 == items.len() { FANOUT_MAX } else { FANOUT_MAX / 2 };
                let right = items.split_off(at);
                let least = Arc::clone(right[0].order_key());
                (None, Some(Child { least, len: right.len(), tree: Arc::new(Tree::Leaf(right)) }))
            }
        },
        Tree::Branch(children) => {
            let index = child_for(children, item.order_key());
            let (replaced, split) = insert(&mut children[index].tree, item);
            match split {
                Some(right) => {
                    children[index].len = children[index].len + 1 - right.len;
                    children.insert(index + 1, right);
                }
                None => children[index].len += usize::from(replaced.is_none()),
            }
            if children.len() <= FANOUT_MAX {
                return (replaced, None);
            }
            let at = if index + 2 == children.len() { FANOUT_MAX } else { FANOUT_MAX / 2 };
            let right = children.split_off(at);
            let least = Arc::clone(&right[0].least);
            let tree = Tree::Branch(right);
            (replaced, Some(Child { least, len: tree.len(), tree: Arc::new(tree) }))
        }
    }
}

fn remove<T: Keyed>(tree: &mut Arc<Tree<T>>, key: &[u8]) -> Option<Arc<T>> {
    match Arc::make_mut(tree) {
        Tree::Leaf(items) => find(items, key).ok().map(|index| items.remove(index)),
        Tree::Branch(children) => {
            let index = child_for(children, key);
            let removed = remove(&mut children[index].tree, key)?;
            children[index].len -= 1;
            if children[index].len == 0 {
                children.remove(index);
            } else {
                let left = index.saturating_sub(1);
                if left + 1 < children.len()
                    && children[left].tree.width() + children[left + 1].tree.width() <= MERGE_MAX
                {
                    let right = children.remove(left + 1);
                    let into = &mut children[left];
                    into.len += right.len;
                    match (Arc::make_mut(&mut into.tree), &*right.tree) {
                        (Tree::Leaf(into), Tree::Leaf(from)) => into.extend(from.iter().cloned()),
                        (Tree::Branch(into), Tree::Branch(from)) => into.extend(from.iter().cloned()),
                        _ => unreachable!("all leaves have one depth"),
                    }
                }
            }
            Some(removed)
        }
    }
}

/// See [`Sequence::iter`].
pub(crate) struct Iter<'a, T> {
    path: Vec<std::slice::Iter<'a, Child<T>>>,
    leaf: std::slice::Iter<'a, Arc<T>>,
    left: usize,
}

impl<'a, T> Iter<'a, T> {
    fn descend(&mut self, mut tree: &'a Tree<T>) {
        loop {
            match tree {
                Tree::Leaf(items) => {
                    self.leaf = items.iter();
                    return;
                }
                Tree::Branch(children) => {
                    let mut children = children.iter();
                    let Some(first) = children.next() else { return };
                    self.path.push(children);
                    tree = &first.tree;
                }
            }
        }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a Arc<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.leaf.next() {
                self.left -= 1;
                return Some(item);
            }
            match self.path.last_mut()?.next() {
                Some(child) => self.descend(&child.tree),
                None => {
                    self.path.pop();
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug)]
    struct Item(Arc<[u8]>, u32);

    impl Keyed for Item {
        fn order_key(&self) -> &Arc<[u8]> {
            &self.0
        }
    }

    fn item(key: u16, value: u32) -> Arc<Item> {
        Arc::new(Item(Arc::from(key.to_be_bytes()), value))
    }

    fn check(sequence: &Sequence<Item>, model: &BTreeMap<u16, u32>) {
        assert_eq!(sequence.len(), model.len());
        let got: Vec<_> =
            sequence.iter().map(|i| (u16::from_be_bytes([i.0[0], i.0[1]]), i.1)).collect::<Vec<_>>();
        let want: Vec<_> = model.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(got, want);
        for (index, (key, value)) in want.iter().enumerate() {
            assert_eq!(sequence.at(index).map(|i| i.1), Some(*value));
            assert_eq!(sequence.get(&key.to_be_bytes()).map(|i| i.1), Some(*value));
        }
        assert!(sequence.at(want.len()).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn is_an_ordered_map_and_clones_stand_still(
            steps in prop::collection::vec((any::<bool>(), 0_u16..400, any::<u32>()), 0..1_500),
        ) {
            let (mut sequence, mut model) = (Sequence::default(), BTreeMap::new());
            let mut kept = Vec::new();
            for (index, (put, key, value)) in steps.iter().enumerate() {
                if *put || index < 500 {
                    let replaced = sequence.insert(item(*key, *value)).map(|i| i.1);
                    prop_assert_eq!(replaced, model.insert(*key, *value));
                } else {
                    let removed = sequence.remove(&key.to_be_bytes()).map(|i| i.1);
                    prop_assert_eq!(removed, model.remove(key));
                }
                if index % 200 == 0 {
                    kept.push((sequence.clone(), model.clone()));
                }
            }
            kept.push((sequence, model));
            for (sequence, model) in &kept {
                check(sequence, model);
            }
        }
    }

    #[test]
    fn fills_in_order_and_empties() {
        let (mut sequence, mut model) = (Sequence::default(), BTreeMap::new());
        for key in 0..5_000 {
            sequence.insert(item(key, 1));
            model.insert(key, 1);
        }
        check(&sequence, &model);
        for key in 0..5_000_u16 {
            assert!(sequence.remove(&key.to_be_bytes()).is_some());
        }
        check(&sequence, &BTreeMap::new());
    }
}
