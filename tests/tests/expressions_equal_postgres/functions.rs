//! Functions of texts and numbers.

use super::{outcome::check, values::*};
use crate::support::expression::{Node, Outcome};

#[test]
fn functions_of_texts() {
    let rng = &mut rng();
    let all = values("text");
    let counts = integers(&[0, 1, 2, 3, 7, -1, -2, -100, 2_147_483_647, -2_147_483_648]);
    let parts = texts(&["", "a", "b", "ab", "é", "xy", " ", ",", "abc", "本"]);
    let mut cases = Vec::new();
    for name in [
        "lower",
        "upper",
        "initcap",
        "length",
        "char_length",
        "octet_length",
        "trim",
        "btrim",
        "ltrim",
        "rtrim",
        "reverse",
        "ascii",
        "md5",
    ] {
        let name: &'static str = if name == "trim" { "btrim" } else { name };
        cases.extend(called(name, std::slice::from_ref(&all), 100, rng));
    }
    for name in ["left", "right", "substr", "substring"] {
        cases.extend(called(name, &[all.clone(), counts.clone()], 200, rng));
    }
    for name in ["lpad", "rpad", "repeat"] {
        cases.extend(called(name, &[all.clone(), integers(&[0, 1, 5, 12, -3])], 200, rng));
    }
    for name in ["lpad", "rpad"] {
        cases.extend(called(name, &[all.clone(), integers(&[0, 5, 12, -3]), parts.clone()], 200, rng));
    }
    cases.extend(called("substr", &[all.clone(), counts.clone(), counts.clone()], 300, rng));
    for name in ["btrim", "ltrim", "rtrim", "strpos", "position", "starts_with"] {
        cases.extend(called(name, &[all.clone(), parts.clone()], 200, rng));
    }
    for name in ["replace", "translate"] {
        cases.extend(called(name, &[all.clone(), parts.clone(), parts.clone()], 200, rng));
    }
    let positions = integers(&[1, 2, 3, 9, -1, -2, -9, 0]);
    cases.extend(called("split_part", &[all.clone(), parts.clone(), positions], 300, rng));
    cases.extend(called("chr", &[integers(&[65, 233, 0, -1, 1_114_112, 128_512, 55_296])], 10, rng));
    for name in ["length", "octet_length", "md5"] {
        cases.extend(called(name, &[values("bytea")], 10, rng));
    }
    for pair in combinations(&[all_values(), all_values()], 600, rng) {
        cases.push(Node::Call("concat", pair.clone()));
        cases.push(Node::Call("concat_ws", vec![text(", "), pair[0].clone(), pair[1].clone()]));
        cases.push(binary("||", &pair[0], &text("x")));
        cases.push(binary("||", &literal("x"), &pair[1]));
    }
    for pair in combinations(&[values("bytea"), values("bytea")], 16, rng) {
        cases.push(binary("||", &pair[0], &pair[1]));
    }
    for name in ["upper", "length", "abs"] {
        cases.push(Node::Call(name, vec![literal("12")]));
        cases.push(Node::Call(name, vec![Node::Literal(None)]));
    }
    check(cases, |node, wanted, _| {
        // Documents have no operator || here; in concat their texts differ by spaces.
        let has_document = node.sql().contains("::jsonb");
        has_document && (node.sql().contains("||") || matches!(wanted, Outcome::Value(..)))
    });
}

#[test]
fn functions_of_numbers() {
    let rng = &mut rng();
    let mut cases = Vec::new();
    let more: Vec<Node> = [
        "2",
        "3",
        "10",
        "100",
        "0.5",
        "0.999",
        "1.0001",
        "1.05",
        "12345.678",
        "0.000123",
        "99",
        "2.0",
        "3.000000000000000001",
        "1000000000000",
        "-1.5",
        "-0.5",
        "5.5",
        "-5.55",
        "45",
        "450",
        "0.05",
        "9999.5",
    ]
    .into_iter()
    .map(|number| Node::Value("numeric", Some(number.to_owned())))
    .collect();
    let numerics: Vec<Node> = values("numeric").into_iter().chain(more).collect();
    for name in
        ["abs", "sign", "round", "floor", "ceil", "ceiling", "trunc", "sqrt", "exp", "ln", "log", "log10"]
    {
        for ty in NUMBERS {
            let of_type = if ty == "numeric" { numerics.clone() } else { values(ty) };
            cases.extend(called(name, &[of_type], 100, rng));
        }
    }
    cases.extend(called("cbrt", &[values("float8")], 20, rng));
    for name in ["round", "trunc"] {
        cases.extend(called(name, &[numerics.clone(), integers(&[0, 1, 2, 5, -1, -2, -3, 20])], 400, rng));
        cases.extend(called(name, &[values("int4"), integers(&[0, 1, -1])], 20, rng));
    }
    for name in ["power", "mod", "div"] {
        for left in NUMBERS {
            for right in NUMBERS {
                cases.extend(called(name, &[values(left), values(right)], 60, rng));
            }
        }
        cases.extend(called(name, &[numerics.clone(), numerics.clone()], 500, rng));
    }
    cases.extend(called("log", &[numerics.clone(), numerics.clone()], 500, rng));
    check(cases, |node, wanted, found| close_doubles(wanted, found) || is_beyond_digits(node, wanted, found));
}

/// Doubles whose last digit differs: libraries compute transcendental functions differently.
fn close_doubles(wanted: &Outcome, found: &Outcome) -> bool {
    let (Outcome::Value(wanted_ty, Some(wanted)), Outcome::Value(found_ty, Some(found))) = (wanted, found)
    else {
        return false;
    };
    let (Ok(wanted), Ok(found)) = (wanted.parse::<f64>(), found.parse::<f64>()) else { return false };
    wanted_ty == "double precision" && found_ty == wanted_ty && (wanted - found).abs() <= wanted.abs() * 1e-15
}

/// A numeric here has at most 16,384 digits.
fn is_beyond_digits(_: &Node, wanted: &Outcome, found: &Outcome) -> bool {
    let Outcome::Value(_, Some(wanted)) = wanted else { return false };
    wanted.len() > 10_000 && matches!(found, Outcome::Error(_))
}
