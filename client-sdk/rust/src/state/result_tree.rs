//! One subscription's result, kept nested and ordered from release to release.
//!
//! Each place keeps its rows in groups, one ordered sequence per correlation key, and the set of parent rows under
//! which each group stands. A release is applied place by place, children before parents: rows enter, leave and move
//! in their groups, and the parents of every group that changed are rebuilt and take the new version in. What does
//! not change is shared with the versions that readers hold.

use super::{
    change::{Change, Changes},
    node::{Children, Node, Rows},
    pool::{Pool, PooledTableId},
    sequence::Sequence,
    shape::{PlaceShape, Shape},
};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_wire::model::{PlaceMask, Row};

/// See the module.
#[derive(Debug)]
pub(crate) struct ResultTree {
    shape: Arc<Shape>,
    tables: Vec<HeldTable>,
    /// Held rows by [`RowId`]; freed ids are taken again.
    rows: Vec<Option<Held>>,
    free: Vec<RowId>,
    places: Vec<Place>,
}

/// Number of a held row, stable while it is held.
type RowId = u32;

#[derive(Debug)]
struct HeldTable {
    pooled: PooledTableId,
    ids: HashMap<Arc<[u8]>, RowId>,
}

#[derive(Clone, Debug)]
struct Held {
    table: usize,
    key: Arc<[u8]>,
    row: Row,
    places: PlaceMask,
}

#[derive(Debug, Default)]
struct Place {
    /// The rows here by correlation key; no group is empty. The root has one group, under the empty key.
    groups: HashMap<Box<[u8]>, Sequence<Node>>,
    /// The rows of the parent place by the key of the group here that stands under them.
    parents: HashMap<Box<[u8]>, HashSet<RowId>>,
}

/// What a release makes of one row: what it is and where it stands; `None` for nowhere.
#[derive(Clone, Debug)]
pub(crate) struct NetChange {
    /// Index into the layout's tables.
    pub(crate) table: usize,
    /// The encoded key.
    pub(crate) key: Box<[u8]>,
    /// The row and its places after the release.
    pub(crate) new: Option<(Row, PlaceMask)>,
}

/// One row before and after a release.
struct Touched {
    id: RowId,
    table: usize,
    old: Option<(Row, PlaceMask)>,
    new: Option<(Row, PlaceMask)>,
}

impl ResultTree {
    /// An empty result.
    pub(crate) fn new(shape: Arc<Shape>, pool: &mut Pool) -> Self {
        let tables = shape.layout.tables.iter();
        let tables = tables.map(|t| HeldTable { pooled: pool.acquire(t), ids: HashMap::new() }).collect();
        let places = shape.places.iter().map(|_| Place::default()).collect();
        Self { shape, tables, rows: Vec::new(), free: Vec::new(), places }
    }

    /// The layout.
    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Whether a row is held.
    pub(crate) fn holds(&self, table: usize, key: &[u8]) -> bool {
        self.tables[table].ids.contains_key(key)
    }

