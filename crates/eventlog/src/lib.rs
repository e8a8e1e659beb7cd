//! One durable log per point: events in order, visible whole or not at all.
//!
//! A log lives under any key prefix, in the form of event-log schema 0 (see `docs/format/`). A
//! [`Writer`] holds it against a second writer, names the id of what it appends, and may repeat an
//! append without harm. Readers see the events from the first that is kept to the latest, in one
//! consistent state. Points are numbers with names; vere's piers can be read and written.
//!
//! Pure: no file, socket, thread, clock or random number. Engines, sources and times come in.
//!
//! Read [`key`] first, then [`machine`], [`log`], [`writer`] and [`read`]; [`snapshot`] holds
//! truncation too, [`verify`] and [`repair`] belong together.
//!
//! ```
//! use kumiko_eventlog::{EventId, Item, Log, PageMax, Point, Take, Writer};
//! use kumiko_kv::{Engine, Memory};
//!
//! let engine = Memory::new();
//! let point: Point = "~sampel-palnet".parse()?;
//! let writer = Writer::open(&engine, &Log::of(point), "host-1", Take::IfFree)?;
//! writer.append(&engine, EventId::FIRST, &[Item::event(b"one"), Item::event(b"two")])?;
//!
//! let mut txn = engine.begin()?;
//! let page = writer.log().page(txn.as_mut(), EventId::FIRST, PageMax::default())?;
//! assert_eq!(page.events.len(), 2);
//! # Ok::<(), kumiko_eventlog::Error>(())
//! ```

pub mod error;
pub mod fence;
pub mod key;
pub mod lmdb;
pub mod log;
pub mod machine;
pub mod name;
pub mod pier;
pub mod point;
pub mod read;
pub mod repair;
pub mod snapshot;
pub mod stat;
pub mod subspace;
pub mod verify;
pub mod writer;

pub use error::Error;
pub use fence::{Fence, Guard};
pub use key::EventId;
pub use log::{Appended, Bounds, Item, Log, Sizes};
pub use point::Point;
pub use read::{Content, EventReader, EventStream, Follow, Page, PageMax, Seen};
pub use snapshot::{Snapshot, SnapshotReader, Truncated};
pub use writer::{Take, Writer};

pub(crate) use kumiko_base::hex::show as hex;
