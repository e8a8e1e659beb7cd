//! Writes a log.
//!
//! The file is lengthened in steps, and the new size synced, before a frame goes into it: so a log
//! that ends inside a frame was cut by somebody else, never by a crash. A frame that could not be
//! written whole is wiped, and the wiping synced, before anybody hears of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kumiko_kv::Error;

use crate::files::{self, File, Files};
use crate::frame::{self, FRAME_HEADER, FrameKind, LOG_HEADER};

/// How far a log is lengthened at once, at most. The new part takes no room on the disk until it is
/// written; 4 MiB keeps the extra syncs below one in a thousand for commits of 1 KiB.
const STEP_MAX: u64 = 4 << 20;
/// How far at least.
const STEP_MIN: u64 = 16 << 10;
/// Zeros that stay behind the last frame, so that the end of the log is always to be seen.
const MARGIN: u64 = 512;

/// Small frames go into a part that was written with zeros before, so that their sync has nothing
/// but their bytes to write: no new blocks, no journal of the file system. This much at once.
const ZEROED: u64 = 256 << 10;
/// Larger frames than this would only pay for writing everything twice.
const FRAME_SMALL: usize = 32 << 10;

/// Why a frame is not in the log.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The log is as it was before; the next frame may go well.
    Clean(Error),
    /// Nobody knows what the file holds now; it must not be written again.
    Broken(Error),
}

/// The log that is written now.
#[derive(Debug)]
pub(crate) struct Wal {
    pub(crate) id: u64,
    pub(crate) file: Arc<dyn File>,
    path: PathBuf,
    salt: u64,
    /// Where the next frame goes.
    pub(crate) offset: u64,
    size: u64,
    /// How far it is lengthened at once.
    step: u64,
    /// Up to where zeros were written.
    zeroed: u64,
    number: u64,
    /// How many bytes are known to be durable.
    pub(crate) synced: u64,
    /// Whether the last frame holds commits, and a mark behind it is wanted.
    pub(crate) open_ended: bool,
}

/// The name of a log.
pub(crate) fn name(id: u64) -> String {
    format!("{id:08}.log")
}

impl Wal {
    /// Makes an empty log. It appears under its name only when it is whole.
    pub(crate) fn create(
        files: &dyn Files,
        dir: &Path,
        id: u64,
        salt: u64,
        memtable_bytes: usize,
    ) -> Result<Wal, Error> {
        let step = (memtable_bytes as u64).clamp(STEP_MIN, STEP_MAX);
        let path = dir.join(name(id));
        let next = dir.join(format!("{}.tmp", name(id)));
        let make = || {
            let file = files.create(&next)?;
            file.set_len(step)?;
            files::write_all(file.as_ref(), &frame::encode_log_header(id, salt), 0)?;
            file.sync()?;
            files.rename(&next, &path)?;
            files.sync_dir(dir)?;
            Ok(file)
        };
        let file = make().map_err(|error| files::error("cannot make", &path, &error))?;
        let offset = LOG_HEADER as u64;
        let open_ended = false;
        Ok(Wal {
            id,
            file,
            path,
            salt,
            offset,
            size: step,
            step,
            zeroed: 0,
            number: 0,
            synced: offset,
            open_ended,
        })
    }

    /// Goes on with a log that ends with a frame at `offset`, in order to end it.
    pub(crate) fn resume(
        files: &dyn Files,
        dir: &Path,
        id: u64,
        salt: u64,
        offset: u64,
        number: u64,
    ) -> Result<Wal, Error> {
        let path = dir.join(name(id));
        let run = || {
            let file = files.open(&path)?;
            let size = file.size()?;
            // What stands behind the last frame was never answered. It is wiped, so that it cannot
            // be mistaken for something later.
            let behind = files::read_whole(file.as_ref())?.split_off(offset as usize);
            let used = behind.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            files::write_all(file.as_ref(), &vec![0; used], offset)?;
            file.set_len(size.max(offset + MARGIN))?;
            file.sync()?;
            Ok((file, size.max(offset + MARGIN)))
        };
        let (file, size) = run().map_err(|error| files::error("cannot resume", &path, &error))?;
        Ok(Wal {
            id,
            file,
            path,
            salt,
            offset,
            size,
            step: STEP_MIN,
            zeroed: u64::MAX,
            number,
            synced: offset,
            open_ended: false,
        })
    }

    /// Writes one frame, whose first bytes are kept free for the header. Does not sync it.
    pub(crate) fn append(&mut self, frame: &mut Vec<u8>, kind: FrameKind) -> Result<(), Failure> {
        frame::seal_frame(frame, kind, self.number, self.synced, self.salt, self.offset);
        let end = self.offset + frame.len() as u64;
        if self.size < end + MARGIN {
            self.lengthen((end + MARGIN).next_multiple_of(self.step))?;
        }
        if frame.len() <= FRAME_SMALL && self.zeroed < end {
            self.zero_ahead(end).map_err(Failure::Clean)?;
        }
        if let Err((done, error)) = self.write(frame) {
            let error = files::error("cannot write", &self.path, &error);
            return Err(self.wipe(done, error));
        }
        self.offset = end;
        self.number += 1;
        self.open_ended = kind == FrameKind::Commits;
        Ok(())
    }

    /// Makes all frames durable.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        self.file
            .sync()
            .map_err(|error| Failure::Broken(files::error("cannot sync", &self.path, &error)))?;
        self.synced = self.offset;
        Ok(())
    }

    /// Ends the log. The log `next` must exist already.
    pub(crate) fn end(&mut self, next: u64) -> Result<(), Failure> {
        let mut frame = vec![0; FRAME_HEADER];
        frame.extend_from_slice(&next.to_le_bytes());
        self.append(&mut frame, FrameKind::End)?;
        self.sync()?;
        // Only gives room back; a log may be longer than its end.
        let _ = self.file.set_len(self.offset);
        Ok(())
    }

    fn lengthen(&mut self, size: u64) -> Result<(), Failure> {
        let say = |error| files::error("cannot lengthen", &self.path, &error);
        self.file.set_len(size).map_err(|error| Failure::Clean(say(error)))?;
        self.file.sync().map_err(|error| Failure::Broken(say(error)))?;
        self.size = size;
        self.synced = self.offset;
        Ok(())
    }

    /// Writes zeros where zeros are, past `end`. A failure changes nothing that can be read.
    fn zero_ahead(&mut self, end: u64) -> Result<(), Error> {
        let start = self.zeroed.max(self.offset);
        let to = (end + ZEROED).min(self.size);
        files::write_all(self.file.as_ref(), &vec![0; (to - start) as usize], start)
            .map_err(|error| files::error("cannot write", &self.path, &error))?;
        self.zeroed = to;
        Ok(())
    }

    /// Writes all of `frame`; on failure, says how many bytes went before it.
    fn write(&self, frame: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut done = 0;
        while done < frame.len() {
            match self.file.write_at(&frame[done..], self.offset + done as u64) {
                Ok(0) => return Err((done, io::ErrorKind::WriteZero.into())),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((done, error)),
            }
        }
        Ok(())
    }

    /// Takes a half-written frame back: zeros over it, never a cut, so that a crash in between
    /// leaves a torn frame and not a short log.
    fn wipe(&mut self, done: usize, why: Error) -> Failure {
        let run = || {
            files::write_all(self.file.as_ref(), &vec![0; done], self.offset)?;
            self.file.sync()
        };
        match run() {
            Ok(()) => {
                self.synced = self.offset;
                Failure::Clean(why)
            }
            Err(error) => Failure::Broken(files::error("cannot wipe", &self.path, &error)),
        }
    }
}
