//! Counting that adds up: one column per writer, and resets that take away only what they saw.
//!
//! A writer changes its own column alone, and only upwards. A delete or an overwrite notes, for
//! every column, how far it had come (`resets`). The value is what the columns hold beyond their
//! resets. So an increment that the deleter had not seen survives the delete, two deletes of the
//! same count are one, and a column never goes back.

use super::record::{Column, Record};
use super::{Entry, Stamp};
use crate::Error;
use crate::index::{Batch, Index};

/// The longest name of a column.
pub(super) const NAME: usize = 255;

fn column_in(index: &Index, name: &[u8]) -> Result<Column, Error> {
    match index.get(name)? {
        Some(view) => Column::read(name, view),
        None => Ok(Column::default()),
    }
}

impl Entry {
    /// The sum of all counts beyond their resets; nothing if there is none.
    pub(super) fn count(&self) -> Result<Option<i128>, Error> {
        let mut sum = None;
        for it in &self.columns {
            let it = it?;
            let key = it.key_bytes()?;
            let column = Column::read(&key, it.value)?;
            let reset = column_in(&self.resets, &key)?;
            let up = column.up - reset.up.min(column.up);
            let down = column.down - reset.down.min(column.down);
            if (up, down) != (0, 0) {
                sum = Some(sum.unwrap_or(0) + i128::from(up) - i128::from(down));
            }
        }
        Ok(sum)
    }

    /// Adds to a writer's column; false if the column has no room for it.
    pub(super) fn count_by(&mut self, name: &[u8], by: i64, stamp: Stamp) -> Result<bool, Error> {
        let mut column = column_in(&self.columns, name)?;
        let side = if by < 0 { &mut column.down } else { &mut column.up };
        let Some(sum) = i64::try_from(by.unsigned_abs()).ok().and_then(|it| side.checked_add(it))
        else {
            return Ok(false);
        };
        *side = sum;
        let mut batch = Batch::new();
        batch.put_string(name, |writer| column.write(writer));
        self.columns = self.columns.update(&batch)?;
        self.counted = stamp;
        self.newest = self.newest.max(stamp);
        Ok(true)
    }

    /// Notes that everything counted so far is gone.
    pub(super) fn reset_counts(&mut self) -> Result<(), Error> {
        let mut batch = Batch::new();
        for it in &self.columns {
            let it = it?;
            let key = it.key_bytes()?;
            let seen = Column::read(&key, it.value)?.join(column_in(&self.resets, &key)?);
            if seen != Column::default() {
                batch.put(it.key, |writer| seen.write(writer))?;
            }
        }
        self.resets = self.resets.update(&batch)?;
        Ok(())
    }

    /// All columns with their resets.
    pub(crate) fn column_list(&self) -> Result<Vec<crate::live::Column>, Error> {
        let mut all = Vec::new();
        for it in &self.columns {
            let it = it?;
            let name = it.key_bytes()?.into_owned();
            let column = Column::read(&name, it.value)?;
            let reset = column_in(&self.resets, &name)?;
            all.push(crate::live::Column {
                name,
                counted: (column.up, column.down),
                reset: (reset.up, reset.down),
            });
        }
        Ok(all)
    }

    /// Leaves only the columns that `may_speak` agrees to. What a peer says of other writers'
    /// counts is hearsay; they say it themselves.
    pub(crate) fn keep_columns(&mut self, may_speak: &dyn Fn(&[u8]) -> bool) -> Result<(), Error> {
        let mut batch = Batch::new();
        for it in &self.columns {
            let key = it?.key_bytes()?;
            if !may_speak(&key) {
                batch.remove(&key);
            }
        }
        self.columns = self.columns.update(&batch)?;
        Ok(())
    }
}
