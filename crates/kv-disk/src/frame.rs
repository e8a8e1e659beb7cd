//! The bytes of a log: a header, then frames. A frame holds the commits that were made durable
//! together, and is there whole or not at all.
//!
//! ```text
//! log header (64)   "KUMIKOLG"  format u32  zero u32  id u64  salt u64  zeros  crc u32
//! frame header (48) "KFRM"  kind u8  zero (3)  number u64  synced u64  body length u32
//!                   zero pieces u32  body crc u32  zeros (8)  crc u32, over salt and header
//! body              commits, one behind the other; zeros up to a multiple of 8 follow
//! commit            version u64  writes u32, then each write
//! write             kind u8  key length u16  value length u32  key  value
//! ```
//!
//! All numbers are little-endian. `number` counts the frames of a log from 0. `synced` is how many
//! bytes of the log were known to be durable when the frame was written. `zero pieces` counts the
//! pieces of the body, cut at the sectors of the disk, that are all zeros.
//!
//! The three numbers tell a torn tail from damage. A log is zeros before it is written, and a disk
//! writes a sector whole or not at all. So a frame that a power cut tore has more zero pieces than
//! it says, and no frame behind it can have seen it synced. Any other bad frame was once good.

use std::ops::Range as Span;

/// The log header's size.
pub(crate) const LOG_HEADER: usize = 64;
/// The frame header's size.
pub(crate) const FRAME_HEADER: usize = 48;
/// What a disk writes whole or not at all.
pub(crate) const SECTOR: usize = 512;
/// The newest format this program writes and reads.
pub(crate) const LOG_FORMAT: u32 = 1;

const LOG_MAGIC: &[u8; 8] = b"KUMIKOLG";
const FRAME_MAGIC: &[u8; 4] = b"KFRM";
/// Frames start at multiples of this, so that a search for them takes larger steps.
const ALIGN: usize = 8;
const COMMIT_HEADER: usize = 12;
const WRITE_HEADER: usize = 7;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// It holds commits.
    Commits = 1,
    /// It holds nothing; it shows that the frames before it were written.
    Mark = 2,
    /// The log ends here and the next one, whose id is the body, exists.
    End = 3,
}

/// A frame header as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) number: u64,
    pub(crate) synced: u64,
    pub(crate) length: usize,
    pub(crate) zero_pieces: u32,
    pub(crate) body_crc: u32,
}

/// One write of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// The key gets the value.
    Put(&'a [u8], &'a [u8]),
    /// The key is removed.
    Del(&'a [u8]),
    /// The keys from the first up to the second are removed, before the other writes.
    Clear(&'a [u8], &'a [u8]),
}

