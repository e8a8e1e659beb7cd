//! The process: settings, engine, sockets, threads and services.
//!
//! This is the rim. Everything below is synchronous and pure; here are the clocks, the threads, the
//! files and the network, and here the services meet: what one needs of another is handed to it.
//!
//! Read [`settings`] first, then [`engine`] and [`node`].

pub mod backup;
pub mod clock;
pub mod cluster;
pub mod engine;
pub mod error;
pub mod http;
pub mod mongo;
pub mod node;
pub mod random;
pub mod redis;
pub mod service;
pub mod settings;

pub use error::Error;
pub use node::Node;
pub use service::Service;
pub use settings::Settings;
