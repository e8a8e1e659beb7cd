//! `kumiko import`: reads documents into a collection, one extended JSON object per line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use kumiko_base::Value;
use kumiko_document::{Notes, Work, catalog, documents};
use kumiko_kv::{Retry, Txn};
use kumiko_lang::json;
use kumiko_node::{Error, clock, random};

use crate::progress::Progress;
use crate::store;

/// How many documents go into one transaction.
const CHUNK_DOCUMENTS: usize = 500;
/// About how many bytes of text go into one transaction.
const CHUNK_BYTES: usize = 1_000_000;
/// The longest line: the longest document, and room for its types.
const LINE_BYTES_MAX: u64 = 48_000_000;

/// The flags of `import`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    store: store::Args,
    /// The collection, as DATABASE.COLLECTION
    #[arg(value_name = "DATABASE.COLLECTION")]
    into: String,
    /// The file to read; standard input if it is not named
    file: Option<PathBuf>,
    /// Remove the collection first
    #[arg(long)]
    drop: bool,
    /// Put a document in place of one with the same _id, where it would be an error otherwise
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let (database, name) = namespace(&args.into)?;
    let engine = args.store.create()?;
    let input: Box<dyn Read> = match &args.file {
        Some(path) => Box::new(File::open(path).map_err(|error| {
            Error::from(error).during(&format!("cannot read {}", path.display()))
        })?),
        None => Box::new(std::io::stdin()),
    };
    if args.drop {
        write(engine.as_ref(), |work| catalog::drop(work, database, name))?;
    }
    let mut input = BufReader::new(input);
    let mut progress = Progress::new("documents", None);
    let (mut chunk, mut bytes, mut line, mut count) = (Vec::new(), 0, 0_u64, 0_u64);
    let uuid = random::bytes()?;
    loop {
        let mut text = String::new();
        let size = (&mut input).take(LINE_BYTES_MAX).read_line(&mut text)?;
        line += 1;
        if !text.trim().is_empty() {
            let document = parse(&text).map_err(|error| error.during(&format!("line {line}")))?;
            chunk.push(document);
            bytes += size;
        }
        if size == 0 || CHUNK_DOCUMENTS <= chunk.len() || CHUNK_BYTES <= bytes {
            put(engine.as_ref(), (database, name, uuid), &chunk, args.replace)
                .map_err(|error| error.during(&format!("up to line {line}")))?;
            count += chunk.len() as u64;
            progress.at(count);
            chunk.clear();
            bytes = 0;
        }
        if size == 0 {
            break;
        }
    }
    progress.end();
    engine.sync()?;
    eprintln!("{count} documents into {database}.{name}");
    Ok(())
}

/// `DATABASE.COLLECTION` in its two parts.
pub(crate) fn namespace(text: &str) -> Result<(&str, &str), Error> {
    text.split_once('.')
        .filter(|(database, name)| !database.is_empty() && !name.is_empty())
        .ok_or_else(|| {
            Error::invalid(format!("{text} is not a collection: DATABASE.COLLECTION is wanted"))
        })
}

fn parse(text: &str) -> Result<Value, Error> {
    let document = json::parse(text).map_err(|error| Error::invalid(error.to_string()))?;
    let Value::Map(mut fields) = document else {
        return Err(Error::invalid("a document must be an object"));
    };
    let id = if let Some(at) = fields.iter().position(|(name, _)| name == "_id") {
        fields.remove(at)
    } else {
        let mut id = random::bytes::<12>()?;
        let seconds = (clock::now_ms() / 1000) as u32;
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        ("_id".to_string(), Value::ObjectId(id))
    };
    fields.insert(0, id);
    Ok(Value::Map(fields))
}

fn put(
    engine: &dyn kumiko_kv::Engine,
    (database, name, uuid): (&str, &str, [u8; 16]),
    chunk: &[Value],
    replace: bool,
) -> Result<(), Error> {
    use kumiko_document::Operation;
    write(engine, |work| {
        let mut collection = catalog::open(work, database, name, uuid)?;
        for document in chunk {
            let id = documents::id(document)?;
            let read = kumiko_kv::Read::Serializable;
            let old = if replace { documents::get(work.txn, &collection, id, read)? } else { None };
            match old {
                Some(old) => {
                    documents::replace(work, &mut collection, &old, document, Operation::Replace)?;
                }
                None => documents::insert(work, &mut collection, document)?,
            }
        }
        Ok(())
    })
}

fn write<T>(
    engine: &dyn kumiko_kv::Engine,
    mut body: impl FnMut(&mut Work<'_>) -> Result<T, kumiko_document::Error>,
) -> Result<T, Error> {
    let result = kumiko_kv::run(engine, Retry::default(), |txn: &mut dyn Txn| {
        let mut notes = Notes::default();
        body(&mut Work::new(txn, clock::now_ms(), &mut notes))
    });
    Ok(result?)
}
