//! Reading an LMDB file: the newest consistent state, by cursor.

use std::cmp::Ordering;
use std::io;

use super::{
    DB_BYTES, DEPTH_MAX, Db, FORMAT, MAGIC, NO_PAGE, NODE_BIG, NODE_HEAD, NODE_TREE, PAGE_BRANCH,
    PAGE_HEAD, PAGE_LEAF, PAGE_META, PAGE_OVERFLOW, ReadAt, broken, overflow_pages,
};
use crate::Error;

/// An LMDB file, in the state that its newest meta page names.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    file: &'a dyn ReadAt,
    page_size: usize,
    last_page: u64,
    txn: u64,
    main: Db,
}

/// A value: small ones are at hand, large ones are read piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The bytes.
    Inline(Vec<u8>),
    /// This many bytes from this place of the file on.
    Overflow {
        /// Where they begin.
        offset: u64,
        /// How many they are.
        size: u64,
    },
}

impl Value {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Value::Inline(bytes) => bytes.len() as u64,
            Value::Overflow { size, .. } => *size,
        }
    }
}

impl<'a> Env<'a> {
    /// Opens the file. Nobody may write it meanwhile, because no lock is taken.
    pub fn open(file: &'a dyn ReadAt) -> Result<Env<'a>, Error> {
        let first = Meta::read(file, 0)?;
        let page_size = first.page_size;
        let newest = match Meta::read(file, page_size as u64) {
            Ok(second) if second.page_size != page_size => {
                return Err(broken("the meta pages differ in page size"));
            }
            Ok(second) if first.txn < second.txn => second,
            Ok(_) => first,
            Err(error) => return Err(error),
        };
        let Meta { last_page, txn, main, .. } = newest;
        Ok(Env { file, page_size, last_page, txn, main })
    }

    /// The number of the transaction that wrote this state.
    pub fn txn(&self) -> u64 {
        self.txn
    }

    /// The size of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The database of this name, if there is one.
    pub fn named(&self, name: &[u8]) -> Result<Option<Db>, Error> {
        let mut cursor = Cursor::seek(self, &self.main, &|key| key.cmp(name))?;
        let Some((key, flags, value)) = cursor.next_node()? else { return Ok(None) };
        if key != name {
            return Ok(None);
        }
        match value {
            Value::Inline(bytes) if flags & NODE_TREE != 0 && bytes.len() == DB_BYTES => {
                Ok(Db::decode(&bytes))
            }
            _ => Err(broken("a name stands for no database")),
        }
    }

    /// The bytes of a value, which may be at most `size_max`.
    pub fn load(&self, value: &Value, size_max: u64) -> Result<Vec<u8>, Error> {
        if size_max < value.size() {
            let (size, what) = (value.size(), "value of the LMDB file");
            return Err(Error::TooLarge { what, size, size_max });
        }
        match value {
            Value::Inline(bytes) => Ok(bytes.clone()),
            Value::Overflow { offset, size } => {
                // The file has been found to be at least that long.
                let mut bytes = vec![0; *size as usize];
                self.file.read_at(*offset, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// A value as a stream.
    pub fn stream<'v>(&'v self, value: &'v Value) -> Box<dyn io::Read + 'v> {
        match value {
            Value::Inline(bytes) => Box::new(bytes.as_slice()),
            Value::Overflow { offset, size } => {
                Box::new(Part { file: self.file, offset: *offset, left: *size })
            }
        }
    }

    fn page(&self, number: u64, flags: u16) -> Result<Vec<u8>, Error> {
        if self.last_page < number {
            return Err(broken(format!("page {number} is past the last, {}", self.last_page)));
        }
        let mut page = vec![0; self.page_size];
        self.file.read_at(number * self.page_size as u64, &mut page)?;
        let own = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        let found = u16_at(&page, 10).unwrap_or(0);
        if own != number || found & flags == 0 || found & !(flags | 0x10) != 0 {
            return Err(broken(format!("page {number} is of another type ({found:04x})")));
        }
        Ok(page)
    }
}

/// A stretch of a file as a stream.
struct Part<'a> {
    file: &'a dyn ReadAt,
    offset: u64,
    left: u64,
}

impl io::Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.left.min(buffer.len() as u64) as usize;
        self.file.read_at(self.offset, &mut buffer[..count])?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

struct Meta {
    page_size: usize,
    last_page: u64,
    txn: u64,
    main: Db,
}

impl Meta {
    fn read(file: &dyn ReadAt, offset: u64) -> Result<Meta, Error> {
        let mut page = [0; PAGE_HEAD + 24 + 2 * DB_BYTES + 16];
        if file.size()? < offset + page.len() as u64 {
            return Err(broken("it is too short for its meta pages"));
        }
        file.read_at(offset, &mut page)?;
        let content = &page[PAGE_HEAD..];
        let word = |at: usize| {
            u64::from_le_bytes(content[at..at + 8].try_into().expect("eight bytes of the array"))
        };
        let (magic, version) = (word(0) as u32, (word(0) >> 32) as u32);
        if u16_at(&page, 10) != Some(PAGE_META) || magic != MAGIC {
            return Err(Error::Pier("this is not an LMDB file".into()));
        }
        if version != FORMAT {
            return Err(Error::Pier(format!("LMDB data format {version} is not {FORMAT}")));
        }
        let free = Db::decode(&content[24..24 + DB_BYTES]).expect("as long as it must be");
        let main = &content[24 + DB_BYTES..24 + 2 * DB_BYTES];
        let main = Db::decode(main).expect("as long as it must be");
        let page_size = free.pad as usize;
        if !page_size.is_power_of_two() || !(512..=65_536).contains(&page_size) {
            return Err(broken(format!("pages of {page_size} bytes")));
        }
        let tail = 24 + 2 * DB_BYTES;
        let (last_page, txn) = (word(tail), word(tail + 8));
        // One past the last page must still have an offset.
        if u64::MAX / page_size as u64 - 1 < last_page {
            return Err(broken("the last page is past all files"));
        }
        Ok(Meta { page_size, last_page, txn, main })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A page on the way from the root, and the child or entry that comes next.
struct Step {
    page: Vec<u8>,
    index: usize,
}

/// The entries of one database, in order.
pub struct Cursor<'a> {
    env: Env<'a>,
    steps: Vec<Step>,
    depth: usize,
    /// How many pages may still be read: more than the file has means a cycle.
    budget: u64,
}

struct Node<'p> {
    number: u64,
    flags: u16,
    size: u64,
    key: &'p [u8],
    rest: &'p [u8],
}

impl<'a> Cursor<'a> {
    /// Before the first entry whose key is not less, as `compare` compares a key with the target.
    pub fn seek(
        env: &Env<'a>,
        db: &Db,
        compare: &dyn Fn(&[u8]) -> Ordering,
    ) -> Result<Cursor<'a>, Error> {
        let depth = usize::from(db.depth);
        let mut cursor =
            Cursor { env: *env, steps: Vec::new(), depth, budget: env.last_page.saturating_add(1) };
        if db.root == NO_PAGE {
            return Ok(cursor);
        }
        if depth == 0 || DEPTH_MAX < depth {
            return Err(broken(format!("a tree of depth {depth}")));
        }
        let mut number = db.root;
        loop {
            cursor.descend(number)?;
            let leaf = cursor.steps.len() == depth;
            let step = cursor.steps.last_mut().expect("just pushed");
            let count = keys(&step.page)?;
            // In a branch, the first key is not there: it stands for everything before the second.
            let (mut low, mut high) = (usize::from(!leaf), count);
            while low < high {
                let middle = usize::midpoint(low, high);
                let order = compare(node(&step.page, middle)?.key);
                // A leaf is left of the target while less; a branch also when equal.
                let go_right = order == Ordering::Less || (!leaf && order == Ordering::Equal);
                if go_right { low = middle + 1 } else { high = middle }
            }
            if leaf {
                step.index = low;
                return Ok(cursor);
            }
            let child = low.saturating_sub(1);
            step.index = child + 1;
            number = node(&step.page, child)?.number;
        }
    }

    /// Before the first entry.
    pub fn first(env: &Env<'a>, db: &Db) -> Result<Cursor<'a>, Error> {
        Cursor::seek(env, db, &|_| Ordering::Greater)
    }

    /// The next entry.
    pub fn step(&mut self) -> Result<Option<(Vec<u8>, Value)>, Error> {
        match self.next_node()? {
            None => Ok(None),
            Some((key, flags, value)) if flags & !NODE_BIG == 0 => Ok(Some((key, value))),
            Some(_) => Err(broken("a database where a value should be")),
        }
    }

    fn next_node(&mut self) -> Result<Option<(Vec<u8>, u16, Value)>, Error> {
        loop {
            let leaf = self.steps.len() == self.depth;
            let Some(step) = self.steps.last_mut() else { return Ok(None) };
            if keys(&step.page)? <= step.index {
                self.steps.pop();
                continue;
            }
            let node = node(&step.page, step.index)?;
            step.index += 1;
            if !leaf {
                let number = node.number;
                self.descend(number)?;
                continue;
            }
            let (key, flags) = (node.key.to_vec(), node.flags);
            let value = value(&self.env, &node)?;
            return Ok(Some((key, flags, value)));
        }
    }

    fn descend(&mut self, number: u64) -> Result<(), Error> {
        let flags = if self.steps.len() + 1 == self.depth { PAGE_LEAF } else { PAGE_BRANCH };
        self.budget = self.budget.checked_sub(1).ok_or_else(|| broken("a tree with a cycle"))?;
        let page = self.env.page(number, flags)?;
        self.steps.push(Step { page, index: 0 });
        Ok(())
    }
}

fn keys(page: &[u8]) -> Result<usize, Error> {
    let lower = usize::from(u16_at(page, 12).unwrap_or(0));
    let upper = usize::from(u16_at(page, 14).unwrap_or(0));
    if lower < PAGE_HEAD || upper < lower || page.len() < upper {
        return Err(broken("the bounds of a page"));
    }
    Ok((lower - PAGE_HEAD) / 2)
}

fn node(page: &[u8], index: usize) -> Result<Node<'_>, Error> {
    let read = || {
        let start = usize::from(u16_at(page, PAGE_HEAD + 2 * index)?);
        let low = u64::from(u16_at(page, start)?);
        let high = u64::from(u16_at(page, start + 2)?);
        let flags = u16_at(page, start + 4)?;
        let key_size = usize::from(u16_at(page, start + 6)?);
        let rest = page.get(start + NODE_HEAD..)?;
        let (key, rest) = rest.split_at_checked(key_size)?;
        let size = low | high << 16;
        Some(Node { number: size | u64::from(flags) << 32, flags, size, key, rest })
    };
    read().ok_or_else(|| broken("an entry that leaves its page"))
}

fn value(env: &Env<'_>, node: &Node<'_>) -> Result<Value, Error> {
    if node.flags & NODE_BIG == 0 {
        let bytes = node.rest.get(..node.size as usize);
        let bytes = bytes.ok_or_else(|| broken("a value that leaves its page"))?;
        return Ok(Value::Inline(bytes.to_vec()));
    }
    let first = node.rest.first_chunk::<8>().ok_or_else(|| broken("an overflow page's number"))?;
    let first = u64::from_le_bytes(*first);
    let count = overflow_pages(env.page_size, node.size);
    if env.last_page < first || env.last_page - first < count - 1 {
        return Err(broken("overflow pages past the last page"));
    }
    let page = env.page(first, PAGE_OVERFLOW)?;
    let pages = u32::from_le_bytes(page[12..16].try_into().expect("four bytes"));
    let offset = first * env.page_size as u64 + PAGE_HEAD as u64;
    if u64::from(pages) != count || env.file.size()? < offset + node.size {
        return Err(broken("a run of overflow pages that is too short"));
    }
    Ok(Value::Overflow { offset, size: node.size })
}
