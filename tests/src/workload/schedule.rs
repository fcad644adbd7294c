//! What happens in which order.

use super::change::Model;
use super::query::Template;
use super::schema::Schema;
use super::{Size, Step, Workload};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

struct Subscriber {
    connected: bool,
    subscriptions: Vec<u64>,
    next_sub: u64,
}

pub(super) fn generate(seed: u64, size: Size) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rng = &mut rng;
    let schema = Schema::generate(rng, size);
    let mut model = Model::new(&schema, size);
    let initial = model.fill(&schema, rng);
    let mut templates: Vec<Template> =
        (0..size.templates()).map(|_| Template::generate(&schema, rng)).collect();
    let mut subscribers: Vec<Subscriber> = (0..size.subscribers())
        .map(|_| Subscriber { connected: false, subscriptions: Vec::new(), next_sub: 1 })
        .collect();
    let mut steps = Vec::new();
    // Most are there and have something to watch before the first commit.
    for subscriber in 0..subscribers.len() {
        if rng.random_bool(0.8) {
            subscribers[subscriber].connected = true;
            steps.push(Step::Connect { subscriber });
            for _ in 0..rng.random_range(1..=3) {
                steps.push(subscribe(subscriber, &mut subscribers, &templates, &model, rng));
            }
        }
    }
    for _ in 0..size.steps() {
        let index = rng.random_range(0..subscribers.len());
        let subscriber = &mut subscribers[index];
        match rng.random_range(0..100) {
            0..=4 if subscriber.connected => {
                subscriber.connected = false;
                subscriber.subscriptions.clear();
                steps.push(Step::Disconnect { subscriber: index });
            }
            0..=24 if !subscriber.connected => {
                subscriber.connected = true;
                steps.push(Step::Connect { subscriber: index });
            }
            5..=12 if !subscriber.subscriptions.is_empty() => {
                let position = rng.random_range(0..subscriber.subscriptions.len());
                let sub = subscriber.subscriptions.swap_remove(position);
                steps.push(Step::Unsubscribe { subscriber: index, sub });
            }
            13..=29 if subscriber.connected => {
                if rng.random_bool(0.3) {
                    let position = rng.random_range(0..templates.len());
                    templates[position] = Template::generate(&schema, rng);
                }
                // Several of one shape at a time make a family.
                let again = if rng.random_bool(0.2) { rng.random_range(1..=3) } else { 0 };
                steps.push(subscribe(index, &mut subscribers, &templates, &model, rng));
                for _ in 0..again {
                    steps.push(subscribe(index, &mut subscribers, &templates, &model, rng));
                }
            }
            _ => steps.push(Step::Commit(model.commit(&schema, rng))),
        }
    }
    Workload { tables: schema.to_json(), initial, steps }
}

fn subscribe(
    index: usize,
    subscribers: &mut [Subscriber],
    templates: &[Template],
    model: &Model,
    rng: &mut ChaCha8Rng,
) -> Step {
    let subscriber = &mut subscribers[index];
    let sub = subscriber.next_sub;
    subscriber.next_sub += 1;
    subscriber.subscriptions.push(sub);
    let template = templates.choose(rng).expect("every size has templates");
    let (query, args) = template.instance(model, rng);
    Step::Subscribe { subscriber: index, sub, query, args }
}
