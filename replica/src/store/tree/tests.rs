//! The tree against `BTreeMap`, with its structure checked after every change.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Vec<u8>, u64>;

/// Asserts what the node rules promise: one depth, ascending keys between the separators, limits kept.
fn check_structure<V: Clone>(tree: &Tree<V>) {
    /// Returns (height, entries).
    fn check<V>(node: &Node<V>, low: Option<&[u8]>, high: Option<&[u8]>, root: bool) -> (usize, usize) {
        let keys = node.keys();
        let within = |key: &[u8]| low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high);
        assert!((0..keys.len()).all(|index| within(keys.get(index))), "keys stay between the separators");
        assert!((1..keys.len()).all(|index| keys.get(index - 1) < keys.get(index)), "keys ascend");
        assert!(node.items() <= node.items_max(), "a node is within its limit");
        let right_edge = high.is_none();
        assert!(root || right_edge || node.items() >= NODE_ITEMS_MIN, "a node is not left nearly empty");
        match node {
            Node::Leaf(leaf) => {
                assert_eq!(keys.len(), leaf.values.len());
                assert!(root || keys.len() > 0, "only the root may be empty");
                (0, keys.len())
            }
            Node::Inner(inner) => {
                let last = inner.children.len() - 1;
                assert!(last >= 1, "an inner node has two children");
                assert_eq!(keys.len(), last);
                let below: Vec<_> = (0..=last)
                    .map(|index| {
                        let low = if index == 0 { low } else { Some(keys.get(index - 1)) };
                        let high = if index == last { high } else { Some(keys.get(index)) };
                        check(&inner.children[index], low, high, false)
                    })
                    .collect();
                assert!(below.iter().all(|(height, _)| *height == below[0].0), "all leaves are at one depth");
                (below[0].0 + 1, below.iter().map(|(_, entries)| entries).sum())
            }
        }
    }
    assert_eq!(check(&tree.root, None, None, true).1, tree.len(), "the length counts the entries");
}

fn height<V>(tree: &Tree<V>) -> usize {
    let (mut node, mut height) = (&*tree.root, 0);
    while let Node::Inner(inner) = node {
        (node, height) = (&*inner.children[0], height + 1);
    }
    height
}

fn entries<'a>(items: impl Iterator<Item = (&'a [u8], &'a u64)>) -> Vec<(Vec<u8>, u64)> {
    items.map(|(key, value)| (key.to_vec(), *value)).collect()
}

fn owned(model: &Model) -> Vec<(Vec<u8>, u64)> {
    model.iter().map(|(key, value)| (key.clone(), *value)).collect()
}

fn integer_key(n: u64) -> Vec<u8> {
    let mut key = vec![2];
    key.extend(n.to_be_bytes());
    key
}

