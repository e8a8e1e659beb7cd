//! The faults of the reference implementation, each one as a test that would find it here.

use kumiko_base::Kind;
use kumiko_eventlog::key::Record;
use kumiko_eventlog::log::BATCH_BYTES_MAX;
use kumiko_eventlog::verify::verify;
use kumiko_eventlog::{Error, EventId, EventReader, Item, Log, PageMax, Take, Writer};
use kumiko_kv::{Engine, Memory};

use crate::faulty::Faulty;
use crate::{append, bytes, id, log, read_all, stream, writer};

fn clean(engine: &dyn Engine, log: &Log) {
    let report = verify(engine, log, &mut |_, _| ()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// A loop counter of eight bits hung above 255 rows.
#[test]
fn an_event_of_more_than_255_fragments() {
    let engine = Memory::new();
    let writer = writer(&engine);
    let event = bytes(1, 10 * 700 + 3);
    append(&engine, &writer, 1, std::slice::from_ref(&event));
    assert_eq!(stream(&engine, &log(), id(1)), event);
    assert_eq!(read_all(&engine, &log(), PageMax::default()), [(1, event)]);
}

/// Offsets of later range batches were computed from the index in the batch.
#[test]
fn an_event_that_takes_several_reads() {
    let engine = Memory::new();
    let log = Log::new(&b"\x01T"[..]);
    let writer = Writer::open(&engine, &log, "test", Take::IfFree).unwrap();
    // The stream reads two million bytes at a time.
    let event = bytes(2, 7_654_321);
    append(&engine, &writer, 1, std::slice::from_ref(&event));
    assert!(stream(&engine, &log, id(1)) == event);
    clean(&engine, &log);
}

/// A size of zero underflowed to four billion fragments.
#[test]
fn empty_events() {
    let engine = Memory::new();
    let writer = writer(&engine);
    append(&engine, &writer, 1, &[vec![], b"x".to_vec(), vec![]]);
    assert_eq!(writer.append_from(&engine, id(4), &mut &b""[..], 0), Ok(0));
    let expected = [(1, vec![]), (2, b"x".to_vec()), (3, vec![]), (4, vec![])];
    assert_eq!(read_all(&engine, &log(), PageMax::default()), expected);
    assert_eq!(EventReader::new(&log(), id(4)).next(&engine), Ok(Some(vec![])));
    clean(&engine, &log());
}

/// Reading several events freed wrong pointers when one was damaged: here the error names the
/// event, and what is before it can still be read.
#[test]
fn a_damaged_event_between_sound_ones() {
    let engine = Memory::new();
    append(&engine, &writer(&engine), 1, &[bytes(1, 5), bytes(2, 35), bytes(3, 5)]);
    let mut txn = engine.begin().unwrap();
    txn.del(&log().keys().record(Record::Fragment(id(2), 2))).unwrap();
    txn.commit().unwrap();
    let mut txn = engine.begin().unwrap();
    let error = log().page(txn.as_mut(), id(1), PageMax::default()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { id: at, .. } if at == id(2)), "{error}");
    let one = PageMax { events: 1, bytes: 100 };
    assert_eq!(log().page(txn.as_mut(), id(1), one).unwrap().events.len(), 1);
    assert_eq!(log().page(txn.as_mut(), id(3), one).unwrap().events.len(), 1);
    let mut reader = EventReader::new(&log(), id(2));
    assert_eq!(reader.next(&engine).unwrap_err().kind(), Kind::Corrupt);
}

/// No error of the engine was retried.
#[test]
fn conflicts_and_lost_answers_are_retried() {
    let engine = Faulty::new(Memory::new(), 3, 3);
    let writer = writer(&engine);
    for number in 1..200 {
        append(&engine, &writer, number, &[bytes(number, (number % 90) as usize)]);
    }
    let all = read_all(&engine, &log(), PageMax::default());
    assert_eq!(all.len(), 199);
    assert!(all.iter().all(|(number, event)| *event == bytes(*number, (*number % 90) as usize)));
    clean(&engine, &log());
}

/// Batches were counted in fragments and could exceed the engine's transaction.
#[test]
fn a_batch_is_measured_in_bytes() {
    let engine = Memory::new();
    let log = Log::new(&b"\x01T"[..]);
    let writer = Writer::open(&engine, &log, "test", Take::IfFree).unwrap();
    let half = vec![7; BATCH_BYTES_MAX / 2];
    let error = writer.append(&engine, id(1), &[Item::event(&half), Item::event(&half)]);
    assert_eq!(error.unwrap_err().kind(), Kind::TooLarge);
    let fits = vec![7; BATCH_BYTES_MAX / 2 - 10_000];
    writer.append(&engine, id(1), &[Item::event(&fits), Item::event(&fits)]).unwrap();
    assert_eq!(writer.append_from(&engine, id(3), &mut &half[..], 0), Ok(half.len() as u64));
    let tiny = vec![Item::event(b""); BATCH_BYTES_MAX / 64 + 1];
    assert_eq!(writer.append(&engine, id(4), &tiny).unwrap_err().kind(), Kind::TooLarge);
    writer.append(&engine, id(4), &tiny[1..]).unwrap();
    clean(&engine, &log);
}

/// Events of several transactions had no commit marker: a reader in between failed, a crash left
/// fragments behind. Here the engine dies after each step in turn.
#[test]
fn a_crash_at_every_step_of_a_large_event() {
    let event = bytes(9, 333);
    let mut finished = 0;
    for steps in 0..16 {
        let memory = Memory::new();
        append(&memory, &writer(&memory), 1, &[bytes(1, 3)]);
        let engine = Faulty::new(memory.clone(), 0, 0);
        let dying = writer(&engine);
        engine.left.store(steps, std::sync::atomic::Ordering::SeqCst);
        let result = dying.append_from(&engine, id(2), &mut event.as_slice(), 0);
        finished += u64::from(result.is_ok());
        let visible = read_all(&memory, &log(), PageMax::default());
        assert_eq!(visible.len(), 1 + usize::from(result.is_ok()), "after {steps} steps");
        // The next append of all, by whoever comes next, finds no trace.
        let next = writer(&memory);
        let last = visible.len() as u64 + 1;
        append(&memory, &next, last, &[bytes(5, 25)]);
        clean(&memory, &log());
        assert_eq!(read_all(&memory, &log(), PageMax::default()).last().unwrap().1, bytes(5, 25));
        assert_eq!(
            dying.append(&memory, id(last + 1), &[Item::event(b"")]).unwrap_err().kind(),
            Kind::Denied
        );
    }
    assert!(0 < finished && finished < 16, "both ends of the protocol are covered");
}

/// A reader between the transactions of a large event sees the log without it.
#[test]
fn a_reader_between_the_steps() {
    struct Source<'a>(&'a Memory, u64);
    impl std::io::Read for Source<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert_eq!(read_all(self.0, &log(), PageMax::default()), [(1, b"a".to_vec())]);
            self.1 += 1;
            buffer.fill(self.1 as u8);
            Ok(if self.1 < 40 { buffer.len().min(17) } else { 0 })
        }
    }
    let engine = Memory::new();
    let writer = writer(&engine);
    append(&engine, &writer, 1, &[b"a".to_vec()]);
    let size = writer.append_from(&engine, id(2), &mut Source(&engine, 0), 0).unwrap();
    assert_eq!(stream(&engine, &log(), id(2)).len() as u64, size);
    clean(&engine, &log());
}

