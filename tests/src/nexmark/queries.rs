//! Queries 0 to 9. Those that look at windows of time look at all of it, with the same operators.

/// One query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Its number.
    pub number: usize,
    /// Its text.
    pub sql: &'static str,
    /// The result's columns that it orders by, the first ones first.
    pub ordering: &'static [usize],
}

/// Query 3: who sells in some states, in one category.
pub const LOCAL_SELLERS: &str = "\
select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
where a.category = 10 and p.state in ('or', 'id', 'ca')";

/// Query 4: the average of the winning bids of each category.
pub const AVERAGES: &str = "\
select category, avg(final) as average
from (
  select a.id, a.category, max(b.price) as final from auction a join bid b on a.id = b.auction
  where b.date_time between a.date_time and a.expires
  group by a.id, a.category) as winning
group by category";

/// All of them.
pub const QUERIES: &[Query] = &[
    Query { number: 0, sql: "select auction, bidder, price, date_time from bid", ordering: &[] },
    Query { number: 1, sql: "select auction, bidder, 0.908 * price as price, date_time from bid", ordering: &[] },
    Query { number: 2, sql: "select auction, price from bid where mod(auction, 123) = 0", ordering: &[] },
    Query { number: 3, sql: LOCAL_SELLERS, ordering: &[] },
    Query { number: 4, sql: AVERAGES, ordering: &[] },
    Query {
        number: 5,
        sql: "\
with counts as (select auction, count(*) as num from bid group by auction)
select auction, num from counts where num >= (select max(num) from counts) order by auction",
        ordering: &[0],
    },
    Query {
        number: 6,
        sql: "\
select id, seller, avg(price) over (partition by seller order by date_time, id rows between 9 preceding and current row)
  as average
from (
  select a.id, a.seller, b.price, b.date_time, row_number() over (partition by a.id order by b.price desc, b.id) as place
  from auction a join bid b on a.id = b.auction
  where b.date_time between a.date_time and a.expires) as ranked
where place = 1 order by id",
        ordering: &[0],
    },
    Query {
        number: 7,
        sql: "select auction, bidder, price from bid where price = (select max(price) from bid)",
        ordering: &[],
    },
    Query {
        number: 8,
        sql: "\
select p.id, p.name, n.opened from person p
  join (select seller, min(date_time) as opened from auction group by seller) as n on n.seller = p.id
where n.opened < p.date_time + interval '1 minute' order by n.opened desc, p.id",
        ordering: &[2, 0],
    },
    Query {
        number: 9,
        sql: "\
select id, item, seller, bid, price from (
  select a.id, a.item, a.seller, b.id as bid, b.price,
    row_number() over (partition by a.id order by b.price desc, b.date_time, b.id) as place
  from auction a join bid b on a.id = b.auction
  where b.date_time between a.date_time and a.expires) as ranked
where place <= 1 order by id",
        ordering: &[0],
    },
];