/// Pseudo-random but fixed numbers, all different.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Keys that collide, nest, mix widths and now and then exceed a node's key bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..400u64).prop_map(integer_key),
        4 => vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(255)], 0..6),
        2 => (0..40u8, 1..40usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (0..60u8, 500..3_000usize).prop_map(|(byte, len)| {
            let mut key = vec![7; len];
            key.push(byte);
            key
        }),
        1 => Just(Vec::new()),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

#[test]
fn portions_are_all_entries_in_order() {
    for len in [0, 1, 33, 2_000, 50_000] {
        let tree: Tree<u64> = Tree::from_sorted((0..len).map(|n| (integer_key(n), n)));
        for count in [1, 2, 3, 7] {
            let portions: Vec<Vec<_>> = tree.portions(count).map(entries).collect();
            assert!(portions.len() <= count, "{} portions of {len} entries", portions.len());
            assert_eq!(portions.concat(), entries(tree.iter()));
            if len >= 2_000 {
                let even = tree.len() / count;
                assert_eq!(portions.len(), count);
                assert!(portions.iter().all(|portion| portion.len() > even / 2 && portion.len() < 2 * even));
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u64),
    Remove(Vec<u8>),
    /// Removes the present key at this fraction of the order, so that removals mostly hit.
    RemoveAt(prop::sample::Index),
    Snapshot,
}

fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    // Trees that grow and trees that shrink: the share of removals is drawn per run.
    (1..8u32).prop_flat_map(move |removals| {
        let step = prop_oneof![
            8 => (key(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
            1 => key().prop_map(Step::Remove),
            removals => any::<prop::sample::Index>().prop_map(Step::RemoveAt),
            1 => Just(Step::Snapshot),
        ];
        vec(step, 0..max)
    })
}

/// Applies a step to both, comparing what they return.
fn apply(tree: &mut Tree<u64>, model: &mut Model, step: Step) {
    match step {
        Step::Insert(key, value) => assert_eq!(tree.insert(&key, value), model.insert(key, value)),
        Step::Remove(key) => assert_eq!(tree.remove(&key), model.remove(&key)),
        Step::RemoveAt(_) if model.is_empty() => {}
        Step::RemoveAt(index) => {
            let key = model.keys().nth(index.index(model.len())).unwrap().clone();
            assert_eq!(tree.remove(&key), model.remove(&key));
        }
        Step::Snapshot => {}
    }
}

fn check_diff(before: (&Tree<u64>, &Model), after: (&Tree<u64>, &Model)) {
    let mut found = Vec::new();
    Tree::diff(before.0, after.0, |key, old, new| found.push((key.to_vec(), old.copied(), new.copied())));
    let mut keys: Vec<_> = before.1.keys().chain(after.1.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    let expected: Vec<_> = keys
        .into_iter()
        .map(|key| (key.clone(), before.1.get(&key).copied(), after.1.get(&key).copied()))
        .filter(|(_, old, new)| old != new)
        .collect();
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_model_and_snapshots_stay(steps in steps(900)) {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        let mut snapshots = vec![(tree.clone(), model.clone())];
        for step in steps {
            if let Step::Snapshot = step {
                snapshots.push((tree.clone(), model.clone()));
            }
            apply(&mut tree, &mut model, step);
            check_structure(&tree);
        }
        prop_assert_eq!(entries(tree.iter()), owned(&model));
        for key in model.keys() {
            prop_assert_eq!(tree.get(key), model.get(key));
        }
        for (snapshot, then) in &snapshots {
            check_structure(snapshot);
            prop_assert_eq!(entries(snapshot.iter()), owned(then));
            check_diff((snapshot, then), (&tree, &model));
        }
    }

    #[test]
    fn emptied_tree_is_one_leaf(keys in vec(key(), 0..600), order in any::<u64>()) {
        let mut tree: Tree<u64> = keys.iter().fold(Tree::new(), |mut tree, key| {
            tree.insert(key, 1);
            tree
        });
        let snapshot = tree.clone();
        let mut rest: Vec<_> = snapshot.iter().map(|(key, _)| key.to_vec()).collect();
        rest.sort_by_key(|key| key.iter().fold(order, |hash, byte| scattered(hash ^ u64::from(*byte))));
        for key in &rest {
            prop_assert_eq!(tree.remove(key), Some(1));
            prop_assert_eq!(tree.get(key), None);
            check_structure(&tree);
        }
        prop_assert!(tree.is_empty());
        prop_assert_eq!(height(&tree), 0);
        check_structure(&snapshot);
    }

    #[test]
    fn ranges_and_prefixes_equal_the_model(
        keys in vec(key(), 0..500),
        queries in vec((key(), bound()), 1..40),
    ) {
        let model: Model = keys.into_iter().zip(0..).collect();
        let mut inserted = Tree::new();
        for (key, value) in &model {
            inserted.insert(key, *value);
        }
        let built = Tree::from_sorted(model.iter().map(|(key, value)| (key, *value)));
        check_structure(&built);
        for tree in [&inserted, &built] {
            for (prefix, start) in &queries {
                let range: Vec<_> = model
                    .range::<[u8], _>((borrowed(start), Bound::Unbounded))
                    .map(|(key, value)| (key.clone(), *value))
                    .collect();
                let with_prefix = |items: &[(Vec<u8>, u64)]| {
                    items.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect::<Vec<_>>()
                };
                let all = with_prefix(&owned(&model));
                prop_assert_eq!(entries(tree.range_from(borrowed(start))), range.clone());
                prop_assert_eq!(entries(tree.prefix(prefix)), all.clone());
                prop_assert_eq!(entries(tree.prefix_from(prefix, borrowed(start))), with_prefix(&range));
                prop_assert_eq!(entries(tree.first_with_prefix(prefix).into_iter()), all[..all.len().min(1)].to_vec());
            }
        }
    }

    #[test]
    fn built_tree_takes_changes(keys in vec(key(), 0..500), steps in steps(300)) {
        let mut model: Model = keys.into_iter().zip(0..).collect();
        let mut tree = Tree::from_sorted(model.iter().map(|(key, value)| (key, *value)));
        let before = (tree.clone(), model.clone());
        for step in steps {
            apply(&mut tree, &mut model, step);
            check_structure(&tree);
        }
        prop_assert_eq!(entries(tree.iter()), owned(&model));
        check_diff((&before.0, &before.1), (&tree, &model));
        check_diff((&tree, &model), (&before.0, &before.1));
    }

    #[test]
    fn diff_of_unrelated_trees_equals_brute_force(left in vec((key(), 0..3u64), 0..300), right in vec((key(), 0..3u64), 0..300)) {
        let (left, right): (Model, Model) = (left.into_iter().collect(), right.into_iter().collect());
        let build = |model: &Model| Tree::from_sorted(model.iter().map(|(key, value)| (key, *value)));
        check_diff((&build(&left), &left), (&build(&right), &right));
    }
}

/// Larger trees, several levels deep, in the orders that matter: ascending, descending, scattered.
#[test]
fn deep_trees_keep_their_structure() {
    const COUNT: u64 = 40_000;
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| COUNT - n, scattered];
    for order in orders {
        let mut tree = Tree::new();
        for n in 0..COUNT {
            assert_eq!(tree.insert(&integer_key(order(n)), n), None);
        }
        check_structure(&tree);
        assert!(height(&tree) >= 2);
        for n in (0..COUNT).filter(|n| !scattered(*n).is_multiple_of(16)) {
            assert_eq!(tree.remove(&integer_key(order(n))), Some(n));
        }
        check_structure(&tree);
        for n in 0..COUNT {
            assert_eq!(tree.get(&integer_key(order(n))).is_some(), scattered(n).is_multiple_of(16));
        }
    }
}

#[test]
fn ascending_inserts_leave_full_leaves() {
    let ascending = (0..50_000u64).fold(Tree::new(), |mut tree, n| {
        tree.insert(&integer_key(n), n);
        tree
    });
    let built = Tree::from_sorted((0..50_000u64).map(|n| (integer_key(n), n)));
    check_structure(&ascending);
    check_structure(&built);
    assert!(ascending.heap_bytes() < built.heap_bytes() * 11 / 10);
}

#[test]
fn removals_give_memory_back() {
    let mut tree = Tree::from_sorted((0..50_000u64).map(|n| (integer_key(n), n)));
    let full = tree.heap_bytes();
    for n in (0..50_000u64).filter(|n| n % 10 != 0) {
        tree.remove(&integer_key(n));
    }
    check_structure(&tree);
    assert!(tree.heap_bytes() < full / 4, "{} of {full} bytes are left", tree.heap_bytes());
}

#[test]
fn diff_visits_what_changed() {
    /// Counts comparisons: a subtree that both trees share is never compared.
    #[derive(Clone)]
    struct Counted<'a>(u64, &'a std::cell::Cell<usize>);
    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }
    let compared = std::cell::Cell::new(0);
    let before = Tree::from_sorted((0..50_000u64).map(|n| (integer_key(n * 2), Counted(n, &compared))));
    let mut after = before.clone();
    after.insert(&integer_key(20_000), Counted(0, &compared));
    after.insert(&integer_key(50_001), Counted(1, &compared));
    after.remove(&integer_key(80_000));
    let mut changes = Vec::new();
    Tree::diff(&before, &after, |key, old, new| changes.push((key.to_vec(), old.is_some(), new.is_some())));
    assert_eq!(
        changes,
        [
            (integer_key(20_000), true, true),
            (integer_key(50_001), false, true),
            (integer_key(80_000), true, false)
        ]
    );
    assert!(compared.get() <= 4 * LEAF_ENTRIES_MAX, "{} entries were compared", compared.get());
}

#[test]
fn snapshots_may_be_read_on_other_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Tree<Arc<[u8]>>>();
    let mut tree = Tree::new();
    std::thread::scope(|scope| {
        for n in 0..2_000u64 {
            tree.insert(&integer_key(scattered(n)), n);
            if n % 500 == 0 {
                let snapshot = tree.clone();
                scope.spawn(move || assert_eq!(snapshot.iter().count() as u64, n + 1));
            }
        }
    });
}

#[test]
#[should_panic(expected = "ascend strictly")]
fn from_sorted_refuses_disorder() {
    Tree::from_sorted([("b", 1), ("a", 2)].into_iter());
}

#[test]
#[should_panic(expected = "is longer than")]
fn insert_refuses_an_endless_key() {
    Tree::new().insert(&vec![0; KEY_BYTES_MAX + 1], 1);
}