/// A source that fails, or never ends, leaves nothing behind.
#[test]
fn a_source_that_fails() {
    struct Broken(u64);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 < 20 { Ok(buffer.len().min(11)) } else { Err(std::io::Error::other("gone")) }
        }
    }
    let engine = Memory::new();
    let writer = writer(&engine);
    let error = writer.append_from(&engine, id(1), &mut Broken(0), 0).unwrap_err();
    assert_eq!(error, Error::Io("gone".into()));
    clean(&engine, &log());
    let endless = &mut std::io::repeat(1);
    let error = writer.append_from_max(&engine, id(1), endless, 0, 1_000).unwrap_err();
    assert_eq!(error.kind(), Kind::TooLarge);
    clean(&engine, &log());
    let mut exact = std::io::Read::take(std::io::repeat(1), 1_000);
    assert_eq!(writer.append_from_max(&engine, id(1), &mut exact, 0, 1_000), Ok(1_000));
    assert_eq!(read_all(&engine, &log(), PageMax::default()).len(), 1);
}

/// The async writer let commits run in any order, and a crash left gaps.
#[test]
fn an_append_out_of_order_is_refused() {
    let engine = Memory::new();
    let writer = writer(&engine);
    let append = |first, event: &[u8]| writer.append(&engine, id(first), &[Item::event(event)]);
    assert_eq!(append(2, b"b"), Err(Error::Gap { expected: id(1), given: id(2) }));
    append(1, b"a").unwrap();
    assert_eq!(append(3, b"c"), Err(Error::Gap { expected: id(2), given: id(3) }));
    assert_eq!(append(0, b"z").unwrap_err().kind(), Kind::Invalid);
    let large = bytes(1, 100);
    let error = writer.append_from(&engine, id(3), &mut large.as_slice(), 0).unwrap_err();
    assert_eq!(error, Error::Gap { expected: id(2), given: id(3) });
    clean(&engine, &log());
}

