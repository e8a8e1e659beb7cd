//! Starts the network thread of the client library, once per process.

use std::sync::OnceLock;

use foundationdb::api::NetworkAutoStop;

static NETWORK: OnceLock<NetworkAutoStop> = OnceLock::new();

/// Starts the network thread unless it runs already. It runs until the process ends.
#[expect(unsafe_code, reason = "the client library demands that it is started once per process")]
pub fn boot() {
    NETWORK.get_or_init(|| {
        // SAFETY: the library may be booted once per process, and its guard must not be dropped while
        // it is in use. The cell runs this once, and a static is never dropped.
        unsafe { foundationdb::boot() }
    });
}
