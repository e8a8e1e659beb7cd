//! How every subcommand that works on a store names and opens it.

use std::path::PathBuf;
use std::sync::Arc;

use kumiko_kv::Engine;
use kumiko_node::Error;
use kumiko_node::engine::{self, Missing};

/// Which store to work on.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Args {
    /// The directory of the store
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "./kumiko-data",
        env = "KUMIKO_DIR"
    )]
    pub(crate) dir: PathBuf,
    /// Where the keyspace lives instead: disk:DIR or postgres:URL
    #[arg(long, global = true, value_name = "ENGINE", env = "KUMIKO_ENGINE")]
    pub(crate) engine: Option<String>,
}

impl Args {
    /// Opens the store, which must exist.
    pub(crate) fn open(&self) -> Result<Arc<dyn Engine>, Error> {
        engine::open(&self.spec(), "always", Missing::Refuse)
    }

    /// Opens the store, or makes it.
    pub(crate) fn create(&self) -> Result<Arc<dyn Engine>, Error> {
        engine::open(&self.spec(), "always", Missing::Create)
    }

    /// The directory of the store, if it is an embedded one.
    pub(crate) fn disk_dir(&self) -> Option<PathBuf> {
        self.spec().strip_prefix("disk:").map(PathBuf::from)
    }

    fn spec(&self) -> String {
        self.engine.clone().unwrap_or_else(|| format!("disk:{}", self.dir.display()))
    }
}
