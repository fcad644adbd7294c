//! JSON documents.

use super::{
    outcome::{check, nothing},
    values::*,
};
use crate::support::expression::Node;

#[test]
fn documents() {
    let rng = &mut rng();
    let mut cases = Vec::new();
    let keys: Vec<Node> = texts(&["a", "b", "n", "s", "c", "", "1", "str"]);
    let indexes = integers(&[0, 1, 2, 4, -1, -5, -6, 9]);
    let paths = texts(&[
        "{}",
        "{a}",
        "{b,2,c}",
        "{b,-1}",
        "{b,9}",
        "{ b , 2 }",
        "{\"b\",1}",
        "{n}",
        "{n,x}",
        "{4,0}",
        "a",
        "{a,null}",
        "{a,,b}",
        "{",
    ]);
    for document in values("jsonb") {
        for key in keys.iter().chain(&indexes) {
            cases.push(binary("->", &document, key));
            cases.push(binary("->>", &document, key));
        }
        for key in &keys {
            cases.push(binary("?", &document, key));
        }
        for path in &paths {
            let Node::Value(_, path) = path else { continue };
            cases.push(binary("#>", &document, &Node::Literal(path.clone())));
            cases.push(binary("#>>", &document, &Node::Literal(path.clone())));
        }
        for other in values("jsonb") {
            cases.push(binary("@>", &document, &other));
            cases.push(binary("<@", &document, &other));
        }
        cases.push(binary("->", &document, &literal("a")));
        cases.push(binary("@>", &document, &literal("[1]")));
        cases.push(binary("@>", &document, &literal("{\"b\":[1]}")));
        cases.push(binary("@>", &document, &literal("{\"b\":[{\"c\":\"x\"}],\"a\":1.0}")));
        cases.push(Node::Call("jsonb_array_length", vec![document.clone()]));
        cases.push(Node::Call("jsonb_typeof", vec![document]));
    }
    for pair in combinations(&[values("jsonb"), texts(&["a", "b"])], 100, rng) {
        let member = binary("->>", &pair[0], &pair[1]);
        cases.push(Node::Cast(Box::new(member.clone()), "int8"));
        cases.push(binary("=", &member, &literal("1")));
    }
    check(cases, nothing);
}
