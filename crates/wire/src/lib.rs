//! Wire protocols: bytes in, bytes out.
//!
//! Nothing here opens a socket, reads a clock or knows what a command means. Each protocol is a
//! module of its own: a decoder that takes bytes as they arrive and never trusts a length, and a
//! writer that appends to a buffer.
//!
//! Read [`resp`] for the Redis protocol, [`mongo`] for MongoDB's,
//! [`latticenode`] for replication.

pub mod latticenode;
pub mod mongo;
pub mod resp;
