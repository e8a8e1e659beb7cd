//! The messages of lattice nodes, as cells.
//!
//! ```text
//! [:PING id]                 are you there?                 result: the time in ms
//! [:LQ id path]              what is at this path?          result: the value, nil if none
//! [:LV path value]           merge this
//! [:LV id path value]        merge this and say so          result: nil
//! [:DR id hash ..]           send these cells               result: a vector, nil where unknown
//! [:DATA cell ..]            cells that a coming value needs
//! [:CH id signed]            prove who you are              result: signed
//! [:BYE] [:BYE reason]       good bye
//! record dd [id value code log info]                        a result; code is nil for success
//! ```
//!
//! Ids are integers. A request with another id is taken for one without, and gets no answer.

use crate::cell::head::RESULT;
use crate::cell::{Cell, Form, Id, View, Writer};

use super::CELLS_MAX;

/// The longest path.
pub const PATH_COUNT_MAX: usize = 16;
/// The longest text of an error that is read.
const TEXT_BYTES_MAX: usize = 1_000;

/// Why a request failed, as the other side is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The bytes or the message are malformed.
    Format,
    /// The challenge or the sender is not to be trusted.
    Trust,
    /// The request is understood and wrong.
    Argument,
    /// Too much work is waiting.
    Load,
    /// A code that is not known here.
    Other,
}

