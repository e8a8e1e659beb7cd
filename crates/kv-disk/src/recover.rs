//! Reads a log after a stop, clean or not, and tells a torn tail from damage.
//!
//! Only the newest log may end without its end frame, and only there may a frame be torn. What a
//! crash tore was never answered and is left out; anything else that is wrong is reported with its
//! file and place, and nothing is dropped.

use std::path::Path;

use kumiko_kv::Error;

use crate::files::{self, Files};
use crate::frame::{self, Commit, FRAME_HEADER, Frame, FrameKind, LOG_HEADER};
use crate::wal;

/// A log as found.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) id: u64,
    pub(crate) salt: u64,
    /// Where the good frames end.
    pub(crate) end: u64,
    /// How many good frames there are.
    pub(crate) frames: u64,
    /// The log that follows, if this one was ended.
    pub(crate) next: Option<u64>,
}

/// Reads log `id` and gives its commits, in order, to `each`.
pub(crate) fn read(
    files: &dyn Files,
    dir: &Path,
    id: u64,
    each: &mut dyn FnMut(Commit<'_>) -> Result<(), Error>,
) -> Result<Log, Error> {
    let path = dir.join(wal::name(id));
    let bytes = files
        .open(&path)
        .and_then(|file| files::read_whole(file.as_ref()))
        .map_err(|error| files::error("cannot read", &path, &error))?;
    let damage = |offset: usize, why: &str| {
        Error::Corrupt(format!("{} is damaged at byte {offset}: {why}", path.display()))
    };
    let (stored_id, salt) = frame::decode_log_header(&bytes).map_err(|why| damage(0, why))?;
    if stored_id != id {
        return Err(damage(0, "the log is another one than its name says"));
    }
    let mut log = Log { id, salt, end: LOG_HEADER as u64, frames: 0, next: None };
    let mut version = 0;
    while log.next.is_none() {
        let offset = log.end as usize;
        let (frame, body) = match frame_at(&bytes, offset, salt, log.frames) {
            Ok(found) => found,
            Err(Bad::Torn) => return Ok(log),
            Err(Bad::Damaged(why)) => return Err(damage(offset, why)),
        };
        match frame.kind {
            FrameKind::Commits => {
                let why = "a frame holds something other than commits";
                let commits = frame::decode_commits(body).ok_or_else(|| damage(offset, why))?;
                for commit in commits {
                    if commit.version <= version {
                        return Err(damage(offset, "versions do not grow"));
                    }
                    version = commit.version;
                    each(commit)?;
                }
            }
            FrameKind::Mark => {}
            FrameKind::End => {
                let why = "the end does not name the next log";
                log.next = Some(frame::u64_at(body, 0).ok_or_else(|| damage(offset, why))?);
            }
        }
        log.frames += 1;
        log.end += frame::padded(FRAME_HEADER + frame.length) as u64;
    }
    Ok(log)
}

enum Bad {
    Torn,
    Damaged(&'static str),
}

/// The good frame at `offset`, or what is wrong there.
fn frame_at(log: &[u8], offset: usize, salt: u64, number: u64) -> Result<(Frame, &[u8]), Bad> {
    let Some(header) = log.get(offset..offset + FRAME_HEADER) else {
        return Err(Bad::Damaged("the log is cut short"));
    };
    let Some(frame) = frame::decode_frame(header, salt) else {
        if frame::seen_synced(log, offset, salt).is_some() {
            return Err(Bad::Damaged("a frame that was durable is not readable"));
        }
        let zero = |piece: &[u8]| !piece.is_empty() && piece.iter().all(|byte| *byte == 0);
        let [first, second] = frame::header_pieces(offset).map(|span| &log[span]);
        if zero(first) || zero(second) {
            return Err(Bad::Torn);
        }
        return Err(Bad::Damaged("a frame header's checksum is wrong"));
    };
    if frame.number != number {
        return Err(Bad::Damaged("frames are missing or out of order"));
    }
    let start = offset + FRAME_HEADER;
    let Some(body) = log.get(start..start + frame.length) else {
        return Err(Bad::Damaged("the log is cut short inside a frame"));
    };
    if crc32fast::hash(body) == frame.body_crc {
        return Ok((frame, body));
    }
    let torn = frame.zero_pieces < frame::zero_pieces(body, start as u64);
    if torn && frame::seen_synced(log, offset, salt).is_none() {
        return Err(Bad::Torn);
    }
    Err(Bad::Damaged("a frame's checksum is wrong"))
}
