//! One transaction: a snapshot to read, a buffer of writes, and the commit that checks and writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kumiko_kv::buffer::{self, Buffer, Write};
use kumiko_kv::{Committed, Error, Flow, Range, Read, Scan, Txn, range};

use crate::client::{self, Client, Column, Statement, bytea_array};
use crate::engine::{Pool, mix, unavailable};

/// Rows of the first chunk of a scan; later chunks are larger, up to the maximum.
const CHUNK_ROWS: usize = 32;
const CHUNK_ROWS_MAX: usize = 1024;
/// How often a commit that lost a race inside the server, and not against what it read, is run
/// again: this is how two `add`s to one key both succeed.
const COMMITS_MAX: u32 = 50;

const GET: &str = "SELECT value, version FROM kumiko_kv WHERE key = $1::bytea";
const SCAN: &str = "SELECT key, value, version FROM kumiko_kv \
                    WHERE $1::bytea <= key AND key < $2::bytea ORDER BY key LIMIT $3::int8";
const SCAN_BACK: &str = "SELECT key, value, version FROM kumiko_kv \
                         WHERE $1::bytea <= key AND key < $2::bytea ORDER BY key DESC LIMIT $3::int8";
const VERSIONS: &str = "SELECT key, version FROM kumiko_kv WHERE key = ANY($1::bytea[])";
const SUM: &str = "SELECT count(*)::text, coalesce(sum(version), 0)::text FROM kumiko_kv \
                   WHERE $1::bytea <= key AND key < $2::bytea";
const TOUCHED: &str = "SELECT id FROM kumiko_touch WHERE EXISTS (\
                       SELECT 1 FROM unnest($1::bytea[], $2::bytea[]) AS seen (start, stop) \
                       WHERE first < stop AND start < past)";
const VALUES: &str = "SELECT key, value FROM kumiko_kv \
                      WHERE key = ANY($1::bytea[]) AND value IS NOT NULL";
const PUT: &str = "INSERT INTO kumiko_kv (key, value, version) \
                   SELECT unnest($1::bytea[]), unnest($2::bytea[]), $3::int8 ON CONFLICT (key) \
                   DO UPDATE SET value = excluded.value, version = excluded.version, at = now()";
const DEL: &str = "INSERT INTO kumiko_kv (key, value, version) \
                   SELECT unnest($1::bytea[]), NULL, $2::int8 ON CONFLICT (key) \
                   DO UPDATE SET value = NULL, version = excluded.version, at = now()";
const CLEAR: &str = "UPDATE kumiko_kv SET value = NULL, version = $3::int8, at = now() \
                     WHERE $1::bytea <= key AND key < $2::bytea AND value IS NOT NULL";
const TOUCH: &str =
    "INSERT INTO kumiko_touch (id, first, past) VALUES ($1::int8, $2::bytea, $3::bytea)";
const NEXT: &str = "SELECT nextval('kumiko_version')";
const RING: &str = "SELECT pg_notify('kumiko', encode(key, 'hex')) FROM kumiko_watch \
                    WHERE key = ANY($1::bytea[])";

/// A range that was read: how many rows it had, and the sum of their versions.
struct SeenRange {
    range: Range,
    rows: u64,
    sum: i128,
}

pub(crate) struct PostgresTxn {
    pool: Arc<Pool>,
    /// Inside the snapshot's transaction. None once it was given back.
    client: Option<Client>,
    buffer: Buffer,
    /// Keys that were read alone, with the version that was seen.
    keys: BTreeMap<Vec<u8>, Option<i64>>,
    ranges: Vec<SeenRange>,
}

impl PostgresTxn {
    pub(crate) fn new(pool: Arc<Pool>, client: Client) -> PostgresTxn {
        let (keys, ranges) = (BTreeMap::new(), Vec::new());
        PostgresTxn { pool, client: Some(client), buffer: Buffer::default(), keys, ranges }
    }

