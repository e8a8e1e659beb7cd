//! Writes that a client repeats because it did not hear the answer.
//!
//! ```text
//! R 11  session, first statement      CBOR [number, last statement, answer, time]
//! ```
//!
//! The record is written in the transaction of the write itself, so it survives what the write
//! survives. A session uses each number once and in rising order; a newer one overwrites.

use kumiko_base::tuple::Writer;
use kumiko_base::{Category, Value, cbor};
use kumiko_kv::{Range, Scan, Txn};
use kumiko_lang::Code;

use crate::Failure;

/// How far back a repeated statement is looked for among the records of its session.
const RECORDS_MAX: usize = 1_000;
/// The statement that stands for the commit of a transaction.
pub(crate) const COMMIT: i64 = -1;
/// The longest answer that is kept.
const ANSWER_BYTES_MAX: usize = 80_000;

fn key(session: &[u8], statement: i64) -> Vec<u8> {
    Writer::after(&Category::Retry.prefix()).bytes(session).int(statement).finish()
}

/// The answer that statement `statement` of write `number` had, if it was done.
///
/// # Errors
///
/// `TransactionTooOld` if the session has gone on to another number.
pub(crate) fn find(
    txn: &mut dyn Txn,
    session: &[u8],
    number: i64,
    statement: i64,
) -> Result<Option<Value>, Failure> {
    let start = Writer::after(&Category::Retry.prefix()).bytes(session).int(COMMIT).finish();
    let range = Range::new(start, [key(session, statement).as_slice(), &[0]].concat());
    let page = txn.scan(&Scan::new(range).reverse().rows(RECORDS_MAX))?;
    for (_, value) in page.rows {
        let Ok(Value::Array(fields)) = cbor::decode(&value) else { continue };
        let [Value::I64(theirs), Value::I64(last), answer, _] = fields.as_slice() else { continue };
        if number < *theirs {
            let message = format!(
                "Retryable write with txnNumber {number} is prohibited on session because a newer \
                 one with txnNumber {theirs} has been started on this session."
            );
            return Err(Failure::new(Code::TRANSACTION_TOO_OLD, message));
        }
        if *theirs == number && statement <= *last {
            return Ok(Some(answer.clone()));
        }
    }
    Ok(None)
}

/// Remembers that statements `first` to `last` of write `number` were done, with this answer.
pub(crate) fn keep(
    txn: &mut dyn Txn,
    session: &[u8],
    number: i64,
    (first, last): (i64, i64),
    answer: &Value,
    now_ms: i64,
) -> Result<(), Failure> {
    let record = |answer: Value| {
        cbor::encode(&Value::Array(vec![
            Value::I64(number),
            Value::I64(last),
            answer,
            Value::I64(now_ms),
        ]))
    };
    let long = |_| Failure::new(Code::INTERNAL, "an answer cannot be kept");
    let mut bytes = record(answer.clone()).map_err(long)?;
    if ANSWER_BYTES_MAX < bytes.len() {
        bytes = record(Value::Null).map_err(long)?;
    }
    Ok(txn.put(&key(session, first), &bytes)?)
}
