//! Arithmetic and comparisons.

use super::{
    outcome::{check, nothing},
    values::*,
};
use crate::support::expression::Node;

#[test]
fn arithmetic() {
    let mut cases = Vec::new();
    for op in ["+", "-", "*", "/", "%"] {
        for left in NUMBERS {
            for right in NUMBERS {
                for pair in combinations(&[values(left), values(right)], 120, &mut rng()) {
                    cases.push(binary(op, &pair[0], &pair[1]));
                }
            }
        }
    }
    for number in NUMBERS.into_iter().flat_map(values) {
        cases.extend([Node::Unary("-", boxed(&number)), Node::Unary("+", boxed(&number))]);
        cases.push(binary("+", &number, &literal("2")));
        cases.push(binary("*", &literal("1.5"), &number));
    }
    for number in [
        "1",
        "2147483647",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "-2147483648",
        "-9223372036854775808",
        "-9223372036854775809",
        "1.50",
        ".5",
        "1e3",
        "1.5e-3",
    ] {
        let number = Node::Number(number.to_owned());
        for other in ["1", "0", "2.5", "2147483647"] {
            let other = Node::Number(other.to_owned());
            cases.extend(["+", "-", "*", "/", "%"].map(|op| binary(op, &number, &other)));
        }
        cases.push(number);
    }
    check(cases, nothing);
}

#[test]
fn comparisons() {
    let mut cases = Vec::new();
    let ops = ["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"];
    for op in ops {
        for (left, _) in VALUES {
            for (right, _) in VALUES {
                let related = left == right
                    || (NUMBERS.contains(left) && NUMBERS.contains(right))
                    || (TEMPORAL[..2].contains(left) && TEMPORAL[..2].contains(right));
                let most = if related { 60 } else { 1 };
                for pair in combinations(&[values(left), values(right)], most, &mut rng()) {
                    cases.push(binary(op, &pair[0], &pair[1]));
                }
            }
        }
    }
    for value in all_values() {
        for op in [
            "is null",
            "is not null",
            "is true",
            "is not true",
            "is false",
            "is not false",
            "is unknown",
            "is not unknown",
            "not",
        ] {
            cases.push(Node::Unary(op, boxed(&value)));
        }
        for text in ["1", "abc", "2013-02-04", "t", "{}", "1 day"] {
            cases.push(binary("=", &value, &literal(text)));
        }
    }
    for ty in ["int8", "numeric", "float8", "text", "date", "timestamptz", "interval"] {
        for three in combinations(&[values(ty), values(ty), values(ty)], 60, &mut rng()) {
            cases.push(Node::Between(boxed(&three[0]), boxed(&three[1]), boxed(&three[2])));
            cases.push(Node::In(boxed(&three[0]), three[1..].to_vec()));
            cases.push(Node::In(boxed(&three[0]), three.clone()));
        }
    }
    for three in combinations(&[values("int8"), values("numeric"), values("float8")], 200, &mut rng()) {
        cases.push(Node::Between(boxed(&three[0]), boxed(&three[1]), boxed(&three[2])));
        cases.push(Node::In(boxed(&three[0]), three[1..].to_vec()));
    }
    for op in ["and", "or"] {
        for pair in combinations(&[values("bool"), values("bool")], 9, &mut rng()) {
            cases.push(binary(op, &pair[0], &pair[1]));
        }
    }
    check(cases, nothing);
}
