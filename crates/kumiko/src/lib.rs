//! Kumiko, to embed: the engines, the services and the node of the program `kumiko`.

pub use kumiko_base as base;
pub use kumiko_coordinator as coordinator;
pub use kumiko_kv as kv;
pub use kumiko_node as node;

mod backup;
mod check;
mod cluster;
mod dump;
pub mod program;
mod progress;
mod serve;
mod store;
