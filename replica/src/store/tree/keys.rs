//! The keys of one tree node, packed into one byte buffer.
//!
//! Keys of one width (integers, uuids, fixed-width index keys) need no offsets: a key's place is its index times the
//! width. Only a node that mixes widths pays four bytes per key for where each ends. Whole keys are kept, without
//! factoring out a common prefix, so that readers can borrow a key as one slice for as long as the tree lives.

use std::cmp::Ordering;

/// Longest key, in bytes. Keeps the byte positions of a node's keys within `u32`: a node that is about to split holds
/// fewer than 128 keys.
pub(super) const KEY_BYTES_MAX: usize = 1 << 25;

/// Keys a buffer grows by at once. Small, because most nodes are copied (and so re-allocated) before they fill, and
/// unused room is paid for in every node.
pub(super) const ROOM: usize = 4;

/// The keys of one node, in ascending order (the caller keeps the order).
#[derive(Debug)]
pub(super) struct Keys {
    /// All keys, one after the other.
    bytes: Vec<u8>,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    /// Every key has `width` bytes; `count` is kept because a width of zero says nothing about it.
    Fixed { width: u32, count: u32 },
    /// Where in `bytes` each key ends.
    Varied(Vec<u32>),
}

/// A byte position as it is stored. The split rules and `KEY_BYTES_MAX` keep every node far below the limit.
fn position(at: usize) -> u32 {
    u32::try_from(at).expect("the keys of one node stay below 4 GiB")
}

impl Keys {
    pub(super) fn new() -> Self {
        Keys { bytes: Vec::new(), layout: Layout::Fixed { width: 0, count: 0 } }
    }

    pub(super) fn len(&self) -> usize {
        match &self.layout {
            Layout::Fixed { count, .. } => *count as usize,
            Layout::Varied(ends) => ends.len(),
        }
    }

    /// Bytes of all keys together.
    pub(super) fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes reserved on the heap, as (key bytes, bytes for key ends).
    pub(super) fn capacity_bytes(&self) -> (usize, usize) {
        let ends = match &self.layout {
            Layout::Fixed { .. } => 0,
            Layout::Varied(ends) => ends.capacity() * size_of::<u32>(),
        };
        (self.bytes.capacity(), ends)
    }

    /// Where key `index` starts; `index == len` gives the end of the buffer.
    #[inline]
    fn start(&self, index: usize) -> usize {
        match &self.layout {
            Layout::Fixed { width, .. } => index * *width as usize,
            Layout::Varied(_) if index == 0 => 0,
            Layout::Varied(ends) => ends[index - 1] as usize,
        }
    }