/// Writing an event again with fewer fragments left stale ones; here an event is never rewritten,
/// and an event that was begun and given up leaves none.
#[test]
fn an_event_is_never_rewritten() {
    let engine = Memory::new();
    let writer = writer(&engine);
    let large = bytes(1, 95);
    writer.append_from(&engine, id(1), &mut large.as_slice(), 0).unwrap();
    let again = writer.append_from(&engine, id(1), &mut large.as_slice(), 0);
    assert_eq!(again, Ok(95), "the same bytes are no change");
    for other in [bytes(1, 94), bytes(1, 96), bytes(2, 95), bytes(1, 3), vec![]] {
        let from = writer.append_from(&engine, id(1), &mut other.as_slice(), 0);
        assert_eq!(from, Err(Error::Fork { id: id(1) }));
        let whole = writer.append(&engine, id(1), &[Item::event(&other)]);
        assert_eq!(whole, Err(Error::Fork { id: id(1) }));
    }
    assert_eq!(stream(&engine, &log(), id(1)), large);
    clean(&engine, &log());
}

/// Clearing many events sent a transaction at index 0, with nothing in it: an empty append is an
/// error, not a commit.
#[test]
fn an_append_of_nothing() {
    let engine = Memory::new();
    let writer = writer(&engine);
    assert_eq!(writer.append(&engine, id(1), &[]).unwrap_err().kind(), Kind::Invalid);
    let mut txn = engine.begin().unwrap();
    assert_eq!(log().latest(txn.as_mut(), crate::SNAP), Ok(None));
}

/// The last ids.
#[test]
fn ids_end_below_the_metadata() {
    let engine = Memory::new();
    let writer = writer(&engine);
    let mut txn = engine.begin().unwrap();
    log().start_at(txn.as_mut(), writer.guard(), EventId::MAX).unwrap();
    txn.commit().unwrap();
    let two = [Item::event(b"a"), Item::event(b"b")];
    assert_eq!(writer.append(&engine, EventId::MAX, &two).unwrap_err().kind(), Kind::Invalid);
    writer.append(&engine, EventId::MAX, &two[..1]).unwrap();
    let past = writer.append(&engine, EventId::MAX.next(), &two[..1]);
    assert_eq!(past.unwrap_err().kind(), Kind::Invalid);
    clean(&engine, &log());
}
