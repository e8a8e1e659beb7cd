//! The strict reader: takes the records of a log in key order and says what each one is, or what
//! is wrong with it.
//!
//! Between events it is idle: a whole event or a special one follows the last, or fragment 0 opens
//! one. While an event is open it takes nothing but the event's next fragment, until the sizes add
//! up to the size in the key of fragment 0. No buffer is reserved from a size that a key claims.

use crate::{EventId, key::Record};

/// What one record means in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The value is a whole event.
    Whole,
    /// The value begins an event of this many bytes, and more will follow.
    Open(u64),
    /// The value goes on with the open event.
    More,
    /// The value ends the open event. `Open` and `Last` at once, for an event of one fragment.
    Last,
    /// The value is a special record in place of an event.
    Instead(u8),
    /// The value is a note on the event before: a snapshot, for example.
    Note(u8),
}

/// What is wrong with a record, or with the end of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Events are missing before this one.
    Gap {
        /// The event that should have come.
        expected: EventId,
    },
    /// The event was there already: two records, or two fragments 0.
    Double,
    /// A fragment is missing, before this record or at the end.
    Torn,
    /// The fragments hold another number of bytes than fragment 0 says.
    Sum,
    /// A fragment without a byte.
    Empty,
    /// A fragment without a fragment 0.
    Headless,
}

impl Damage {
    /// The fact in words.
    pub fn words(self) -> &'static str {
        match self {
            Damage::Gap { .. } => "events are missing before this one",
            Damage::Double => "the event is stored twice",
            Damage::Torn => "a fragment is missing",
            Damage::Sum => "the fragments do not add up to the size",
            Damage::Empty => "a fragment is empty",
            Damage::Headless => "fragments without the first one",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    id: EventId,
    size: u64,
    got: u64,
    next: u64,
}

/// The state between two records.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The event that must come next.
    expected: EventId,
    open: Option<Open>,
}

/// Whether a special record stands beside an event (a note) and not in place of one.
pub const fn is_note(descriptor: u8) -> bool {
    descriptor & 2 != 0
}

impl Machine {
    /// Before the event `expected`.
    pub fn new(expected: EventId) -> Machine {
        Machine { expected, open: None }
    }

    /// The event that must come next: all before it were seen whole.
    pub fn expected(&self) -> EventId {
        self.expected
    }

    /// Takes the next record, whose value has `size` bytes. After an error the machine must be
    /// told where to go on, by [`Machine::skip_to`].
    pub fn step(&mut self, record: Record, size: usize) -> Result<Piece, Damage> {
        let size = size as u64;
        if let Some(open) = self.open {
            return self.step_open(open, record, size);
        }
        match record {
            Record::Special(_, descriptor) if is_note(descriptor) => Ok(Piece::Note(descriptor)),
            Record::Special(id, descriptor) => {
                self.arrive(id)?;
                Ok(Piece::Instead(descriptor))
            }
            Record::Whole(id) => {
                self.arrive(id)?;
                Ok(Piece::Whole)
            }
            Record::First(id, total) => {
                if id != self.expected {
                    return Err(self.misplaced(id));
                }
                if size == 0 {
                    return Err(Damage::Empty);
                }
                if total < size {
                    return Err(Damage::Sum);
                }
                if size == total {
                    self.expected = id.next();
                    return Ok(Piece::Last);
                }
                self.open = Some(Open { id, size: total, got: size, next: 1 });
                Ok(Piece::Open(total))
            }
            Record::Fragment(id, _) if id < self.expected => Err(Damage::Double),
            Record::Fragment(..) => Err(Damage::Headless),
        }
    }

    /// Takes the whole record of the event that must come next, if none is open.
    pub fn step_whole(&mut self) -> bool {
        let idle = self.open.is_none();
        if idle {
            self.expected = self.expected.next();
        }
        idle
    }

    /// The records are over, at least those below `end`: says if the last event is whole and all
    /// events below `end` came.
    pub fn finish(&self, end: EventId) -> Result<(), Damage> {
        if self.open.is_some() {
            return Err(Damage::Torn);
        }
        if self.expected < end {
            return Err(Damage::Gap { expected: self.expected });
        }
        Ok(())
    }

