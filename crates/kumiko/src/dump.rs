//! `kumiko dump`: the keyspace by category, readable.

use std::io::Write;

use kumiko_base::{Category, category, cbor, hex, show};
use kumiko_kv::{Range, Scan};
use kumiko_node::Error;

use crate::store;

/// How many rows one transaction reads.
const PAGE_ROWS: usize = 1_000;
/// How many bytes of a value that is not CBOR are shown.
const BYTES_SHOWN_MAX: usize = 48;

/// The flags of `dump`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    store: store::Args,
    /// Show the keys of this category only: one of D C O I M S J N E P L
    #[arg(long, value_name = "LETTER")]
    category: Option<char>,
    /// Show at most this many keys of each category
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Count the keys and bytes of each category, and show none
    #[arg(long)]
    summary: bool,
    /// One JSON object per line, with key and value as hexadecimal digits
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let wanted = match args.category {
        None => None,
        Some(letter) => Some(of_letter(letter)?),
    };
    let engine = args.store.open()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in category::REGISTER.iter().filter(|it| wanted.is_none_or(|one| one == it.category)) {
        let (mut keys, mut bytes) = (0_u64, 0_u64);
        let mut left = Some(Range::new([1, row.letter], [1, row.letter + 1]));
        while let Some(range) = left.take() {
            let mut txn = engine.begin()?;
            let page = txn.scan(&Scan::new(range).rows(PAGE_ROWS).bytes(1 << 20).snapshot())?;
            for (key, value) in &page.rows {
                keys += 1;
                bytes += (key.len() + value.len()) as u64;
                if !args.summary && args.limit.is_none_or(|limit| keys <= limit) {
                    print(&mut out, args.json, key, value)?;
                }
            }
            let enough = args.limit.is_some_and(|limit| limit <= keys) && !args.summary;
            left = page.rest.filter(|_| !enough);
        }
        if args.summary {
            summarize(&mut out, args.json, row, keys, bytes)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn of_letter(letter: char) -> Result<Category, Error> {
    u8::try_from(letter)
        .ok()
        .and_then(|letter| Category::of_letter(letter.to_ascii_uppercase()))
        .ok_or_else(|| Error::invalid(format!("there is no category with the letter {letter}")))
}

fn print(out: &mut impl Write, json: bool, key: &[u8], value: &[u8]) -> std::io::Result<()> {
    if json {
        let (key, value) = (hex::show(key), hex::show(value));
        return writeln!(out, "{{\"key\":\"{key}\",\"value\":\"{value}\"}}");
    }
    writeln!(out, "{} -> {}", show::key(key), show_value(key, value))
}

/// Values are CBOR but for logs, whose records are the user's bytes.
fn show_value(key: &[u8], value: &[u8]) -> String {
    let is_log = matches!(
        category::open(key),
        Ok((Category::Point | Category::Lattice | Category::Index, _))
    );
    match cbor::decode(value) {
        Ok(decoded) if !is_log => decoded.to_string(),
        _ if value.is_empty() => "(empty)".into(),
        _ => {
            let shown = value.get(..BYTES_SHOWN_MAX).unwrap_or(value);
            let more = value.len() - shown.len();
            let rest = if more == 0 { String::new() } else { format!(" and {more} bytes more") };
            format!("{}{rest}", hex::show(shown))
        }
    }
}

fn summarize(
    out: &mut impl Write,
    json: bool,
    row: &category::Registered,
    keys: u64,
    bytes: u64,
) -> std::io::Result<()> {
    let letter = char::from(row.letter);
    if json {
        let owner = row.owner;
        return writeln!(
            out,
            "{{\"category\":\"{letter}\",\"owner\":\"{owner}\",\"keys\":{keys},\"bytes\":{bytes}}}"
        );
    }
    writeln!(out, "{letter}  {:<12} {keys:>12} keys {bytes:>15} bytes", row.owner)
}
