//! The program `kumiko-fdb`: `kumiko` with one engine more, `fdb:CLUSTER_FILE`.

use std::process::ExitCode;
use std::sync::Arc;

use kumiko::kv::Engine;
use kumiko::node::{Error, engine};
use kumiko_kv_fdb::FoundationDb;

fn main() -> ExitCode {
    engine::register_foundationdb(open);
    kumiko::program::main()
}

fn open(cluster_file: &str) -> Result<Arc<dyn Engine>, Error> {
    Ok(Arc::new(FoundationDb::open(cluster_file)?))
}