    /// Forgets an open event and goes on before the event `expected`.
    pub fn skip_to(&mut self, expected: EventId) {
        self.expected = expected;
        self.open = None;
    }

    fn step_open(&mut self, open: Open, record: Record, size: u64) -> Result<Piece, Damage> {
        match record {
            Record::Fragment(id, index) if id == open.id && index == open.next => {
                if size == 0 {
                    return Err(Damage::Empty);
                }
                let got = open.got.saturating_add(size);
                if open.size < got {
                    return Err(Damage::Sum);
                }
                if got == open.size {
                    self.open = None;
                    self.expected = id.next();
                    return Ok(Piece::Last);
                }
                self.open = Some(Open { got, next: open.next + 1, ..open });
                Ok(Piece::More)
            }
            Record::First(id, _) if id == open.id => Err(Damage::Double),
            _ => Err(Damage::Torn),
        }
    }

    fn arrive(&mut self, id: EventId) -> Result<(), Damage> {
        if id != self.expected {
            return Err(self.misplaced(id));
        }
        self.expected = id.next();
        Ok(())
    }

    fn misplaced(&self, id: EventId) -> Damage {
        if id < self.expected { Damage::Double } else { Damage::Gap { expected: self.expected } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> EventId {
        EventId::new(number).unwrap()
    }

    #[test]
    fn orders_of_records() {
        use Damage::{Double, Empty, Gap, Headless, Sum, Torn};
        use Record::{First, Fragment, Special, Whole};
        let (one, two) = (id(1), id(2));
        type Row = (Vec<(Record, usize)>, Option<Damage>);
        let rows: Vec<Row> = vec![
            (vec![(Whole(one), 0), (Whole(two), 5)], None),
            (vec![(First(one, 3), 3), (Special(one, 3), 9), (Whole(two), 1)], None),
            (vec![(First(one, 3), 2), (Fragment(one, 1), 1), (Special(two, 1), 7)], None),
            (vec![(Whole(two), 1)], Some(Gap { expected: one })),
            (vec![(Whole(one), 1), (First(one, 1), 1)], Some(Double)),
            (vec![(Whole(one), 1), (Fragment(one, 1), 1)], Some(Double)),
            (vec![(Whole(one), 1), (Special(one, 1), 1)], Some(Double)),
            (vec![(First(one, 3), 1), (First(one, 4), 1)], Some(Double)),
            (vec![(First(one, 3), 1), (Fragment(one, 2), 2)], Some(Torn)),
            (vec![(First(one, 3), 1), (Whole(two), 2)], Some(Torn)),
            (vec![(First(one, 3), 1), (Special(one, 3), 2)], Some(Torn)),
            (vec![(First(one, 3), 4)], Some(Sum)),
            (vec![(First(one, 3), 2), (Fragment(one, 1), 2)], Some(Sum)),
            (vec![(First(one, 3), 0)], Some(Empty)),
            (vec![(First(one, 0), 0)], Some(Empty)),
            (vec![(First(one, 3), 2), (Fragment(one, 1), 0)], Some(Empty)),
            (vec![(Fragment(one, 1), 2)], Some(Headless)),
            (vec![(First(one, 3), 3), (Fragment(one, 1), 2)], Some(Double)),
        ];
        for (records, expected) in rows {
            let mut machine = Machine::new(one);
            let got = records.iter().find_map(|(record, size)| machine.step(*record, *size).err());
            assert_eq!(got, expected, "{records:?}");
        }
    }

    #[test]
    fn the_end() {
        let mut machine = Machine::new(id(1));
        machine.step(Record::Whole(id(1)), 1).unwrap();
        assert_eq!(machine.finish(id(2)), Ok(()));
        assert_eq!(machine.finish(id(3)), Err(Damage::Gap { expected: id(2) }));
        machine.step(Record::First(id(2), 2), 1).unwrap();
        assert_eq!(machine.finish(id(2)), Err(Damage::Torn));
        machine.skip_to(id(3));
        assert_eq!(machine.finish(id(3)), Ok(()));
    }
}
