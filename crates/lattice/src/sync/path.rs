//! Paths into the root: reading what is there, and placing what came.

use crate::Index;
use crate::cell::{Cell, Form, key_bytes};
use crate::replica::region::kv_of;

/// The most elements of a vector that a path may point into.
const ELEMENTS_MAX: usize = 1_000;

/// The value at `path` below `value`, if there is one.
pub(super) fn find(value: &Cell, path: &[Cell]) -> Option<Cell> {
    let Some((key, rest)) = path.split_first() else {
        return Some(value.clone());
    };
    let view = value.view();
    let next = match view.form() {
        Form::Index(_) => {
            let index = Index::from_cell(value.clone()).ok()?;
            let bytes = key_bytes(key.view()).ok()??;
            index.get(&bytes).ok()??.to_cell()
        }
        Form::Map(_) => view.map_get(&key.id()).ok()??.to_cell(),
        Form::Signed if key.view().as_keyword() == Some(b"value") => {
            view.signed_parts()?.2.view().ok()?.to_cell()
        }
        Form::Vector(_) => {
            let at = usize::try_from(key.view().as_int()?).ok()?;
            view.elements(ELEMENTS_MAX).ok()?.get(at)?.to_cell()
        }
        _ => return None,
    };
    find(&next, rest)
}

/// The value of `:kv` that a value at `path` stands for. Paths end above a signature: nothing that
/// came over the network is ever put below one.
pub(super) fn place(path: &[Cell], value: Cell) -> Result<Option<Cell>, &'static str> {
    let [kv, rest @ ..] = path else {
        return kv_of(&value).map_err(|_| "the root is not an index");
    };
    let is_kv = key_bytes(kv.view()).is_ok_and(|key| key.as_deref() == Some(b"kv"));
    if !is_kv || 2 < rest.len() || rest.iter().any(|key| key.view().as_keyword().is_some()) {
        return Err("no value is taken at this path");
    }
    let wrap = |value: Cell, key: &Cell| Cell::map([(key.clone(), value)]);
    Ok(Some(rest.iter().rev().fold(value, wrap)))
}
