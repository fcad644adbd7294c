//! The queries as dbsp circuits.

use crate::{
    Measured,
    events::{Event, is_local},
};
use dbsp::{
    OrdIndexedZSet, OrdZSet, OutputHandle, Runtime,
    operator::Max,
    typed_batch::IndexedZSetReader as _,
    utils::{Tup2, Tup3, Tup4},
};
use std::time::Instant;

type Seller = Tup4<String, String, String, i64>;

/// Query 3.
pub fn local_sellers(commits: &[Vec<Event>]) -> anyhow::Result<Measured> {
    let (mut circuit, (persons, auctions, output)) = Runtime::init_circuit(1, |circuit| {
        let (persons, person_input) = circuit.add_input_zset::<Tup4<i64, String, String, String>>();
        let (auctions, auction_input) = circuit.add_input_zset::<Tup3<i64, i64, i64>>();
        let persons = persons
            .filter(|person| is_local(&person.3))
            .map_index(|Tup4(id, name, city, state)| (*id, Tup3(name.clone(), city.clone(), state.clone())));
        let auctions =
            auctions.filter(|auction| auction.2 == 10).map_index(|Tup3(id, seller, _)| (*seller, *id));
        let sellers = auctions.join(&persons, |_, id, Tup3(name, city, state)| {
            Tup4(name.clone(), city.clone(), state.clone(), *id)
        });
        let output: OutputHandle<OrdZSet<Seller>> = sellers.output();
        Ok((person_input, auction_input, output))
    })?;
    let mut rows = 0;
    let mut time = std::time::Duration::ZERO;
    for commit in commits {
        let (mut new_persons, mut new_auctions) = (Vec::new(), Vec::new());
        for event in commit.iter().cloned() {
            match event {
                Event::Person { id, name, city, state } => new_persons.push(Tup2(Tup4(id, name, city, state), 1)),
                Event::Auction { id, seller, category, .. } => new_auctions.push(Tup2(Tup3(id, seller, category), 1)),
                Event::Bid { .. } => {}
            }
        }
        let start = Instant::now();
        persons.append(&mut new_persons);
        auctions.append(&mut new_auctions);
        circuit.transaction()?;
        let changes = output.consolidate();
        time += start.elapsed();
        rows += changes.iter().map(|(_, (), weight)| weight).sum::<i64>();
    }
    circuit.kill().map_err(|_| anyhow::anyhow!("the circuit does not end"))?;
    Ok(Measured { time, rows })
}

/// Query 4.
pub fn averages(commits: &[Vec<Event>]) -> anyhow::Result<Measured> {
    let (mut circuit, (auctions, bids, output)) = Runtime::init_circuit(1, |circuit| {
        let (auctions, auction_input) = circuit.add_input_zset::<Tup4<i64, i64, i64, i64>>();
        let (bids, bid_input) = circuit.add_input_zset::<Tup3<i64, i64, i64>>();
        let auctions =
            auctions.map_index(|Tup4(id, category, starts, expires)| (*id, Tup3(*category, *starts, *expires)));
        let bids = bids.map_index(|Tup3(auction, price, at)| (*auction, Tup2(*price, *at)));
        let winning = auctions
            .join_index(&bids, |id, Tup3(category, starts, expires), Tup2(price, at)| {
                (starts <= at && at <= expires).then_some((Tup2(*id, *category), *price))
            })
            .aggregate(Max);
        let averages = winning.map_index(|(Tup2(_, category), price)| (*category, *price)).average(|price| *price);
        let output: OutputHandle<OrdIndexedZSet<i64, i64>> = averages.output();
        Ok((auction_input, bid_input, output))
    })?;
    let mut rows = 0;
    let mut time = std::time::Duration::ZERO;
    for commit in commits {
        let (mut new_auctions, mut new_bids) = (Vec::new(), Vec::new());
        for event in commit {
            match event {
                Event::Person { .. } => {}
                Event::Auction { id, category, starts, expires, .. } => {
                    new_auctions.push(Tup2(Tup4(*id, *category, *starts, *expires), 1));
                }
                Event::Bid { auction, price, at } => new_bids.push(Tup2(Tup3(*auction, *price, *at), 1)),
            }
        }
        let start = Instant::now();
        auctions.append(&mut new_auctions);
        bids.append(&mut new_bids);
        circuit.transaction()?;
        let changes = output.consolidate();
        time += start.elapsed();
        rows += changes.iter().map(|(_, _, weight)| weight).sum::<i64>();
    }
    circuit.kill().map_err(|_| anyhow::anyhow!("the circuit does not end"))?;
    Ok(Measured { time, rows })
}