/// The log header's bytes.
pub(crate) fn encode_log_header(id: u64, salt: u64) -> [u8; LOG_HEADER] {
    let mut bytes = [0; LOG_HEADER];
    bytes[..8].copy_from_slice(LOG_MAGIC);
    bytes[8..12].copy_from_slice(&LOG_FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&id.to_le_bytes());
    bytes[24..32].copy_from_slice(&salt.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The id and the salt of a log, or what is wrong with its header.
pub(crate) fn decode_log_header(bytes: &[u8]) -> Result<(u64, u64), &'static str> {
    let header = bytes.get(..LOG_HEADER).ok_or("the log is shorter than its header")?;
    if !header.starts_with(LOG_MAGIC) {
        return Err("the log does not start with its mark");
    }
    if u32_at(header, 60) != Some(crc32fast::hash(&header[..60])) {
        return Err("the log header's checksum is wrong");
    }
    if u32_at(header, 8) != Some(LOG_FORMAT) {
        return Err("the log has a format this program does not know");
    }
    let id = u64_at(header, 16).ok_or("the log header is short")?;
    let salt = u64_at(header, 24).ok_or("the log header is short")?;
    Ok((id, salt))
}

/// Fills in the header of `frame`, whose first [`FRAME_HEADER`] bytes are kept free for it, and
/// pads it. It will be written at `offset`.
pub(crate) fn seal_frame(
    frame: &mut Vec<u8>,
    kind: FrameKind,
    number: u64,
    synced: u64,
    salt: u64,
    offset: u64,
) {
    let body = &frame[FRAME_HEADER..];
    let (length, body_crc) = (body.len() as u32, crc32fast::hash(body));
    let zero_pieces = zero_pieces(body, offset + FRAME_HEADER as u64);
    let header = &mut frame[..FRAME_HEADER];
    header.fill(0);
    header[..4].copy_from_slice(FRAME_MAGIC);
    header[4] = kind as u8;
    header[8..16].copy_from_slice(&number.to_le_bytes());
    header[16..24].copy_from_slice(&synced.to_le_bytes());
    header[24..28].copy_from_slice(&length.to_le_bytes());
    header[28..32].copy_from_slice(&zero_pieces.to_le_bytes());
    header[32..36].copy_from_slice(&body_crc.to_le_bytes());
    let crc = frame_crc(header, salt);
    header[44..].copy_from_slice(&crc.to_le_bytes());
    frame.resize(padded(frame.len()), 0);
}

/// The size of a frame with its padding.
pub(crate) fn padded(size: usize) -> usize {
    size.next_multiple_of(ALIGN)
}

/// The frame header at the start of `bytes`, if there is a good one of this log.
pub(crate) fn decode_frame(bytes: &[u8], salt: u64) -> Option<Frame> {
    let header = bytes.get(..FRAME_HEADER)?;
    if !header.starts_with(FRAME_MAGIC) || u32_at(header, 44)? != frame_crc(header, salt) {
        return None;
    }
    let kind = match header[4] {
        1 => FrameKind::Commits,
        2 => FrameKind::Mark,
        3 => FrameKind::End,
        _ => return None,
    };
    Some(Frame {
        kind,
        number: u64_at(header, 8)?,
        synced: u64_at(header, 16)?,
        length: u32_at(header, 24)? as usize,
        zero_pieces: u32_at(header, 28)?,
        body_crc: u32_at(header, 32)?,
    })
}

/// How many pieces of `bytes`, which stand at `offset` of a file, are all zeros when cut at the
/// sectors.
pub(crate) fn zero_pieces(bytes: &[u8], offset: u64) -> u32 {
    let first = SECTOR - (offset % SECTOR as u64) as usize;
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    let zero = |piece: &[u8]| !piece.is_empty() && piece.iter().all(|byte| *byte == 0);
    u32::from(zero(head)) + rest.chunks(SECTOR).filter(|piece| zero(piece)).count() as u32
}

/// Searches `log` from `offset` for a frame that saw that place synced: the proof of damage.
pub(crate) fn seen_synced(log: &[u8], offset: usize, salt: u64) -> Option<usize> {
    let first = offset.next_multiple_of(ALIGN);
    (first..log.len()).step_by(ALIGN).find(|at| {
        let frame = log.get(*at..).and_then(|bytes| decode_frame(bytes, salt));
        frame.is_some_and(|frame| (offset as u64) < frame.synced)
    })
}

/// Starts a commit in `frame`; the answer goes to [`end_commit`].
pub(crate) fn begin_commit(frame: &mut Vec<u8>, version: u64) -> usize {
    let start = frame.len();
    frame.extend_from_slice(&version.to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    start
}

/// Adds one write to the commit.
pub(crate) fn push_op(frame: &mut Vec<u8>, op: Op<'_>) {
    let (kind, key, value) = match op {
        Op::Put(key, value) => (1, key, value),
        Op::Del(key) => (2, key, &[][..]),
        Op::Clear(start, end) => (3, start, end),
    };
    let key_size = u16::try_from(key.len()).expect("keys are at most 10,001 bytes");
    frame.push(kind);
    frame.extend_from_slice(&key_size.to_le_bytes());
    frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
    frame.extend_from_slice(key);
    frame.extend_from_slice(value);
}

/// Ends the commit that began at `start` and has `count` writes.
pub(crate) fn end_commit(frame: &mut [u8], start: usize, count: usize) {
    frame[start + 8..start + COMMIT_HEADER].copy_from_slice(&(count as u32).to_le_bytes());
}

/// One commit of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Commit<'a> {
    pub(crate) version: u64,
    pub(crate) ops: Vec<Op<'a>>,
}

/// The commits in a frame's body, or `None` if the bytes are not such.
pub(crate) fn decode_commits(mut body: &[u8]) -> Option<Vec<Commit<'_>>> {
    let mut commits = Vec::new();
    while !body.is_empty() {
        let version = u64_at(body, 0)?;
        let count = u32_at(body, 8)? as usize;
        body = body.get(COMMIT_HEADER..)?;
        // The count is foreign: room is made only for what the bytes can hold.
        let mut ops = Vec::with_capacity(count.min(body.len() / WRITE_HEADER));
        for _ in 0..count {
            let (op, rest) = decode_op(body)?;
            ops.push(op);
            body = rest;
        }
        commits.push(Commit { version, ops });
    }
    Some(commits)
}

