//! Rows of each table.

use super::words::{
    COLOURS, CONTAINERS, INSTRUCTIONS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES, phone, phrase,
    pick, prose,
};
use crate::row_changes::{cents, integer};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use tidegate_wire::model::{Row, Value, time::parse_date};

fn text(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

fn day(text: &str) -> i32 {
    parse_date(text).expect("a date")
}

pub(super) fn regions(random: &mut ChaCha8Rng) -> Vec<Row> {
    let regions = REGIONS.iter().zip(0..);
    regions
        .map(|(name, key)| Row::from_values(&[Value::Int8(key), text(name), text(prose(random, 5))]))
        .collect()
}

pub(super) fn nations(random: &mut ChaCha8Rng) -> Vec<Row> {
    let nations = NATIONS.iter().zip(0..);
    nations
        .map(|((name, region), key)| {
            Row::from_values(&[Value::Int8(key), text(name), Value::Int8(*region), text(prose(random, 5))])
        })
        .collect()
}

pub(super) fn supplier(random: &mut ChaCha8Rng, key: i64) -> Row {
    let nation = random.random_range(0..25);
    let mut comment = prose(random, 4);
    match random.random_range(0..20) {
        0 => comment.push_str(" Customer bold Complaints"),
        1 => comment.push_str(" Customer bold Recommends"),
        _ => {}
    }
    Row::from_values(&[
        Value::Int8(key),
        text(format!("Supplier#{key:09}")),
        text(prose(random, 2)),
        Value::Int8(nation),
        text(phone(random, nation)),
        balance(random),
        text(comment),
    ])
}

/// A balance, which may be below zero.
pub(super) fn balance(random: &mut ChaCha8Rng) -> Value {
    cents(random.random_range(-99_999..=999_999))
}

pub(super) fn part(random: &mut ChaCha8Rng, key: i64) -> Row {
    let maker = random.random_range(1..=5);
    let mut names: Vec<&str> = Vec::new();
    while names.len() < 5 {
        let name = pick(random, COLOURS);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Row::from_values(&[
        Value::Int8(key),
        text(names.join(" ")),
        text(format!("Manufacturer#{maker}")),
        text(format!("Brand#{maker}{}", random.random_range(1..=5))),
        text(phrase(random, &TYPES)),
        size(random),
        text(phrase(random, &CONTAINERS)),
        cents(retail_cents(key)),
        text(prose(random, 2)),
    ])
}

pub(super) fn size(random: &mut ChaCha8Rng) -> Value {
    Value::Int8(random.random_range(1..=50))
}

/// A part's price, which its key determines.
fn retail_cents(part: i64) -> i64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1_000)
}

/// A part's suppliers, of whom there are four.
pub(super) fn supplier_of(part: i64, number: i64, suppliers: i64) -> i64 {
    (part + number * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1
}

pub(super) fn partsupp(random: &mut ChaCha8Rng, part: i64, supplier: i64) -> Row {
    Row::from_values(&[
        Value::Int8(part),
        Value::Int8(supplier),
        available(random),
        cost(random),
        text(prose(random, 8)),
    ])
}

pub(super) fn available(random: &mut ChaCha8Rng) -> Value {
    Value::Int8(random.random_range(1..=9_999))
}

pub(super) fn cost(random: &mut ChaCha8Rng) -> Value {
    cents(random.random_range(100..=100_000))
}

pub(super) fn customer(random: &mut ChaCha8Rng, key: i64) -> Row {
    let nation = random.random_range(0..25);
    Row::from_values(&[
        Value::Int8(key),
        text(format!("Customer#{key:09}")),
        text(prose(random, 2)),
        Value::Int8(nation),
        text(phone(random, nation)),
        balance(random),
        segment(random),
        text(prose(random, 6)),
    ])
}

pub(super) fn segment(random: &mut ChaCha8Rng) -> Value {
    text(pick(random, SEGMENTS))
}

/// An order with its lines. A third of the customers never order anything.
pub(super) fn order(
    random: &mut ChaCha8Rng,
    key: i64,
    customers: i64,
    suppliers: i64,
    parts: &[Row],
) -> (Row, Vec<Row>) {
    let today = day("1995-06-17");
    let date = random.random_range(day("1992-01-01")..=day("1998-08-02"));
    let customer = loop {
        let customer = random.random_range(1..=customers);
        if customer % 3 != 0 {
            break customer;
        }
    };
    let (mut total, mut open) = (0, 0);
    let count = random.random_range(1..=7);
    let lines: Vec<Row> = (1..=count)
        .map(|number| {
            let part = integer(&parts[random.random_range(0..parts.len())], 0);
            let supplier = supplier_of(part, random.random_range(0..4), suppliers);
            let quantity = random.random_range(1..=50);
            let (discount, tax) = (random.random_range(0..=10), random.random_range(0..=8));
            let price = quantity * retail_cents(part);
            total += price * (100 - discount) / 100 * (100 + tax) / 100;
            let shipped = date + random.random_range(1..=121);
            let committed = date + random.random_range(30..=90);
            let received = shipped + random.random_range(1..=30);
            let is_open = shipped > today;
            open += i64::from(is_open);
            let flag = if received > today { "N" } else { pick(random, &["R", "A"]) };
            Row::from_values(&[
                Value::Int8(key),
                Value::Int8(part),
                Value::Int8(supplier),
                Value::Int8(number),
                cents(100 * quantity),
                cents(price),
                cents(discount),
                cents(tax),
                text(flag),
                text(if is_open { "O" } else { "F" }),
                Value::Date(shipped),
                Value::Date(committed),
                Value::Date(received),
                text(pick(random, INSTRUCTIONS)),
                text(pick(random, MODES)),
                text(prose(random, 3)),
            ])
        })
        .collect();
    let status = match open {
        0 => "F",
        open if open == count => "O",
        _ => "P",
    };
    let mut comment = prose(random, 4);
    if random.random_range(0..50) == 0 {
        comment.push_str(" special packages requests");
    }
    let order = Row::from_values(&[
        Value::Int8(key),
        Value::Int8(customer),
        text(status),
        cents(total),
        Value::Date(date),
        text(pick(random, PRIORITIES)),
        text(format!("Clerk#{:09}", random.random_range(1..=1_000))),
        Value::Int8(0),
        text(comment),
    ]);
    (order, lines)
}
