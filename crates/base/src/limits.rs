//! The limits of the strictest engine (FoundationDB). They hold on every engine, so that nothing
//! works on a laptop and fails on a cluster.

/// The longest key.
pub const KEY_BYTES_MAX: usize = 10_000;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = 100_000;
/// The most that one transaction may write: keys, values and conflict ranges together.
pub const TXN_BYTES_MAX: usize = 10_000_000;
/// The longest that one transaction may live, in milliseconds.
pub const TXN_MS_MAX: u64 = 5_000;

const _: () = {
    assert!(KEY_BYTES_MAX < VALUE_BYTES_MAX);
    assert!(VALUE_BYTES_MAX < TXN_BYTES_MAX);
};