fn decode_op(bytes: &[u8]) -> Option<(Op<'_>, &[u8])> {
    let kind = *bytes.first()?;
    let key_size = usize::from(u16::from_le_bytes(bytes.get(1..3)?.try_into().ok()?));
    let value_size = u32_at(bytes, 3)? as usize;
    let key_end = WRITE_HEADER + key_size;
    let value_end = key_end.checked_add(value_size)?;
    let key = bytes.get(WRITE_HEADER..key_end)?;
    let value = bytes.get(key_end..value_end)?;
    let op = match kind {
        1 => Op::Put(key, value),
        2 if value.is_empty() => Op::Del(key),
        3 => Op::Clear(key, value),
        _ => return None,
    };
    Some((op, bytes.get(value_end..)?))
}

/// The pieces of a frame header at `offset`, cut at the sectors: one or two.
pub(crate) fn header_pieces(offset: usize) -> [Span<usize>; 2] {
    let end = offset + FRAME_HEADER;
    let cut = (offset + 1).next_multiple_of(SECTOR).min(end);
    [offset..cut, cut..end]
}

fn frame_crc(header: &[u8], salt: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&header[..44]);
    hasher.finalize()
}

/// The number at `at`, if the bytes reach that far.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The number at `at`, if the bytes reach that far.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumiko_base::draw;

    fn frame(ops: &[Op<'_>]) -> Vec<u8> {
        let mut bytes = vec![0; FRAME_HEADER];
        let start = begin_commit(&mut bytes, 7);
        for op in ops {
            push_op(&mut bytes, *op);
        }
        end_commit(&mut bytes, start, ops.len());
        seal_frame(&mut bytes, FrameKind::Commits, 3, 64, 9, 512);
        bytes
    }

    #[test]
    fn a_frame_comes_back() {
        let ops = [Op::Clear(b"a", b"c"), Op::Put(b"b", b"value"), Op::Del(b"k")];
        let bytes = frame(&ops);
        let header = decode_frame(&bytes, 9).unwrap();
        assert_eq!((header.number, header.synced, header.kind), (3, 64, FrameKind::Commits));
        let body = &bytes[FRAME_HEADER..FRAME_HEADER + header.length];
        assert_eq!(header.body_crc, crc32fast::hash(body));
        let commits = decode_commits(body).unwrap();
        assert_eq!((commits[0].version, commits[0].ops.as_slice()), (7, &ops[..]));
        assert!(decode_frame(&bytes, 8).is_none(), "another log's frame does not count");
    }

    #[test]
    fn foreign_bytes_do_no_harm() {
        let good = frame(&[Op::Put(b"key", b"value"), Op::Del(b"key")]);
        draw::check("foreign_bytes_do_no_harm", 2000, |draw| {
            let mut bytes = if draw.one_in(2) { draw.bytes(200) } else { good.clone() };
            for _ in 0..draw.below(4) {
                if !bytes.is_empty() {
                    let at = draw.index(bytes.len());
                    bytes[at] = draw.bits() as u8;
                }
            }
            bytes.truncate(draw.index(bytes.len() + 1));
            let _ = decode_frame(&bytes, 9);
            let _ = decode_commits(&bytes);
            let _ = decode_log_header(&bytes);
        });
    }

    #[test]
    fn zero_pieces_are_cut_at_sectors() {
        // body length, offset, byte that is not zero, pieces
        let rows = [(0, 0, None, 0), (10, 500, None, 1), (20, 500, None, 2), (20, 500, Some(3), 1)];
        for (size, offset, set, count) in rows {
            let mut body = vec![0; size];
            if let Some(at) = set {
                body[at] = 1;
            }
            assert_eq!(zero_pieces(&body, offset), count, "{size} at {offset}");
        }
    }
}
