//! The few things the store asks of a file system, so that a test can put a worse one below it.
//!
//! [`Real`] is the operating system; [`crate::simulated::Simulated`] is a disk in memory that
//! fills up, tears writes and loses what was not synced.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use kumiko_kv::Error;

/// A directory tree.
pub trait Files: Debug + Send + Sync {
    /// Makes the directory and its parents, if they are not there.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// The names in the directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file that is there.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Makes an empty file, in place of one that is there.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// The size of a file.
    fn size(&self, path: &Path) -> io::Result<u64>;
    /// Locks a file until the answer is dropped; `None` if another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Debug + Send + Sync>>>;
}

/// An open file. Every call names its place, so that threads may share it.
pub trait File: Debug + Send + Sync {
    /// Reads at most the buffer's length; fewer bytes only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some of `bytes` and says how many.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts the file, or lengthens it with zeros that take no room.
    fn set_len(&self, size: u64) -> io::Result<()>;
    /// The size now.
    fn size(&self) -> io::Result<u64>;
    /// Makes the bytes and the size durable.
    fn sync(&self) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl Files for Real {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // A name that is not text is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(fs::OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        Ok(Arc::new(options.read(true).write(true).create(true).truncate(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl File for fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        fs::File::set_len(self, size)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        // The size is part of what fdatasync promises; times are not, and cost a write.
        self.sync_data()
    }
}

/// Reads exactly the buffer's length.
pub(crate) fn read_exact(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes`.
pub(crate) fn write_all(file: &dyn File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a whole file.
pub(crate) fn read_whole(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.size()? as usize];
    read_exact(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Writes a small file in one step: whole under its name, or not there.
pub(crate) fn replace(files: &dyn Files, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    let next = dir.join(format!("{name}.tmp"));
    let file = files.create(&next)?;
    write_all(file.as_ref(), bytes, 0)?;
    file.sync()?;
    files.rename(&next, &path)?;
    files.sync_dir(dir)
}

/// Says what failed where, in the engine's words.
pub(crate) fn error(what: &str, path: &Path, error: &io::Error) -> Error {
    let text = format!("{what} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full(text),
        io::ErrorKind::UnexpectedEof => Error::Corrupt(format!("{text} (the file is cut short)")),
        _ => Error::Io(text),
    }
}
