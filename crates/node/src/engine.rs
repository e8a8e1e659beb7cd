//! Opens the engine that a setting names.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use kumiko_kv::{Engine, Memory};
use kumiko_kv_disk::{Disk, Durability, Options};
use kumiko_kv_postgres::Postgres;

use crate::{Error, random};

/// Whether a store that is not there is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make it.
    Create,
    /// Say so.
    Refuse,
}

/// Opens an engine of a kind that is not in every build, from what stands behind the colon.
pub type Opener = fn(&str) -> Result<Arc<dyn Engine>, Error>;

static FOUNDATIONDB: OnceLock<Opener> = OnceLock::new();

/// Lets `fdb:CLUSTER_FILE` be opened by this process.
pub fn register_foundationdb(opener: Opener) {
    // The first wins; there is only one that could be registered.
    let _ = FOUNDATIONDB.set(opener);
}

/// Opens `spec` as the setting `engine` takes it: `memory`, `disk:DIR`, `postgres:URL`. The
/// durability is the setting of that name; a shared engine has its own.
pub fn open(spec: &str, durability: &str, missing: Missing) -> Result<Arc<dyn Engine>, Error> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match (kind, rest) {
        ("memory", "") => Ok(Arc::new(Memory::new())),
        ("disk", dir) => Ok(open_disk(Path::new(dir), durability, missing)?),
        ("postgres", url) => Ok(Arc::new(Postgres::open(url, random::number()?)?)),
        ("fdb", file) => match FOUNDATIONDB.get() {
            Some(opener) => opener(file),
            None => Err(Error::invalid(
                "this build has no FoundationDB; use the program kumiko-fdb of crates/kv-fdb",
            )),
        },
        _ => Err(Error::invalid(format!("there is no engine \"{spec}\""))),
    }
}

/// Opens the embedded store in `dir`.
pub fn open_disk(dir: &Path, durability: &str, missing: Missing) -> Result<Arc<Disk>, Error> {
    let durability = match durability {
        "everysecond" => Durability::EverySecond,
        "never" => Durability::Never,
        _ => Durability::Always,
    };
    let create = missing == Missing::Create;
    Ok(Arc::new(Disk::open(dir, Options { durability, create, ..Options::default() })?))
}