    fn ask(&mut self, statement: Statement) -> Result<Vec<Vec<Column>>, Error> {
        let client = self.client.as_mut().expect("only commit takes the connection away");
        let mut results = client.run(&[statement]).map_err(unavailable)?;
        Ok(results.pop().unwrap_or_default())
    }

    fn stored(&mut self, key: &[u8]) -> Result<Option<(Column, i64)>, Error> {
        let rows = self.ask(Statement::new(GET, vec![key.to_vec()]))?;
        match rows.into_iter().next() {
            None => Ok(None),
            Some(mut row) => {
                let version = row.pop().flatten().unwrap_or_default();
                Ok(Some((row.pop().flatten(), int8(&version)?)))
            }
        }
    }

    /// Reads `range` for its versions alone, as if it had been scanned.
    fn see(&mut self, range: &Range) -> Result<(), Error> {
        let params = vec![range.start.clone(), range.end.clone()];
        let rows = self.ask(Statement::new(SUM, params))?;
        let (rows, sum) = count_and_sum(rows)?;
        self.ranges.push(SeenRange { range: range.clone(), rows, sum });
        Ok(())
    }

    /// The statements that look whether what was read is still so, and fetch what `add` needs.
    fn checks(&self) -> Vec<Statement> {
        let mut checks = vec![Statement::new("BEGIN ISOLATION LEVEL SERIALIZABLE", vec![])];
        let keys = bytea_array(self.keys.keys().map(Vec::as_slice));
        checks.push(Statement::new(VERSIONS, vec![keys]));
        let sums = self.adds();
        checks.push(Statement::new(VALUES, vec![bytea_array(sums.iter().copied())]));
        checks.push(Statement::new(NEXT, vec![]));
        checks.push(self.touched());
        for seen in &self.ranges {
            let params = vec![seen.range.start.clone(), seen.range.end.clone()];
            checks.push(Statement::new(SUM, params));
        }
        checks
    }

