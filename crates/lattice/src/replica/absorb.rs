//! Taking what other owners hold into our own state.
//!
//! The judge, which knows entries, is asked once for each key that differs; equal parts are not
//! looked at. Before it is asked, the form of the entry is checked, and counters are cut down to
//! what their owner may say: a column of a counter is taken from its owner's own slot and from
//! nowhere else.

use super::manifest::RESERVED_PREFIX;
use super::{Layout, Region, Standing, Store, Trust};
use crate::Error;
use crate::cell::{Cell, Form, View};
use crate::index::{Batch, Decision, Difference, Index};
use crate::sign::Owner;

/// The type tag of counters.
const COUNTER: i64 = 5;
/// The largest type tag.
const TYPE_MAX: i64 = 6;
/// How many refused keys are named; beyond, they are only counted.
pub const REFUSED_NAMED_MAX: usize = 100;

/// What the judge says of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours stays.
    Keep,
    /// Theirs replaces ours.
    Take,
    /// Both are joined to this entry.
    Join(Cell),
    /// Theirs is refused, for this reason.
    Refuse(&'static str),
    /// Theirs comes from the future. It is left alone until that time, in milliseconds.
    Later(u64),
}

/// The outcome of taking in one owner's database.
#[derive(Clone, Debug)]
pub struct Absorbed {
    /// Our state afterwards.
    pub index: Index,
    /// How many keys changed.
    pub changed: u64,
    /// How many keys were refused.
    pub refused: u64,
    /// The first of them, with the reason.
    pub refused_keys: Vec<(Vec<u8>, &'static str)>,
    /// The earliest time at which something that was left alone comes into its own.
    pub later: Option<u64>,
}

/// Takes in what `owner` holds. `own` stays as it is if nothing is new.
///
/// # Errors
///
/// `Missing` if something that differs is not here, and what the judge returns. Malformed entries
/// are no error: they are refused, one by one.
pub fn absorb(
    own: &Index,
    owner: &Owner,
    layout: Layout,
    store: &Store,
    judge: &mut dyn FnMut(&Difference<'_>) -> Result<Verdict, Error>,
) -> Result<Absorbed, Error> {
    let mut done = Absorbed {
        index: own.clone(),
        changed: 0,
        refused: 0,
        refused_keys: Vec::new(),
        later: None,
    };
    done.index = own.merge(&store.index, &mut |it| {
        let (decision, verdict) = weigh(it, owner, layout, judge)?;
        match verdict {
            Verdict::Keep => {}
            Verdict::Take | Verdict::Join(_) => {
                done.changed += u64::from(decision != Decision::Own);
            }
            Verdict::Refuse(reason) => {
                done.refused += 1;
                if done.refused_keys.len() < REFUSED_NAMED_MAX {
                    done.refused_keys.push((it.key_bytes()?.to_vec(), reason));
                }
            }
            Verdict::Later(time) => {
                done.later = Some(done.later.map_or(time, |later| later.min(time)));
            }
        }
        Ok(decision)
    })?;
    Ok(done)
}

/// What `absorb_all` did for one owner.
pub type Report = (Owner, Result<Absorbed, Error>);

/// Takes in what every trusted owner that `wanted` agrees to holds of a database, ours excepted.
/// One owner's failure is reported and stops nobody else.
pub fn absorb_all(
    own: &Index,
    me: &Owner,
    region: &Region,
    database: &[u8],
    trust: &Trust,
    wanted: &dyn Fn(&Owner) -> bool,
    judge: &mut dyn FnMut(&Owner, &Difference<'_>) -> Result<Verdict, Error>,
) -> (Index, Vec<Report>) {
    let mut index = own.clone();
    let mut reports = Vec::new();
    for (slot, store) in region.stores(database) {
        let owner = slot.owner();
        if owner == me || trust.standing(owner) != Standing::Trusted || !wanted(owner) {
            continue;
        }
        let layout = slot.place().layout();
        let done = absorb(&index, owner, layout, store, &mut |it| judge(owner, it));
        if let Ok(done) = &done {
            index = done.index.clone();
        }
        reports.push((*owner, done));
    }
    (index, reports)
}

fn weigh(
    it: &Difference<'_>,
    owner: &Owner,
    layout: Layout,
    judge: &mut dyn FnMut(&Difference<'_>) -> Result<Verdict, Error>,
) -> Result<(Decision, Verdict), Error> {
    let keep = |verdict| Ok((Decision::Own, verdict));
    let Some(entry) = it.theirs else {
        return keep(Verdict::Keep);
    };
    if it.key_bytes()?.starts_with(RESERVED_PREFIX) {
        return keep(Verdict::Keep);
    }
    let Some(type_tag) = type_of(entry) else {
        return keep(Verdict::Refuse("the entry is malformed"));
    };
    // An entry with an extension says more than its columns; the judge cuts those.
    let cut = if type_tag == Some(COUNTER) && entry.form() == Form::Vector(4) {
        match own_columns(entry, owner, layout)? {
            Columns::All => None,
            Columns::Some(cell) => Some(cell),
            Columns::None => return keep(Verdict::Keep),
            Columns::Malformed => return keep(Verdict::Refuse("the counter is malformed")),
        }
    } else {
        None
    };
    let verdict = match &cut {
        Some(cell) => judge(&it.with_theirs(cell.view()))?,
        None => judge(it)?,
    };
    let decision = match (&verdict, cut) {
        (Verdict::Take, Some(cell)) => Decision::Value(cell),
        (Verdict::Take, None) => Decision::Theirs,
        (Verdict::Join(cell), _) if it.own == Some(cell.view()) => Decision::Own,
        (Verdict::Join(cell), _) => Decision::Value(cell.clone()),
        _ => Decision::Own,
    };
    Ok((decision, verdict))
}

/// The type of an entry, if it has the form of one; nothing inside for a deleted one.
#[expect(clippy::option_option, reason = "no entry, and an entry without a type, are two things")]
fn type_of(entry: View<'_>) -> Option<Option<i64>> {
    let Form::Vector(4..=16) = entry.form() else {
        return None;
    };
    let mut fields = entry.slots();
    let mut field = || fields.next()?.view().ok();
    let (value, type_tag, stamp, expire) = (field()?, field()?, field()?, field()?);
    if stamp.as_int()? <= 0 || !(expire.is_nil() || 0 <= expire.as_int()?) {
        return None;
    }
    match type_tag.as_int() {
        Some(tag) if (0..=TYPE_MAX).contains(&tag) => Some(Some(tag)),
        None if type_tag.is_nil() && value.is_nil() => Some(None),
        _ => None,
    }
}

/// The name of an owner's column in counters: the first half of its key, in hex, then a dot and
/// the incarnation, so that a writer that lost its state starts a column of its own.
pub fn column(owner: &Owner, incarnation: u64) -> String {
    let half: String = owner.to_string().chars().take(32).collect();
    format!("{half}.{incarnation:x}")
}

/// Whether `owner` may say what a column holds. A column that is named after no owner, as Convex
/// nodes have them, is taken in their layout alone.
pub fn may_speak(owner: &Owner, layout: Layout, column: &[u8]) -> bool {
    let named = column.len() <= 49
        && column.get(32) == Some(&b'.')
        && column[..32].iter().chain(&column[33..]).all(u8::is_ascii_hexdigit);
    if named {
        return column[..32] == owner.to_string().as_bytes()[..32];
    }
    layout == Layout::Convex
}

enum Columns {
    All,
    Some(Cell),
    None,
    Malformed,
}

/// The entry of a counter, cut down to the columns that its owner may speak for.
fn own_columns(entry: View<'_>, owner: &Owner, layout: Layout) -> Result<Columns, Error> {
    let fields = entry.elements(16)?;
    let Form::Index(_) = fields[0].form() else {
        return Ok(Columns::Malformed);
    };
    let columns = Index::from_cell(fields[0].to_cell())?;
    let mut others = Batch::new();
    for column in &columns {
        let column = column?;
        let counts = match column.value.form() {
            Form::Vector(2) => column.value.elements(2)?,
            _ => return Ok(Columns::Malformed),
        };
        if counts.iter().any(|it| it.as_int().is_none_or(|count| count < 0)) {
            return Ok(Columns::Malformed);
        }
        let name = column.key_bytes()?;
        if !may_speak(owner, layout, &name) {
            others.remove(&name);
        }
    }
    if others.count() == 0 {
        return Ok(Columns::All);
    }
    let columns = columns.update(&others)?;
    if columns.is_empty() {
        return Ok(Columns::None);
    }
    Ok(Columns::Some(Cell::write(|writer| {
        writer.short_vector(fields.len(), |writer| {
            writer.cell(columns.cell());
            fields[1..].iter().for_each(|field| writer.view(*field));
        });
    })))
}
