//! Opens the engine that a setting names.

use std::sync::Arc;

use kumiko_kv::{Engine, Memory};
use kumiko_kv_postgres::Postgres;

use crate::{Error, random};

/// Opens `spec`: `memory`, `disk:DIR`, ... as the setting `engine` takes it.
pub fn open(spec: &str, _durability: &str) -> Result<Arc<dyn Engine>, Error> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match (kind, rest) {
        ("postgres", url) => Ok(Arc::new(Postgres::open(url, random::number()?)?)),
        ("memory", "") => Ok(Arc::new(Memory::new())),
        _ => Err(Error::invalid(format!("there is no engine \"{spec}\" in this build"))),
    }
}
