//! The queries as differential dataflows.

use crate::{
    Measured,
    events::{Event, is_local},
};
use differential_dataflow::input::Input as _;
use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};
use timely::dataflow::operators::probe::Handle;

/// Query 3.
pub fn local_sellers(commits: &[Vec<Event>]) -> anyhow::Result<Measured> {
    let commits = commits.to_vec();
    measured(move |worker| {
        let rows = Rc::new(Cell::new(0));
        let counted = Rc::clone(&rows);
        let probe = Handle::new();
        let (mut persons, mut auctions) = worker.dataflow::<usize, _, _>(|scope| {
            let (person_input, persons) = scope.new_collection::<(i64, (String, String, String)), isize>();
            let (auction_input, auctions) = scope.new_collection::<(i64, i64, i64), isize>();
            let persons = persons.filter(|(_, (_, _, state))| is_local(state));
            let auctions = auctions.filter(|auction| auction.2 == 10).map(|(id, seller, _)| (seller, id));
            auctions
                .join_map(persons, |_, id, person| (person.clone(), *id))
                .consolidate()
                .inspect(move |(_, _, weight)| counted.set(counted.get() + *weight as i64))
                .probe_with(&probe);
            (person_input, auction_input)
        });
        let mut time = Duration::ZERO;
        for (number, commit) in (1..).zip(&commits) {
            let events = commit.clone();
            let start = Instant::now();
            for event in events {
                match event {
                    Event::Person { id, name, city, state } => persons.insert((id, (name, city, state))),
                    Event::Auction { id, seller, category, .. } => auctions.insert((id, seller, category)),
                    Event::Bid { .. } => {}
                }
            }
            persons.advance_to(number);
            auctions.advance_to(number);
            persons.flush();
            auctions.flush();
            worker.step_while(|| probe.less_than(&number));
            time += start.elapsed();
        }
        (time, rows.get())
    })
}

/// Query 4.
pub fn averages(commits: &[Vec<Event>]) -> anyhow::Result<Measured> {
    let commits = commits.to_vec();
    measured(move |worker| {
        let rows = Rc::new(Cell::new(0));
        let counted = Rc::clone(&rows);
        let probe = Handle::new();
        let (mut auctions, mut bids) = worker.dataflow::<usize, _, _>(|scope| {
            let (auction_input, auctions) = scope.new_collection::<(i64, (i64, i64, i64)), isize>();
            let (bid_input, bids) = scope.new_collection::<(i64, (i64, i64)), isize>();
            auctions
                .join_map(bids, |id, (category, starts, expires), (price, at)| {
                    ((*id, *category), (starts <= at && at <= expires).then_some(*price))
                })
                .flat_map(|(key, price)| price.map(|price| (key, price)))
                .reduce(|_, prices, out| out.push((*prices[prices.len() - 1].0, 1_isize)))
                .map(|((_, category), price)| (category, price))
                .reduce(|_, prices, out| {
                    let (mut sum, mut count) = (0, 0);
                    for (price, times) in prices {
                        sum += **price * *times as i64;
                        count += *times as i64;
                    }
                    out.push((sum / count, 1_isize));
                })
                .inspect(move |(_, _, weight)| counted.set(counted.get() + *weight as i64))
                .probe_with(&probe);
            (auction_input, bid_input)
        });
        let mut time = Duration::ZERO;
        for (number, commit) in (1..).zip(&commits) {
            let start = Instant::now();
            for event in commit {
                match event {
                    Event::Person { .. } => {}
                    Event::Auction { id, category, starts, expires, .. } => {
                        auctions.insert((*id, (*category, *starts, *expires)));
                    }
                    Event::Bid { auction, price, at } => bids.insert((*auction, (*price, *at))),
                }
            }
            auctions.advance_to(number);
            bids.advance_to(number);
            auctions.flush();
            bids.flush();
            worker.step_while(|| probe.less_than(&number));
            time += start.elapsed();
        }
        (time, rows.get())
    })
}

/// Runs work on one worker.
fn measured(
    work: impl FnOnce(&mut timely::worker::Worker) -> (Duration, i64) + Send + Sync + 'static,
) -> anyhow::Result<Measured> {
    let (time, rows) = timely::execute::execute_directly(work);
    Ok(Measured { time, rows })
}
