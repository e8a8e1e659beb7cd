//! A disk in memory that is as bad as a real one may be.
//!
//! It keeps what was written and what was made durable apart. A [`Simulated::crash`] keeps the
//! durable part and, sector by sector and name by name, some of the rest. It can run out of room,
//! fail a sync, and flip bits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kumiko_base::draw::Draw;

use crate::files::{File, Files};
use crate::frame::SECTOR;

#[derive(Clone, Debug, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// The bytes that may differ between the two.
    dirty: Option<(usize, usize)>,
}

impl Inode {
    fn same(bytes: Vec<u8>) -> Inode {
        Inode { now: bytes.clone(), durable: bytes, dirty: None }
    }

    fn touch(&mut self, start: usize, end: usize) {
        let (from, to) = self.dirty.unwrap_or((start, end));
        self.dirty = Some((from.min(start), to.max(end)));
    }

    fn sync(&mut self) {
        self.durable.resize(self.now.len(), 0);
        if let Some((from, to)) = self.dirty.take() {
            let span = from.min(self.now.len())..to.min(self.now.len());
            self.durable[span.clone()].copy_from_slice(&self.now[span]);
        }
    }
}

/// A change of the names in a directory that is not durable yet.
#[derive(Clone, Debug)]
enum Change {
    Named(PathBuf, usize),
    Removed(PathBuf),
}

/// What a test does while a sync is under way.
#[derive(Clone)]
struct Hook(Arc<dyn Fn() + Send + Sync>);

impl Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

#[derive(Debug, Default)]
struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    changes: Vec<Change>,
    locked: BTreeSet<PathBuf>,
    /// Bytes that can still be written into new places; no bound if `None`.
    room: Option<usize>,
    /// How many more syncs go well; all if `None`.
    syncs: Option<usize>,
    /// Called once, inside the next sync.
    hook: Option<Hook>,
    /// How many more writes go well; all if `None`.
    writes: Option<usize>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    world: Arc<Mutex<World>>,
}

impl Simulated {
    /// An empty disk with no bound.
    pub fn new() -> Simulated {
        Simulated::default()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk as it is found after a power cut now. This one is not changed.
    pub fn crash(&self, draw: &mut Draw) -> Simulated {
        let world = self.world();
        let mut next = World { names: world.durable_names.clone(), ..World::default() };
        // Names change in order: a journal keeps some first part of what was not durable.
        let kept = draw.index(world.changes.len() + 1);
        for change in &world.changes[..kept] {
            apply(&mut next.names, change);
        }
        next.inodes = world.inodes.iter().map(|inode| after_crash(inode, draw)).collect();
        next.durable_names.clone_from(&next.names);
        Simulated { world: Arc::new(Mutex::new(next)) }
    }

    /// A copy of the disk with everything on it durable, as after the end of the process alone.
    pub fn copy(&self) -> Simulated {
        let world = self.world();
        let durable = |inode: &Inode| Inode::same(inode.now.clone());
        let next = World {
            inodes: world.inodes.iter().map(durable).collect(),
            names: world.names.clone(),
            durable_names: world.names.clone(),
            ..World::default()
        };
        Simulated { world: Arc::new(Mutex::new(next)) }
    }

    /// Leaves room for so many bytes more; `None` for no bound.
    pub fn set_room(&self, room: Option<usize>) {
        self.world().room = room;
    }

    /// Fails every sync after `count` more; `None` for none.
    pub fn fail_syncs_after(&self, count: Option<usize>) {
        self.world().syncs = count;
    }

    /// Fails every write after `count` more, half of it done; `None` for none.
    pub fn fail_writes_after(&self, count: Option<usize>) {
        self.world().writes = count;
    }

    /// Calls `hook` inside the next sync of a file, before it takes effect.
    pub fn in_next_sync(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.world().hook = Some(Hook(Arc::new(hook)));
    }

    /// The names of all files with their sizes.
    pub fn names(&self) -> Vec<(PathBuf, usize)> {
        let world = self.world();
        let size = |inode: &usize| world.inodes[*inode].now.len();
        world.names.iter().map(|(path, inode)| (path.clone(), size(inode))).collect()
    }

    /// The bytes of a file, to look at or to damage; nothing if it is not there.
    pub fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world();
        let Some(inode) = world.names.get(path).copied() else { return };
        let inode = &mut world.inodes[inode];
        edit(&mut inode.now);
        *inode = Inode::same(std::mem::take(&mut inode.now));
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Named(path, inode) => {
            names.retain(|_, other| other != inode);
            names.insert(path.clone(), *inode);
        }
        Change::Removed(path) => {
            names.remove(path);
        }
    }
}

