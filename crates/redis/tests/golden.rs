//! Golden scripts: sessions in `tests/golden`, with the replies that clients must see.
//!
//! `UPDATE=1` rewrites the replies; read the difference before it is committed.

use std::fs;
use std::path::Path;

use kumiko_redis::testing::replay;

#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let update = std::env::var_os("UPDATE").is_some();
    for path in paths {
        let script = fs::read_to_string(&path).unwrap();
        let found = replay(&script);
        if update {
            fs::write(&path, &found).unwrap();
        } else {
            assert_eq!(found, script, "{}", path.display());
        }
    }
}
