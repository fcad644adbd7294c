//! Values with their edges, and cases made of them.

use crate::support::expression::Node;
use rand::{SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

pub(super) type Values = &'static [Option<&'static str>];

/// Values of each type, with its edges.
pub(super) const VALUES: &[(&str, Values)] = &[
    ("bool", &[None, Some("true"), Some("false")]),
    (
        "int8",
        &[
            None,
            Some("0"),
            Some("1"),
            Some("-1"),
            Some("7"),
            Some("-7"),
            Some("3"),
            Some("1000000"),
            Some("9223372036854775807"),
            Some("-9223372036854775808"),
        ],
    ),
    ("int4", &[None, Some("0"), Some("2"), Some("-3"), Some("2147483647"), Some("-2147483648")]),
    (
        "float8",
        &[
            None,
            Some("0"),
            Some("-0"),
            Some("1.5"),
            Some("-2.5"),
            Some("0.1"),
            Some("3"),
            Some("1e300"),
            Some("1e-300"),
            Some("NaN"),
            Some("Infinity"),
            Some("-Infinity"),
            Some("123456789.123"),
            Some("1e15"),
            Some("0.00001"),
        ],
    ),
    (
        "numeric",
        &[
            None,
            Some("0"),
            Some("0.00"),
            Some("1"),
            Some("1.50"),
            Some("-2.5"),
            Some("0.001"),
            Some("2.30"),
            Some("123456789012345678901234567890"),
            Some("-0.00005"),
            Some("NaN"),
            Some("Infinity"),
            Some("-Infinity"),
            Some("99999.99999"),
            Some("1e10"),
            Some("-7"),
        ],
    ),
    (
        "text",
        &[
            None,
            Some(""),
            Some("abc"),
            Some("ABC def"),
            Some("héllo Wörld"),
            Some("  padded "),
            Some("a%b_c\\d"),
            Some("123"),
            Some("-1.5"),
            Some("true"),
            Some("2013-02-04"),
            Some("aabbaa"),
            Some("x'y"),
            Some("日本語"),
            Some("a,b,,c"),
        ],
    ),
    ("bytea", &[None, Some("\\x"), Some("\\x00ff"), Some("\\x616263")]),
    (
        "date",
        &[
            None,
            Some("2013-02-04"),
            Some("2000-02-29"),
            Some("1999-12-31"),
            Some("0001-01-01"),
            Some("0001-03-15 BC"),
            Some("9999-12-31"),
            Some("1970-01-01"),
            Some("2024-12-30"),
            Some("2021-01-03"),
        ],
    ),
    (
        "timestamptz",
        &[
            None,
            Some("2013-02-04 05:06:07.891234+00"),
            Some("1999-12-31 23:59:59.999999+00"),
            Some("2000-02-29 00:00:00+00"),
            Some("0001-03-15 12:00:00+00 BC"),
            Some("9999-12-31 23:59:59.999999+00"),
            Some("1970-01-01 00:00:00+00"),
            Some("2024-12-30 13:00:00.5+00"),
            Some("2024-03-31 12:30:00+00"),
        ],
    ),
    (
        "uuid",
        &[None, Some("67e55044-10b1-426f-9247-bb680e5fe0c8"), Some("00000000-0000-0000-0000-000000000000")],
    ),
    (
        "jsonb",
        &[
            None,
            Some(r#"{"a":1,"b":[1,2,{"c":"x"}],"n":null,"s":"t"}"#),
            Some(r#"[1,"a",null,2.5,[3]]"#),
            Some("\"str\""),
            Some("12"),
            Some("null"),
            Some("true"),
            Some("{}"),
            Some("[]"),
            Some("-3.5"),
            Some(r#"{"b":[2],"a":1}"#),
            Some(r#"{"bb":1,"a":[1e22,2.5e-7],"":{"é\"\n":[]}}"#),
        ],
    ),
    (
        "interval",
        &[
            None,
            Some("1 day"),
            Some("1 month 2 days 03:04:05"),
            Some("-1 month"),
            Some("90 minutes"),
            Some("1 year 2 mons -3 days"),
            Some("00:00:00.000001"),
            Some("30 days"),
            Some("1 mon"),
            Some("-1 days +02:03:04.5"),
            Some("100 years"),
        ],
    ),
];

pub(super) const NUMBERS: [&str; 4] = ["int4", "int8", "numeric", "float8"];
pub(super) const TEMPORAL: [&str; 3] = ["date", "timestamptz", "interval"];

pub(super) fn values(ty: &'static str) -> Vec<Node> {
    let (_, values) = VALUES.iter().find(|(name, _)| *name == ty).expect("a type with values");
    values.iter().map(|value| Node::Value(ty, value.map(str::to_owned))).collect()
}

pub(super) fn all_values() -> Vec<Node> {
    VALUES.iter().flat_map(|(ty, _)| values(ty)).collect()
}

pub(super) fn literal(text: &str) -> Node {
    Node::Literal(Some(text.to_owned()))
}

pub(super) fn text(text: &str) -> Node {
    Node::Value("text", Some(text.to_owned()))
}

pub(super) fn boxed(node: &Node) -> Box<Node> {
    Box::new(node.clone())
}

pub(super) fn binary(op: &'static str, left: &Node, right: &Node) -> Node {
    Node::Binary(op, boxed(left), boxed(right))
}

/// Every combination of the arguments, or so many of them chosen at random.
pub(super) fn combinations(arguments: &[Vec<Node>], most: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<Node>> {
    let total: usize = arguments.iter().map(Vec::len).product();
    if total > most {
        let choose = |rng: &mut ChaCha8Rng| {
            arguments.iter().map(|values| values.choose(rng).expect("values").clone()).collect()
        };
        return (0..most).map(|_| choose(rng)).collect();
    }
    let mut all: Vec<Vec<Node>> = vec![Vec::new()];
    for values in arguments {
        all = all
            .iter()
            .flat_map(|head| {
                values
                    .iter()
                    .map(move |value| head.iter().cloned().chain([value.clone()]).collect::<Vec<_>>())
            })
            .collect();
    }
    all
}

/// A function with the values each of its arguments takes.
pub(super) fn called(
    name: &'static str,
    arguments: &[Vec<Node>],
    most: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Node> {
    combinations(arguments, most, rng).into_iter().map(|arguments| Node::Call(name, arguments)).collect()
}

pub(super) fn integers(numbers: &[i64]) -> Vec<Node> {
    numbers
        .iter()
        .map(|number| Node::Value("int4", Some(number.to_string())))
        .chain([Node::Value("int4", None)])
        .collect()
}

pub(super) fn texts(values: &[&str]) -> Vec<Node> {
    values.iter().map(|value| text(value)).chain([Node::Value("text", None)]).collect()
}

pub(super) fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(15)
}
