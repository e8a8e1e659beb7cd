//! Opens the engine that a setting names.

use std::sync::{Arc, OnceLock};

use kumiko_kv::{Engine, Memory};
use kumiko_kv_postgres::Postgres;

use crate::{Error, random};

/// Opens an engine of a kind that is not in every build, from what stands behind the colon.
pub type Opener = fn(&str) -> Result<Arc<dyn Engine>, Error>;

static FOUNDATIONDB: OnceLock<Opener> = OnceLock::new();

/// Lets `fdb:CLUSTER_FILE` be opened by this process.
pub fn register_foundationdb(opener: Opener) {
    // The first wins; there is only one that could be registered.
    let _ = FOUNDATIONDB.set(opener);
}

/// Opens `spec`: `memory`, `disk:DIR`, ... as the setting `engine` takes it.
pub fn open(spec: &str, _durability: &str) -> Result<Arc<dyn Engine>, Error> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match (kind, rest) {
        ("postgres", url) => Ok(Arc::new(Postgres::open(url, random::number()?)?)),
        ("memory", "") => Ok(Arc::new(Memory::new())),
        ("fdb", file) => match FOUNDATIONDB.get() {
            Some(opener) => opener(file),
            None => Err(Error::invalid(
                "this build has no FoundationDB; use the program kumiko-fdb of crates/kv-fdb",
            )),
        },
        _ => Err(Error::invalid(format!("there is no engine \"{spec}\" in this build"))),
    }
}
