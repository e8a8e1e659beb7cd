//! The keyspace in one table of PostgreSQL, shared by as many nodes as connect to it.
//!
//! ```text
//! kumiko_kv    (key bytea primary key, value bytea, version bigint, at timestamptz)
//! kumiko_touch (id bigint, first bytea, past bytea, at timestamptz)
//! ```
//!
//! A row without a value is the trace of a removed key, and a row of `kumiko_touch` the trace of a
//! range that was cleared or declared written: both are there so that a reader of what was removed
//! notices, and go after minutes.
//!
//! A transaction reads one snapshot (REPEATABLE READ), keeps its writes to itself, and remembers
//! what it read. The commit is a second, SERIALIZABLE transaction: it looks whether everything that
//! was read still has the versions that were seen, and writes. So a transaction fails exactly when
//! another one wrote what it read, as on every other engine, and snapshot reads take part in no
//! conflict. Every write draws a new version; versions are never used again.
//!
//! Only statements that CockroachDB and YugabyteDB know are used; where LISTEN is missing, a watch
//! polls.
//!
//! It knows nothing of categories or services. Read [`engine`] first; [`client`] speaks the wire
//! protocol.

pub mod client;
pub mod engine;
mod scram;
mod txn;
mod watch;

pub use engine::Postgres;
