//! The drain's state machine, driven directly: each rule of delivery by name, and seeded simulations.

mod drain_rules;
mod drain_simulation;
mod drain_thread;
mod support;
