//! Kumiko, to embed: the engines, the services and the node of the program `kumiko`.

pub use kumiko_base as base;
pub use kumiko_coordinator as coordinator;
pub use kumiko_document as document;
pub use kumiko_eventlog as eventlog;
pub use kumiko_kv as kv;
pub use kumiko_lang as lang;
pub use kumiko_node as node;

mod backup;
mod bench;
mod check;
mod cluster;
mod dump;
mod export;
mod import;
mod log;
pub mod program;
mod progress;
mod serve;
mod store;