    /// Every held row's table and key.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, &Arc<[u8]>)> {
        self.rows.iter().flatten().map(|held| (held.table, &held.key))
    }

    /// The present version of the result.
    pub(crate) fn rows(&self) -> Rows {
        Rows(self.places[0].groups.get(&[][..]).cloned().unwrap_or_default())
    }

    /// The removal of every root row, for a result of another layout that takes this one's place.
    pub(crate) fn removals(&self) -> impl Iterator<Item = Change> {
        let rows = self.rows();
        let held = self.rows.iter().flatten().filter(|held| held.places.contains(0));
        held.filter_map(move |held| {
            let node = rows.0.get(&self.shape.places[0].order_key(&held.row))?;
            Some(Change { key: Arc::clone(&held.key), old: Some(Arc::clone(node)), new: None })
        })
    }

    /// Gives all rows back to the pool and ends the tree.
    pub(crate) fn dissolve(self, pool: &mut Pool) {
        for held in self.rows.iter().flatten() {
            pool.leave(self.tables[held.table].pooled, &held.key);
        }
        self.tables.iter().for_each(|table| pool.release(table.pooled));
    }

    /// Applies the net changes of one release, at most one for each row; returns what they change at the root.
    pub(crate) fn apply(&mut self, net: Vec<NetChange>, pool: &mut Pool) -> Changes {
        let touched: Vec<Touched> = net.into_iter().filter_map(|change| self.hold(change, pool)).collect();
        // Parents to rebuild, per place; and groups that changed at the place at hand.
        let mut rebuild: Vec<HashSet<RowId>> = self.places.iter().map(|_| HashSet::new()).collect();
        let mut root_before: HashMap<RowId, Option<Arc<Node>>> = HashMap::new();
        for place in (0..self.places.len()).rev() {
            let mut dirty: HashSet<Box<[u8]>> = HashSet::new();
            let mut work = PlaceWork { tree: self, place, dirty: &mut dirty, root_before: &mut root_before };
            for change in &touched {
                work.row(change, &mut rebuild[place]);
            }
            for id in std::mem::take(&mut rebuild[place]) {
                work.rebuild(id);
            }
            if let Some(parent) = self.shape.layout.places[place].parent {
                for key in dirty {
                    rebuild[parent].extend(self.places[place].parents.get(&key).into_iter().flatten());
                }
            }
        }
        let changes = self.root_changes(root_before, &touched);
        for change in touched.iter().filter(|change| change.new.is_none()) {
            let held = self.rows[change.id as usize].take().expect("a removed row is held until here");
            self.tables[held.table].ids.remove(&held.key);
            pool.leave(self.tables[held.table].pooled, &held.key);
            self.free.push(change.id);
        }
        changes
    }

    /// Takes a row's new content in; a removed row stays until the release is applied everywhere. `None` when
    /// nothing changes.
    fn hold(&mut self, change: NetChange, pool: &mut Pool) -> Option<Touched> {
        let NetChange { table, key, new } = change;
        let pooled = self.tables[table].pooled;
        let Some(&id) = self.tables[table].ids.get(&*key) else {
            let (row, places) = new?;
            let (key, row) = pool.enter(pooled, &key, row);
            let id = self.free.pop().unwrap_or_else(|| {
                self.rows.push(None);
                RowId::try_from(self.rows.len() - 1).expect("a client holds below 4 billion rows")
            });
            self.tables[table].ids.insert(Arc::clone(&key), id);
            self.rows[id as usize] = Some(Held { table, key, row: row.clone(), places });
            return Some(Touched { id, table, old: None, new: Some((row, places)) });
        };
        let held = self.rows[id as usize].as_mut().expect("an id in use");
        let old = (held.row.clone(), held.places);
        if new.as_ref() == Some(&old) {
            return None;
        }
        let new = new.map(|(row, places)| {
            let row = pool.change(pooled, &key, row);
            (held.row, held.places) = (row.clone(), places);
            (row, places)
        });
        Some(Touched { id, table, old: Some(old), new })
    }

    fn root_changes(&self, before: HashMap<RowId, Option<Arc<Node>>>, touched: &[Touched]) -> Changes {
        let mut changes = Changes::default();
        let shape = &self.shape.places[0];
        let removed: HashSet<RowId> = touched.iter().filter(|t| t.new.is_none()).map(|t| t.id).collect();
        changes.fold(before.into_iter().map(|(id, old)| {
            let held = self.rows[id as usize].as_ref().expect("a row at the root is held");
            let stands = held.places.contains(0) && !removed.contains(&id);
            let now = self.places[0].groups.get(&[][..]).filter(|_| stands);
            let new = now.and_then(|rows| rows.get(&shape.order_key(&held.row))).cloned();
            Change { key: Arc::clone(&held.key), old, new }
        }));
        changes
    }
}

/// One place during a release.
struct PlaceWork<'a> {
    tree: &'a mut ResultTree,
    place: usize,
    /// Groups of the place that changed.
    dirty: &'a mut HashSet<Box<[u8]>>,
    /// Root rows that changed, as they stood before the release.
    root_before: &'a mut HashMap<RowId, Option<Arc<Node>>>,
}