    /// Everything that was read, as ranges.
    fn ranges_seen(&self) -> impl Iterator<Item = Range> + '_ {
        let keys = self.keys.keys().map(|key| Range::one(key));
        keys.chain(self.ranges.iter().map(|seen| seen.range.clone()))
    }

    fn adds(&self) -> Vec<&[u8]> {
        let adds = self.buffer.writes().iter().filter(|(_, write)| matches!(write, Write::Add(_)));
        adds.map(|(key, _)| key.as_slice()).collect()
    }

    /// Whether the answers to `checks` say that nothing changed. `touched` is what the snapshot
    /// says to the same questions about touched ranges.
    fn unchanged(
        &self,
        answers: &[Vec<Vec<Column>>],
        touched: &[Vec<Column>],
    ) -> Result<bool, Error> {
        let mut now = BTreeMap::new();
        for row in answers.get(1).into_iter().flatten() {
            let [key, version] = columns(row.clone())?;
            now.insert(key, int8(&version)?);
        }
        if self.keys.iter().any(|(key, version)| now.get(key).copied() != *version) {
            return Ok(false);
        }
        let first = 4;
        let touched_now = answers.get(first).map_or(&[][..], Vec::as_slice);
        if touched_now.iter().any(|row| !touched.contains(row)) {
            return Ok(false);
        }
        for (index, seen) in self.ranges.iter().enumerate() {
            let rows = answers.get(first + 1 + index).cloned().unwrap_or_default();
            if count_and_sum(rows)? != (seen.rows, seen.sum) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The statements that write, given the values under the keys that `add` names.
    fn writes(&self, values: &BTreeMap<Vec<u8>, Vec<u8>>, version: i64) -> Vec<Statement> {
        let mut statements = Vec::new();
        for range in self.buffer.cleared() {
            let params = vec![range.start, range.end, version.to_be_bytes().to_vec()];
            statements.push(Statement::new(CLEAR, params));
        }
        let (mut puts, mut dels) = (Vec::new(), Vec::new());
        for (key, write) in self.buffer.writes() {
            match write {
                Write::Put(value) => puts.push((key.as_slice(), value.clone())),
                Write::Add(delta) => {
                    let under = values.get(key).map(Vec::as_slice);
                    puts.push((key.as_slice(), buffer::add(under, *delta)));
                }
                Write::Del => dels.push(key.as_slice()),
            }
        }
        if !dels.is_empty() {
            let params = vec![bytea_array(dels.iter().copied()), version.to_be_bytes().to_vec()];
            statements.push(Statement::new(DEL, params));
        }
        if !puts.is_empty() {
            let keys = bytea_array(puts.iter().map(|(key, _)| *key));
            let values = bytea_array(puts.iter().map(|(_, value)| value.as_slice()));
            let params = vec![keys, values, version.to_be_bytes().to_vec()];
            statements.push(Statement::new(PUT, params));
        }
        for range in self.buffer.cleared().chain(self.buffer.conflicts().iter().cloned()) {
            let id = (self.pool.random() >> 1) as i64;
            let params = vec![id.to_be_bytes().to_vec(), range.start, range.end];
            statements.push(Statement::new(TOUCH, params));
        }
        let written = puts.iter().map(|(key, _)| *key).chain(dels);
        let written: Vec<&[u8]> = written.collect();
        if !written.is_empty() {
            statements.push(Statement::new(RING, vec![bytea_array(written.into_iter())]));
        }
        statements.push(Statement::new("COMMIT", vec![]));
        statements
    }

    /// Asks which traces of cleared ranges overlap with what was read.
    fn touched(&self) -> Statement {
        let seen: Vec<Range> = self.ranges_seen().collect();
        let starts = bytea_array(seen.iter().map(|range| range.start.as_slice()));
        let ends = bytea_array(seen.iter().map(|range| range.end.as_slice()));
        Statement::new(TOUCHED, vec![starts, ends])
    }

    /// One try to commit: its version, none if it may be tried again, or an error for good.
    fn try_commit(
        &self,
        client: &mut Client,
        touched: &[Vec<Column>],
    ) -> Result<Option<u64>, Error> {
        let answers = match client.run(&self.checks()) {
            Ok(answers) => answers,
            Err(error) => return lost_race(client, error, false),
        };
        if !self.unchanged(&answers, touched)? {
            roll_back(client);
            return Err(Error::Conflict);
        }
        let mut values = BTreeMap::new();
        for row in answers.get(2).into_iter().flatten() {
            let [key, value] = columns(row.clone())?;
            values.insert(key, value);
        }
        let number = answers.get(3).and_then(|rows| rows.first()).cloned().unwrap_or_default();
        let [number] = columns(number)?;
        let number = int8(&number)? as u64;
        match client.run(&self.writes(&values, mix(number) as i64)) {
            Ok(_) => Ok(Some(number)),
            Err(error) => lost_race(client, error, true),
        }
    }
}

/// None if the server says that the transaction may be run again; the error otherwise.
fn lost_race(
    client: &mut Client,
    error: client::Error,
    writing: bool,
) -> Result<Option<u64>, Error> {
    match &error {
        client::Error::Server { .. } => {
            roll_back(client);
            match unavailable(error) {
                Error::Conflict => Ok(None),
                error => Err(error),
            }
        }
        client::Error::Lost(_) if writing => Err(Error::Unknown(error.to_string())),
        client::Error::Lost(_) => Err(unavailable(error)),
    }
}

fn roll_back(client: &mut Client) {
    // If this fails the connection is lost, and the next statement on it says so.
    let _ = client.execute("ROLLBACK");
}

impl Drop for PostgresTxn {
    fn drop(&mut self) {
        if let Some(mut client) = self.client.take()
            && client.execute("ROLLBACK").is_ok()
        {
            self.pool.give(client);
        }
    }
}

impl Txn for PostgresTxn {
    fn get(&mut self, key: &[u8], read: Read) -> Result<Option<Vec<u8>>, Error> {
        buffer::check_key(key)?;
        match self.buffer.get(key) {
            Some(Write::Put(value)) => return Ok(Some(value)),
            Some(Write::Del) => return Ok(None),
            Some(Write::Add(_)) | None => {}
        }
        let stored = self.stored(key)?;
        if read == Read::Serializable {
            self.keys.insert(key.to_vec(), stored.as_ref().map(|(_, version)| *version));
        }
        let value = stored.and_then(|(value, _)| value);
        Ok(match self.buffer.get(key) {
            Some(Write::Add(delta)) => Some(buffer::add(value.as_deref(), delta)),
            _ => value,
        })
    }

    fn visit(
        &mut self,
        scan: &Scan,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<Option<Range>, Error> {
        buffer::check_range(&scan.range)?;
        let mut visit = Visit::new(scan);
        let mut chunk = CHUNK_ROWS.min(scan.rows_max.saturating_add(1));
        while !visit.done {
            let left = visit.left.clone();
            let sql = if scan.reverse { SCAN_BACK } else { SCAN };
            let limit = (chunk as i64).to_be_bytes().to_vec();
            let rows = if left.is_empty() {
                Vec::new()
            } else {
                self.ask(Statement::new(sql, vec![left.start.clone(), left.end.clone(), limit]))?
            };
            let full = rows.len() == chunk;
            visit.chunk(&self.buffer, rows, full, each)?;
            chunk = (chunk * 4).min(CHUNK_ROWS_MAX);
        }
        let rest = Some(visit.left.clone()).filter(|left| !left.is_empty());
        if scan.read == Read::Serializable && !scan.range.is_empty() {
            let mut seen = scan.range.clone();
            match (&rest, scan.reverse) {
                (None, _) => {}
                (Some(rest), false) => seen.end.clone_from(&rest.start),
                (Some(rest), true) => seen.start.clone_from(&rest.end),
            }
            if !seen.is_empty() {
                self.ranges.push(SeenRange { range: seen, rows: visit.rows, sum: visit.sum });
            }
        }
        Ok(rest)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.buffer.put(key, value)
    }

    fn del(&mut self, key: &[u8]) -> Result<(), Error> {
        self.buffer.del(key)
    }

    fn clear(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.clear(range)
    }

    fn add(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        self.buffer.add(key, delta)
    }

    fn read_conflict(&mut self, range: &Range) -> Result<(), Error> {
        buffer::check_range(range)?;
        if range.is_empty() { Ok(()) } else { self.see(range) }
    }

    fn write_conflict(&mut self, range: &Range) -> Result<(), Error> {
        self.buffer.conflict(range)
    }

    fn size(&self) -> usize {
        self.buffer.size()
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, Error> {
        if self.buffer.is_empty() {
            return Ok(Committed { version: 0 });
        }
        let touched = self.ask(self.touched())?;
        let mut client = self.client.take().expect("only commit takes the connection away");
        client.execute("ROLLBACK").map_err(unavailable)?;
        for _ in 0..COMMITS_MAX {
            match self.try_commit(&mut client, &touched) {
                Ok(Some(version)) => {
                    self.pool.committed(client);
                    return Ok(Committed { version });
                }
                Ok(None) => {}
                Err(error) => {
                    if !matches!(error, Error::Unknown(_) | Error::Unavailable(_)) {
                        self.pool.give(client);
                    }
                    return Err(error);
                }
            }
        }
        self.pool.give(client);
        Err(Error::Conflict)
    }
}

/// A scan under way: the stored rows come in chunks, the transaction's own writes between them.
struct Visit<'a> {
    scan: &'a Scan,
    left: Range,
    given: usize,
    bytes: usize,
    done: bool,
    /// Stored rows that were looked at, and the sum of their versions.
    rows: u64,
    sum: i128,
}

impl Visit<'_> {
    fn new(scan: &Scan) -> Visit<'_> {
        let done = scan.rows_max == 0 || scan.bytes_max == 0;
        let left = scan.range.clone();
        Visit { scan, left, given: 0, bytes: 0, done, rows: 0, sum: 0 }
    }

    /// Takes in stored rows, in the order of the scan. `full` says that there may be more.
    fn chunk(
        &mut self,
        buffer: &Buffer,
        rows: Vec<Vec<Column>>,
        full: bool,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) -> Result<(), Error> {
        for row in rows {
            let (key, value, version) = stored_row(row)?;
            self.own_before(buffer, Some(&key), each);
            if self.done {
                return Ok(());
            }
            self.rows += 1;
            self.sum += i128::from(version);
            let value = match buffer.get(&key) {
                None => value,
                Some(Write::Put(value)) => Some(value),
                Some(Write::Add(delta)) => Some(buffer::add(value.as_deref(), delta)),
                Some(Write::Del) => None,
            };
            self.pass(&key, value.as_deref(), each);
            if self.done {
                return Ok(());
            }
        }
        if !full {
            self.own_before(buffer, None, each);
            if !self.done {
                self.left.start = self.left.end.clone();
                self.done = true;
            }
        }
        Ok(())
    }

    /// Shows this transaction's own rows that come before the stored `key`.
    fn own_before(
        &mut self,
        buffer: &Buffer,
        key: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) {
        let mut range = self.left.clone();
        match (key, self.scan.reverse) {
            (None, _) => {}
            (Some(key), false) => range.end = key.to_vec(),
            (Some(key), true) => range.start = range::after(key),
        }
        if range.is_empty() {
            return;
        }
        let mut own: Vec<(&Vec<u8>, &Write)> = buffer.writes_in(&range).collect();
        if self.scan.reverse {
            own.reverse();
        }
        for (key, write) in own {
            let value = match write {
                Write::Put(value) => Some(value.clone()),
                Write::Add(delta) => Some(buffer::add(None, *delta)),
                Write::Del => None,
            };
            self.pass(key, value.as_deref(), each);
            if self.done {
                return;
            }
        }
    }

    /// Moves past `key`, showing it if it has a value.
    fn pass(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> Flow,
    ) {
        if self.scan.reverse {
            self.left.end = key.to_vec();
        } else {
            self.left.start = range::after(key);
        }
        let Some(value) = value else { return };
        self.given += 1;
        self.bytes += key.len() + value.len();
        let stop = each(key, value) == Flow::Stop;
        self.done = stop || self.scan.rows_max <= self.given || self.scan.bytes_max <= self.bytes;
    }
}

