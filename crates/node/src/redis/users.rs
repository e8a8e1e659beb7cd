//! The file that keeps the users of the Redis front.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use kumiko_redis::server::UsersFile;

/// `users.acl` beside the store.
#[derive(Debug)]
pub(super) struct Users {
    pub(super) path: PathBuf,
}

impl UsersFile for Users {
    fn load(&mut self) -> Result<String, String> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }

    /// Writes beside the file and renames, so that a crash leaves the old or the new text.
    fn save(&mut self, text: &str) -> Result<(), String> {
        let fresh = self.path.with_extension("acl.new");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, &self.path)?;
            if let Some(folder) = self.path.parent() {
                File::open(folder)?.sync_all()?;
            }
            Ok(())
        };
        write().map_err(|error| format!("{}: {error}", self.path.display()))
    }
}