impl Code {
    /// The keyword.
    pub const fn word(self) -> &'static str {
        match self {
            Code::Format => "FORMAT",
            Code::Trust => "TRUST",
            Code::Argument => "ARGUMENT",
            Code::Load => "LOAD",
            Code::Other => "UNEXPECTED",
        }
    }

    fn of(word: &[u8]) -> Code {
        match word {
            b"FORMAT" => Code::Format,
            b"TRUST" => Code::Trust,
            b"ARGUMENT" => Code::Argument,
            b"LOAD" => Code::Load,
            _ => Code::Other,
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks for a sign of life.
    Ping {
        /// The request's number.
        id: i64,
    },
    /// Asks for the value at a path.
    Query {
        /// The request's number.
        id: i64,
        /// The keys on the way from the root.
        path: Vec<Cell>,
    },
    /// Hands over a value to be merged.
    Value {
        /// Set if an answer is wanted.
        id: Option<i64>,
        /// The keys on the way from the root.
        path: Vec<Cell>,
        /// The value.
        value: Cell,
    },
    /// Asks for cells.
    Fetch {
        /// The request's number.
        id: i64,
        /// Their ids.
        ids: Vec<Id>,
    },
    /// Hands over cells ahead of a value.
    Cells {
        /// The cells.
        cells: Vec<Cell>,
    },
    /// Asks the other side to prove its key.
    Challenge {
        /// The request's number.
        id: i64,
        /// Signed `[token target context]`.
        signed: Cell,
    },
    /// Ends the conversation.
    Bye,
    /// Answers a request.
    Answer {
        /// The request's number, if it had one.
        id: Option<i64>,
        /// The value, or what went wrong.
        result: Result<Cell, (Code, String)>,
    },
}

/// Why bytes or a cell are no message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Not a message, or one of a kind that lattice nodes do not take. It is ignored.
    Unknown,
    /// A known message with a wrong argument. If it has a number, it gets an error for an answer.
    Argument(Option<i64>, &'static str),
}

impl Message {
    /// The message as a cell.
    pub fn cell(&self) -> Cell {
        let keyword = |word: &str| Cell::keyword(word);
        let id_cell = |id: &Option<i64>| id.map_or_else(Cell::nil, Cell::int);
        match self {
            Message::Ping { id } => Cell::vector(&[keyword("PING"), Cell::int(*id)]),
            Message::Query { id, path } => {
                Cell::vector(&[keyword("LQ"), Cell::int(*id), Cell::vector(path)])
            }
            Message::Value { id: None, path, value } => {
                Cell::vector(&[keyword("LV"), Cell::vector(path), value.clone()])
            }
            Message::Value { id, path, value } => {
                Cell::vector(&[keyword("LV"), id_cell(id), Cell::vector(path), value.clone()])
            }
            Message::Fetch { id, ids } => {
                let start = [keyword("DR"), Cell::int(*id)];
                let ids = ids.iter().map(|id| Cell::blob(id.as_bytes()));
                Cell::vector(&start.into_iter().chain(ids).collect::<Vec<_>>())
            }
            Message::Cells { cells } => {
                let cells = cells.iter().cloned();
                Cell::vector(&std::iter::once(keyword("DATA")).chain(cells).collect::<Vec<_>>())
            }
            Message::Challenge { id, signed } => {
                Cell::vector(&[keyword("CH"), Cell::int(*id), signed.clone()])
            }
            Message::Bye => Cell::vector(&[keyword("BYE")]),
            Message::Answer { id, result } => {
                let (value, code) = match result {
                    Ok(value) => (value.clone(), Cell::nil()),
                    Err((code, text)) => (Cell::string(text), keyword(code.word())),
                };
                let fields = [id_cell(id), value, code, Cell::nil(), Cell::nil()];
                let mut writer = Writer::new();
                let mut write = |writer: &mut Writer, at: usize| writer.cell(&fields[at]);
                writer.vector_body(RESULT, 0, fields.len(), &mut write);
                writer.finish()
            }
        }
    }

    /// The message that a cell is.
    ///
    /// # Errors
    ///
    /// What kept it from being one.
    pub fn of(cell: &Cell) -> Result<Message, Wrong> {
        let count = match cell.view().form() {
            Form::Result(5) => return Message::answer(cell.view()),
            Form::Vector(count) => count,
            _ => return Err(Wrong::Unknown),
        };
        if CELLS_MAX as u64 + 2 < count {
            return Err(Wrong::Argument(None, "too many elements"));
        }
        let fields = cell.view().elements(CELLS_MAX + 2).map_err(|_| Wrong::Unknown)?;
        let word = fields.first().and_then(|it| it.as_keyword()).ok_or(Wrong::Unknown)?;
        let rest = &fields[1..];
        match word {
            b"PING" => Ok(Message::Ping { id: number(rest)? }),
            b"LQ" => Message::query(rest),
            b"LV" => Message::value(rest),
            b"DR" => {
                let id = number(rest)?;
                let ids = rest[1..].iter().map(|it| it.as_blob32().map(|it| Id::from_bytes(*it)));
                let ids: Option<Vec<Id>> = ids.collect();
                match ids {
                    Some(ids) if ids.len() <= CELLS_MAX => Ok(Message::Fetch { id, ids }),
                    _ => Err(Wrong::Argument(Some(id), "not a list of at most 254 ids")),
                }
            }
            b"DATA" => Ok(Message::Cells { cells: rest.iter().map(|it| it.to_cell()).collect() }),
            b"CH" => match rest {
                [_, signed] => {
                    Ok(Message::Challenge { id: number(rest)?, signed: signed.to_cell() })
                }
                _ => Err(Wrong::Argument(number(rest).ok(), "a challenge has one value")),
            },
            b"BYE" => Ok(Message::Bye),
            _ => Err(Wrong::Unknown),
        }
    }

    fn query(rest: &[View<'_>]) -> Result<Message, Wrong> {
        let id = number(rest)?;
        match rest {
            [_, path] => match path_of(*path) {
                Some(path) => Ok(Message::Query { id, path }),
                None => Err(Wrong::Argument(Some(id), "the path is not a short vector")),
            },
            _ => Err(Wrong::Argument(Some(id), "a query has one path")),
        }
    }

    fn value(rest: &[View<'_>]) -> Result<Message, Wrong> {
        let (id, path, value) = match rest {
            [path, value] => (None, path, value),
            [id, path, value] => (id.as_int(), path, value),
            _ => return Err(Wrong::Argument(None, "a value has a path and a value")),
        };
        match path_of(*path) {
            Some(path) => Ok(Message::Value { id, path, value: value.to_cell() }),
            None => Err(Wrong::Argument(id, "the path is not a short vector")),
        }
    }

    fn answer(view: View<'_>) -> Result<Message, Wrong> {
        // The log and the info behind the code are not looked at, nor need they be here.
        let mut slots = view.slots();
        let mut field = || slots.next().and_then(|it| it.view().ok()).ok_or(Wrong::Unknown);
        let (id, value, code) = (field()?, field()?, field()?);
        let result = match code.as_keyword() {
            None => Ok(value.to_cell()),
            Some(code) => {
                let text = value.as_string(TEXT_BYTES_MAX).ok().flatten().unwrap_or_default();
                Err((Code::of(code), String::from_utf8_lossy(&text).into_owned()))
            }
        };
        Ok(Message::Answer { id: id.as_int(), result })
    }
}

fn number(rest: &[View<'_>]) -> Result<i64, Wrong> {
    rest.first().and_then(|it| it.as_int()).ok_or(Wrong::Unknown)
}

fn path_of(path: View<'_>) -> Option<Vec<Cell>> {
    match path.form() {
        Form::Vector(_) => {
            Some(path.elements(PATH_COUNT_MAX).ok()?.into_iter().map(View::to_cell).collect())
        }
        _ => None,
    }
}