/// The key, the value if it is not a trace, and the version.
fn stored_row(row: Vec<Column>) -> Result<(Vec<u8>, Column, i64), Error> {
    let [key, value, version] = <[Column; 3]>::try_from(row)
        .map_err(|_| Error::Corrupt("PostgreSQL answered with other columns".into()))?;
    Ok((key.unwrap_or_default(), value, int8(&version.unwrap_or_default())?))
}

fn columns<const N: usize>(row: Vec<Column>) -> Result<[Vec<u8>; N], Error> {
    let columns: Option<Vec<Vec<u8>>> = row.into_iter().collect();
    columns
        .and_then(|it| it.try_into().ok())
        .ok_or_else(|| Error::Corrupt("PostgreSQL answered with other columns".into()))
}

fn int8(bytes: &[u8]) -> Result<i64, Error> {
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| Error::Corrupt("PostgreSQL answered no int8".into()))?;
    Ok(i64::from_be_bytes(bytes))
}

fn count_and_sum(rows: Vec<Vec<Column>>) -> Result<(u64, i128), Error> {
    let corrupt = || Error::Corrupt("PostgreSQL answered no sum".into());
    let row = rows.into_iter().next().ok_or_else(corrupt)?;
    let [count, sum] = columns(row)?;
    let parse = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<i128>().ok();
    let count = parse(&count).ok_or_else(corrupt)? as u64;
    Ok((count, parse(&sum).ok_or_else(corrupt)?))
}
