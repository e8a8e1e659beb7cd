//! Random bytes from the operating system.

use std::fs::File;
use std::io::Read;

use crate::Error;

/// `N` random bytes, fit for keys.
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A random number.
pub fn number() -> Result<u64, Error> {
    bytes().map(u64::from_le_bytes)
}