impl PlaceWork<'_> {
    /// Takes one row's change in, as far as it concerns this place.
    fn row(&mut self, change: &Touched, rebuild: &mut HashSet<RowId>) {
        let shape = Arc::clone(&self.tree.shape.places[self.place]);
        if change.table != shape.table {
            return;
        }
        let here = |side: &Option<(Row, PlaceMask)>| {
            side.as_ref().filter(|(_, places)| places.contains(self.place)).map(|(row, _)| row.clone())
        };
        let (old, new) = (here(&change.old), here(&change.new));
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) if old.same_cells(&new, &shape.relevant) => {}
            (old, new) => {
                rebuild.remove(&change.id);
                if let Some(old) = old {
                    self.link(&shape, change.id, &old, HashSet::remove);
                    // A row that stays under its group and order key is replaced there by what follows.
                    let stays = new.as_ref().is_some_and(|new| {
                        shape.order_key(new) == shape.order_key(&old)
                            && shape.group_key(new) == shape.group_key(&old)
                    });
                    if !stays {
                        self.take(&shape, change.id, &old);
                    }
                }
                if let Some(new) = new {
                    self.link(&shape, change.id, &new, |ids, id| ids.insert(*id));
                    self.put(&shape, change.id, &new);
                }
            }
        }
    }

    /// Builds a row's node anew, because something under it changed.
    fn rebuild(&mut self, id: RowId) {
        let shape = Arc::clone(&self.tree.shape.places[self.place]);
        let row = self.tree.rows[id as usize].as_ref().expect("a parent row is held").row.clone();
        self.put(&shape, id, &row);
    }

    /// Notes, or forgets, which groups of the child places stand under a row.
    fn link(
        &mut self,
        shape: &PlaceShape,
        id: RowId,
        row: &Row,
        set: impl Fn(&mut HashSet<RowId>, &RowId) -> bool,
    ) {
        for child in &shape.children {
            let Some(key) = child.group_key(row) else { continue };
            let parents = &mut self.tree.places[child.place].parents;
            let ids = parents.entry_ref(&*key).or_default();
            set(ids, &id);
            if ids.is_empty() {
                parents.remove(&key);
            }
        }
    }

    fn put(&mut self, shape: &Arc<PlaceShape>, id: RowId, row: &Row) {
        let Some(group) = shape.group_key(row) else { return };
        let children = shape.children.iter().map(|child| {
            let rows =
                child.group_key(row).and_then(|key| self.tree.places[child.place].groups.get(&key)).cloned();
            match &child.value {
                Some((column, or)) => {
                    let node = rows.as_ref().and_then(|rows| rows.at(0));
                    Children::Value(node.map_or_else(|| or.clone(), |node| node.row.cell(*column).to_value()))
                }
                None if child.one => Children::One(rows.and_then(|rows| rows.at(0).cloned())),
                None => Children::Many(Rows(rows.unwrap_or_default())),
            }
        });
        let children = children.collect();
        let order_key = shape.order_key(row);
        let node = Node { row: row.clone(), order_key, shape: Arc::clone(shape), children };
        let rows = self.tree.places[self.place].groups.entry_ref(&*group).or_default();
        let replaced = rows.insert(Arc::new(node));
        self.note(group, id, replaced);
    }

    fn take(&mut self, shape: &PlaceShape, id: RowId, row: &Row) {
        let Some(group) = shape.group_key(row) else { return };
        let groups = &mut self.tree.places[self.place].groups;
        let Some(rows) = groups.get_mut(&group) else { return };
        let removed = rows.remove(&shape.order_key(row));
        if rows.len() == 0 {
            groups.remove(&group);
        }
        self.note(group, id, removed);
    }

    /// Marks the group as changed and, at the root, remembers the row's first state in this release.
    fn note(&mut self, group: Box<[u8]>, id: RowId, before: Option<Arc<Node>>) {
        if self.place == 0 {
            self.root_before.entry(id).or_insert(before);
        }
        self.dirty.insert(group);
    }
}
