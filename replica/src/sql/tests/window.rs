//! Window functions.

use super::means;

#[test]
fn window() {
    means(&[
        (
            "select id, row_number() over (partition by a order by b desc) as r, rank() over (partition by a order by b desc) from t",
            "id, r, rank -> project(window(table0, [$1], [$2 desc], [row_number:int8, rank:int8]), [$0:int8, $7:int8, $8:int8])",
        ),
        (
            "select a, sum(count(*)) over (order by a rows between 1 preceding and current row) as s from t group by a",
            "a, s -> project(window(aggregate(table0, [$1:int8], [Count():int8]), [], [$0], [Sum($1):numeric rows -1..0:numeric]), [$0:int8, $2:numeric])",
        ),
        (
            "select id, sum(a) over w as s, lag(b, 2, 'z') over (w order by id) as l, lead(a) over (order by id) from t window w as (partition by ok)",
            "id, s, l, lead -> project(window(window(window(table0, [$5], [], [Sum($1):numeric range *..0:numeric]), [$5], [$0], [lag($2, 2, 'z'):text]), [], [$0], [lag($1, -1, null):int8]), [$0:int8, $7:numeric, $8:text, $9:int8])",
        ),
        (
            "select count(*) filter (where a > 1) over (partition by b) as c, first_value(b) over (order by id groups between current row and 2 following) as f from t",
            "c, f -> project(window(window(table0, [$2], [], [Count():int8 filter $1 > 1 range *..0:int8]), [], [$0], [first($2) groups 0..+2:text]), [$7:int8, $8:text])",
        ),
        (
            "select sum(a) over (order by a desc range between 1 preceding and current row) as s, nth_value(b, 2) over (order by id) as v, ntile(4) over () as q, cume_dist() over () as c from t",
            "s, v, q, c -> project(window(window(window(table0, [], [$1 desc], [Sum($1):numeric range [($1 + 1)]..0:numeric]), [], [$0], [nth($2, 2) range *..0:text]), [], [], [ntile(4):int8, cume_dist:float8]), [$7:numeric, $8:text, $9:int8, $10:float8])",
        ),
        (
            "select a, rank() over (order by sum(n) desc) as r from t group by a order by r",
            "a, r -> project(window(aggregate(table0, [$1:int8], [Sum($3):numeric]), [], [$1 desc], [rank:int8]), [$0:int8, $2:int8]) order 1",
        ),
        (
            "select id from t order by dense_rank() over (order by a), id",
            "id -> project(window(table0, [], [$1], [dense_rank:int8]), [$0:int8, $7:int8]) order 1, 0",
        ),
        (
            "select last_value(a) over (order by id rows between unbounded preceding and unbounded following) + 1 as x from t",
            "x -> project(window(table0, [], [$0], [last($1) rows *..*:int8]), [($7 + 1):int8])",
        ),
    ]);
}
