//! The words that TPC-H's texts are made of.

use rand::{Rng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

pub(super) const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// The nations, each with its region.
pub(super) const NATIONS: [(&str, i64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

/// Words of parts' names; fewer than in the specification, as there are fewer parts.
pub(super) const COLOURS: &[&str] = &[
    "almond",
    "antique",
    "azure",
    "beige",
    "bisque",
    "blue",
    "brown",
    "chocolate",
    "coral",
    "cream",
    "cyan",
    "forest",
    "frosted",
    "ghost",
    "green",
    "honeydew",
    "indian",
    "ivory",
    "khaki",
    "lavender",
    "lemon",
    "magenta",
    "maroon",
    "navy",
    "olive",
    "peru",
    "plum",
    "rosy",
    "salmon",
    "violet",
];

pub(super) const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];

pub(super) const CONTAINERS: [&[&str]; 2] =
    [&["SM", "LG", "MED", "JUMBO", "WRAP"], &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]];

pub(super) const SEGMENTS: &[&str] = &["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
pub(super) const PRIORITIES: &[&str] = &["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
pub(super) const INSTRUCTIONS: &[&str] = &["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
pub(super) const MODES: &[&str] = &["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

const PROSE: &[&str] = &[
    "furiously",
    "carefully",
    "quickly",
    "silent",
    "ironic",
    "regular",
    "express",
    "bold",
    "final",
    "pending",
    "deposits",
    "accounts",
    "packages",
    "foxes",
    "theodolites",
    "pinto beans",
    "instructions",
    "asymptotes",
    "sleep",
    "haggle",
    "nag",
    "wake",
    "cajole",
    "boost",
    "among",
    "above",
    "across",
    "after",
];

/// One of some words.
pub(super) fn pick(random: &mut ChaCha8Rng, words: &[&'static str]) -> &'static str {
    words.choose(random).expect("there are words")
}

/// One word of each list, with blanks between.
pub(super) fn phrase(random: &mut ChaCha8Rng, lists: &[&[&'static str]]) -> String {
    let words: Vec<&str> = lists.iter().map(|words| pick(random, words)).collect();
    words.join(" ")
}

/// So many words of prose.
pub(super) fn prose(random: &mut ChaCha8Rng, words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| pick(random, PROSE)).collect();
    words.join(" ")
}

/// The telephone number of a nation's.
pub(super) fn phone(random: &mut ChaCha8Rng, nation: i64) -> String {
    let (a, b, c) =
        (random.random_range(100..1000), random.random_range(100..1000), random.random_range(1000..10_000));
    format!("{}-{a}-{b}-{c}", nation + 10)
}