    /// Key `index`. Panics when there is none.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        match &self.layout {
            Layout::Fixed { width, .. } => {
                let width = *width as usize;
                &self.bytes[index * width..][..width]
            }
            Layout::Varied(ends) => {
                let start = if index == 0 { 0 } else { ends[index - 1] as usize };
                &self.bytes[start..ends[index] as usize]
            }
        }
    }

    pub(super) fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|index| self.get(index))
    }

    /// How many keys, from the first, satisfy `before`, which holds for a (possibly empty) run of first keys only.
    #[inline]
    pub(super) fn partition_point(&self, mut before: impl FnMut(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// How many keys are below `key`.
    #[inline]
    pub(super) fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition_point(|other| other < key)
    }

    /// How many keys are at or below `key`.
    #[inline]
    pub(super) fn upper_bound(&self, key: &[u8]) -> usize {
        self.partition_point(|other| other <= key)
    }

    /// The index of `key`, or the index where it would stand.
    #[inline]
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Makes the layout able to hold a key of `width` bytes beside those already there.
    fn admit(&mut self, width: usize) {
        let Layout::Fixed { width: fixed, count } = &mut self.layout else { return };
        if *count == 0 {
            *fixed = position(width);
        } else if *fixed as usize != width {
            let mut ends = Vec::with_capacity(*count as usize + ROOM);
            ends.extend((1..=*count).map(|n| n * *fixed));
            self.layout = Layout::Varied(ends);
        }
    }

    /// Puts `key` before key `index`.
    pub(super) fn insert(&mut self, index: usize, key: &[u8]) {
        self.admit(key.len());
        let (start, end) = (self.start(index), self.bytes.len());
        if self.bytes.capacity() - end < key.len() {
            self.bytes.reserve_exact(key.len() * ROOM);
        }
        self.bytes.extend_from_slice(key);
        if start < end {
            self.bytes.copy_within(start..end, start + key.len());
            self.bytes[start..start + key.len()].copy_from_slice(key);
        }
        match &mut self.layout {
            Layout::Fixed { count, .. } => *count += 1,
            Layout::Varied(ends) => {
                if ends.len() == ends.capacity() {
                    ends.reserve_exact(ROOM);
                }
                ends.insert(index, position(start));
                let width = position(key.len());
                // The position checked last is the largest, so the additions below cannot overflow.
                position(self.bytes.len());
                ends[index..].iter_mut().for_each(|end| *end += width);
            }
        }
    }

    /// Appends `key`, which is above all others.
    pub(super) fn push(&mut self, key: &[u8]) {
        self.insert(self.len(), key);
    }

    /// Takes key `index` out.
    pub(super) fn remove(&mut self, index: usize) {
        let (start, end) = (self.start(index), self.start(index + 1));
        self.bytes.drain(start..end);
        match &mut self.layout {
            Layout::Fixed { count, .. } => *count -= 1,
            Layout::Varied(ends) => {
                ends.remove(index);
                let width = position(end - start);
                ends[index..].iter_mut().for_each(|end| *end -= width);
            }
        }
    }

    /// The keys of `from..to` in buffers of their own.
    pub(super) fn slice(&self, from: usize, to: usize) -> Keys {
        let (start, end) = (self.start(from), self.start(to));
        let bytes = self.bytes[start..end].to_vec();
        let layout = match &self.layout {
            Layout::Fixed { width, .. } => Layout::Fixed { width: *width, count: position(to - from) },
            Layout::Varied(_) if from == to => Layout::Fixed { width: 0, count: 0 },
            Layout::Varied(ends) => {
                let width = ends[from] - position(start);
                let count = position(to - from);
                let one_width = (1..=count)
                    .zip(&ends[from..to])
                    .all(|(n, end)| u64::from(*end) == start as u64 + u64::from(n) * u64::from(width));
                if one_width {
                    Layout::Fixed { width, count }
                } else {
                    Layout::Varied(ends[from..to].iter().map(|end| end - position(start)).collect())
                }
            }
        };
        Keys { bytes, layout }
    }

    /// Appends all keys of `other`, which are above all of these.
    pub(super) fn append(&mut self, other: &Keys) {
        self.bytes.reserve_exact(other.bytes.len());
        for index in 0..other.len() {
            self.push(other.get(index));
        }
    }

    /// Gives back room that is not used.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        if let Layout::Varied(ends) = &mut self.layout {
            ends.shrink_to_fit();
        }
    }
}

impl Clone for Keys {
    /// Copies with room for one more key or a few, as a node is mostly copied in order to be changed.
    fn clone(&self) -> Self {
        let layout = match &self.layout {
            Layout::Fixed { width, count } => Layout::Fixed { width: *width, count: *count },
            Layout::Varied(ends) => Layout::Varied(clone_with_room(ends)),
        };
        let width = self.bytes.len().checked_div(self.len()).unwrap_or(0);
        let mut bytes = Vec::with_capacity(self.bytes.len() + width * (room_for(self.len()) - self.len()));
        bytes.extend_from_slice(&self.bytes);
        Keys { bytes, layout }
    }
}

/// The capacity that holds `len` items and at least one more, in steps of `ROOM`.
pub(super) fn room_for(len: usize) -> usize {
    (len + 1).next_multiple_of(ROOM)
}

/// A copy of `items` with room for at least one more.
pub(super) fn clone_with_room<T: Clone>(items: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(room_for(items.len()));
    copy.extend_from_slice(items);
    copy
}

/// Inserts into `items`, growing by `ROOM` when full.
pub(super) fn insert_with_room<T>(items: &mut Vec<T>, index: usize, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(ROOM);
    }
    items.insert(index, item);
}
