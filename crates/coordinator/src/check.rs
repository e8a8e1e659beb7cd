//! Looks at every record of the coordinator with the decoders that the services use.

use kumiko_base::{Category, category};
use kumiko_kv::{Range, Scan, Txn};

use crate::job::Job;
use crate::message::Message;
use crate::state;

/// What a check found in one category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many records were looked at.
    pub records: u64,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
}

/// Looks at the records of `category` in `range`, at most `rows_max`. Returns what is left.
pub fn step(
    txn: &mut dyn Txn,
    category: Category,
    range: Range,
    rows_max: usize,
    found: &mut Found,
) -> Result<Option<Range>, kumiko_kv::Error> {
    let page = txn.scan(&Scan::new(range).rows(rows_max).snapshot())?;
    for (key, value) in &page.rows {
        found.records += 1;
        let verdict = match category {
            Category::Message => message(key, value),
            Category::Event => Message::decode(key, value).map(drop).map_err(|it| it.to_string()),
            Category::Job => Job::decode(key, value).map(drop).map_err(|it| it.to_string()),
            _ => state::check(key, value).map_err(|it| it.to_string()),
        };
        if let Err(why) = verdict {
            found.wrong.push(why);
        }
    }
    Ok(page.rest)
}

/// The clock in the key and in the message are the same number.
fn message(key: &[u8], value: &[u8]) -> Result<(), String> {
    let message = Message::decode(key, value).map_err(|error| error.to_string())?;
    let mut reader =
        category::open_as(Category::Message, key).map_err(|error| error.to_string())?;
    let clock: u64 = reader.int().map_err(|error| error.to_string())?;
    if clock != message.clock {
        return Err(format!("the message {} stands under the clock {clock}", message.clock));
    }
    Ok(())
}
