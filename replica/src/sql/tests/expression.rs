//! Expressions: operators, functions, casts, predicates, parameters.

use super::means;

#[test]
fn expression() {
    means(&[
        (
            "select case when a > 1 then 'x' else b end, coalesce(a, :p) as c, a between 1 and 2 as w, b is null as n, not ok as k from t",
            "b, c, w, n, k -> project(table0, [case($1 > 1: 'x', $2):text, coalesce($1, 7):int8, and($1 >= 1, $1 <= 2):bool, null($2):bool, not($5):bool])",
        ),
        (
            "select id, case a when 1 then 'x' when :p then 'y' end as c from t",
            "id, c -> project(table0, [$0:int8, case($1 = 1: 'x', $1 = 7: 'y', null):text])",
        ),
        (
            "select a is distinct from 3 as d, ok is true as e, -a as f, date '2024-01-01' as i from t",
            r#"d, e, f, i -> project(table0, [$1 distinct 3:bool, is($5, Some(true)):bool, negate($1):int8, "2024-01-01":date])"#,
        ),
        (
            "select at > '2024-01-01' as y, substring(b from 2 for 3) as s, position('x' in b) as p, trim(leading 'x' from b) as q from t",
            r#"y, s, p, q -> project(table0, [$6 > "2024-01-01T00:00:00Z":bool, substring($2, 2, 3):text, position($2, 'x'):int8, trimstart($2, 'x'):text])"#,
        ),
        (
            "select id from t where a in (1, 2, 3) and b not in ('x', :q) and a in (:list)",
            "id -> project(filter(table0, and($1 in (1, 2, 3), not($2 in ('x', 'x')), $1 in (1, 2))), [$0:int8])",
        ),
        (
            "select id from t where a = any(array[1, 2]) and a <> all(:list) and a > any(:list) and a <= all(array[4, 5])",
            "id -> project(filter(table0, and($1 in (1, 2), not($1 in (1, 2)), or($1 > 1, $1 > 2), and($1 <= 4, $1 <= 5))), [$0:int8])",
        ),
        (
            "select id from t where (a, b) = (1, 'x') and (a, id) > (1, 2) and (a, id) <> (3, 4)",
            "id -> project(filter(table0, and(and($1 = 1, $2 = 'x'), or($1 > 1, and($1 = 1, $0 > 2)), or($1 <> 3, $0 <> 4))), [$0:int8])",
        ),
        (
            "select id from t where (a, b) not in ((1, 'x'), (2, 'y'))",
            "id -> project(filter(table0, not(or(and($1 = 1, $2 = 'x'), and($1 = 2, $2 = 'y')))), [$0:int8])",
        ),
        (
            "select id from t where a not between 1 and 2 and ok is not true and b is not null",
            "id -> project(filter(table0, and(not(and($1 >= 1, $1 <= 2)), not(is($5, Some(true))), not(null($2)))), [$0:int8])",
        ),
        (
            "select id from t where row(a, id) <= row(1, 2)",
            "id -> project(filter(table0, or($1 < 1, and($1 = 1, $0 <= 2))), [$0:int8])",
        ),
        (
            "select a::text || 'x' as x, a + 1.5 as y, f * 2 as z from t",
            r#"x, y, z -> project(table0, [append(text($1), 'x'):text, (numeric($1) + "1.5"):numeric, ($4 * 2.0):float8])"#,
        ),
    ]);
}