fn after_crash(inode: &Inode, draw: &mut Draw) -> Inode {
    let size = draw.one_of(&[inode.now.len(), inode.durable.len()]);
    let mut bytes = vec![0; size];
    for at in (0..size).step_by(SECTOR) {
        let end = (at + SECTOR).min(size);
        let from = if draw.one_in(2) { &inode.now } else { &inode.durable };
        let there = from.get(at..end.min(from.len())).unwrap_or_default();
        bytes[at..at + there.len()].copy_from_slice(there);
    }
    Inode::same(bytes)
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl World {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    fn may_sync(&mut self) -> io::Result<()> {
        match &mut self.syncs {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the simulated disk failed a sync")),
            Some(count) => {
                *count -= 1;
                Ok(())
            }
        }
    }

    /// How many of `count` bytes may be written.
    fn may_write(&mut self, count: usize) -> io::Result<usize> {
        match &mut self.writes {
            // Half of the last one; the rest is refused when the caller tries again.
            Some(0) => return Err(io::Error::other("the simulated disk failed a write")),
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    return Ok(count.div_ceil(2));
                }
            }
            None => {}
        }
        match &mut self.room {
            None => Ok(count),
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(room) => {
                let done = count.min(*room);
                *room -= done;
                Ok(done)
            }
        }
    }
}

#[derive(Debug)]
struct Lock {
    disk: Simulated,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.world().locked.remove(&self.path);
    }
}

impl Files for Simulated {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.world();
        let inside = world.names.keys().filter(|path| path.parent() == Some(dir));
        let name =
            |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(inside.filter_map(name).collect())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = self.world().names.get(path).copied().ok_or_else(missing)?;
        Ok(Arc::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut world = self.world();
        let inode = world.inodes.len();
        world.inodes.push(Inode::default());
        world.change(Change::Named(path.to_path_buf(), inode));
        drop(world);
        Ok(Arc::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let inode = world.names.get(from).copied().ok_or_else(missing)?;
        world.change(Change::Named(to.to_path_buf(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.names.get(path).ok_or_else(missing)?;
        world.change(Change::Removed(path.to_path_buf()));
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.may_sync()?;
        world.durable_names = world.names.clone();
        world.changes.clear();
        Ok(())
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let world = self.world();
        let inode = world.names.get(path).copied().ok_or_else(missing)?;
        Ok(world.inodes[inode].now.len() as u64)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        if !self.world().locked.insert(path.to_path_buf()) {
            return Ok(None);
        }
        Ok(Some(Box::new(Lock { disk: self.clone(), path: path.to_path_buf() })))
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: Simulated,
    inode: usize,
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let world = self.disk.world();
        let bytes = world.inodes[self.inode].now.get(offset as usize..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = self.disk.world();
        let start = offset as usize;
        // Zeros go over what is there and take no room.
        let zeros = bytes.iter().all(|byte| *byte == 0);
        let done = if zeros { bytes.len() } else { world.may_write(bytes.len())? };
        let inode = &mut world.inodes[self.inode];
        inode.touch(start, start + done);
        let now = &mut inode.now;
        if now.len() < start + done {
            now.resize(start + done, 0);
        }
        now[start..start + done].copy_from_slice(&bytes[..done]);
        Ok(done)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let inode = &mut world.inodes[self.inode];
        inode.touch(inode.now.len().min(size as usize), inode.now.len().max(size as usize));
        inode.now.resize(size as usize, 0);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.world().inodes[self.inode].now.len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        let hook = self.disk.world().hook.take();
        if let Some(Hook(hook)) = hook {
            hook();
        }
        let mut world = self.disk.world();
        world.may_sync()?;
        world.inodes[self.inode].sync();
        Ok(())
    }
}
