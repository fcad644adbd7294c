//! Whole clients against servers that the tests play: over the memory transport, with tokio's paused clock, and over
//! a WebSocket.

mod connections;
mod server;
mod vectors;
mod views;
mod websocket;
