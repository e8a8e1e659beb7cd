//! One command under way: its fields, its session and its transaction.

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_document::{Notes, Work};
use kumiko_kv::{Read, Retry, Txn};
use kumiko_lang::{Code, types};

use crate::sessions::{OPEN_MAX, Open, id_of};
use crate::{Failure, Server, repeat};

/// One command under way.
pub struct Call<'a> {
    pub(crate) server: &'a Server,
    /// The command's name.
    pub name: &'a str,
    /// The whole command.
    pub command: &'a Value,
    /// The database it is about.
    pub database: String,
    pub(crate) session: Option<Vec<u8>>,
    /// The number of a write that may be repeated, or of the transaction.
    pub(crate) number: Option<i64>,
    /// Whether the command is part of a transaction.
    pub(crate) in_transaction: bool,
    open: Option<Open>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        server: &'a Server,
        name: &'a str,
        command: &'a Value,
    ) -> Result<Call<'a>, Failure> {
        let database = match field(command, "$db") {
            Some(Value::Text(database)) => database.clone(),
            _ => "admin".into(),
        };
        let session = field(command, "lsid").and_then(id_of);
        let number = field(command, "txnNumber").and_then(types::integer);
        let in_transaction = field(command, "autocommit") == Some(&Value::Bool(false));
        let mut call =
            Call { server, name, command, database, session, number, in_transaction, open: None };
        if in_transaction {
            call.open_transaction()?;
        }
        Ok(call)
    }

    fn open_transaction(&mut self) -> Result<(), Failure> {
        let (Some(session), Some(number)) = (&self.session, self.number) else {
            let message = "a transaction needs a session and a number";
            return Err(Failure::new(Code::INVALID_OPTIONS, message));
        };
        let now_ms = self.server.world.now_ms();
        let before = self.server.sessions.take(session);
        if field(self.command, "startTransaction") == Some(&Value::Bool(true)) {
            if before.as_ref().is_some_and(|it| number < it.number) {
                let message = format!("transaction {number} is older than the session's newest");
                return Err(Failure::new(Code::TRANSACTION_TOO_OLD, message));
            }
            if OPEN_MAX <= self.server.sessions.count() {
                let message = format!("there are {OPEN_MAX} open transactions already");
                return Err(Failure::new(Code::WRITE_CONFLICT, message));
            }
            let mut notes = Notes::default();
            notes.note = Some(self.session_note());
            let txn = self.server.engine.begin()?;
            self.open = Some(Open { number, txn, notes, used_ms: now_ms });
            return Ok(());
        }
        match before {
            Some(open) if open.number == number => {
                self.open = Some(Open { used_ms: now_ms, ..open });
                Ok(())
            }
            other => {
                if let Some(other) = other {
                    self.server.sessions.put(session, other);
                }
                if matches!(self.name, "commitTransaction" | "abortTransaction") {
                    return Ok(());
                }
                Err(self.no_transaction())
            }
        }
    }

    fn no_transaction(&self) -> Failure {
        let number = self.number.unwrap_or(0);
        let message = format!(
            "Given transaction number {number} does not match any in-progress transactions."
        );
        Failure::new(Code::NO_SUCH_TRANSACTION, message)
    }

    /// What changes say of their writer.
    fn session_note(&self) -> Value {
        doc! {
            "lsid" => field(self.command, "lsid").cloned().unwrap_or(Value::Null),
            "txnNumber" => Value::I64(self.number.unwrap_or(0)),
        }
    }

    /// Ends the command: an open transaction goes on if the command succeeded.
    pub(crate) fn close(mut self, good: bool) {
        if let (true, Some(open), Some(session)) = (good, self.open.take(), &self.session) {
            self.server.sessions.put(session, open);
        }
    }

    pub(crate) fn commit(&mut self) -> Result<Value, Failure> {
        let (Some(session), Some(number)) = (self.session.clone(), self.number) else {
            return Err(self.no_transaction());
        };
        let Some(mut open) = self.open.take() else {
            // The commit may have happened, with its answer lost.
            let mut txn = self.server.engine.begin()?;
            return match repeat::find(txn.as_mut(), &session, number, repeat::COMMIT) {
                Ok(Some(_)) => Ok(doc! {}),
                _ => Err(self.no_transaction()),
            };
        };
        if 0 < open.txn.size() {
            let now_ms = self.server.world.now_ms();
            let done = (repeat::COMMIT, repeat::COMMIT);
            repeat::keep(open.txn.as_mut(), &session, number, done, &Value::Null, now_ms)?;
        }
        open.txn.commit()?;
        Ok(doc! {})
    }

    pub(crate) fn abort(&mut self) -> Result<Value, Failure> {
        match self.open.take() {
            Some(_) => Ok(doc! {}),
            None => Err(self.no_transaction()),
        }
    }

    /// Runs `body` in the open transaction, or in one of its own that is repeated after a conflict.
    pub(crate) fn write<T>(
        &mut self,
        mut body: impl FnMut(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let now_ms = self.server.world.now_ms();
        if let Some(open) = &mut self.open {
            return body(&mut Work::new(open.txn.as_mut(), now_ms, &mut open.notes));
        }
        kumiko_kv::run(self.server.engine.as_ref(), Retry::default(), |txn: &mut dyn Txn| {
            let mut notes = Notes::default();
            body(&mut Work::new(txn, now_ms, &mut notes))
        })
    }

    /// Runs `body` in the open transaction, or on the newest state.
    pub(crate) fn read<T>(
        &mut self,
        body: impl FnOnce(&mut dyn Txn) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(open) = &mut self.open {
            return body(open.txn.as_mut());
        }
        body(self.server.engine.begin()?.as_mut())
    }

    /// How reads take part in conflicts: only a transaction's do.
    pub(crate) fn mode(&self) -> Read {
        if self.in_transaction { Read::Serializable } else { Read::Snapshot }
    }

    /// The session and number of a write that may be repeated.
    pub(crate) fn repeatable(&self) -> Option<(Vec<u8>, i64)> {
        if self.in_transaction {
            return None;
        }
        Some((self.session.clone()?, self.number?))
    }

    /// A field of the command.
    pub(crate) fn field(&self, name: &str) -> Option<&'a Value> {
        field(self.command, name).filter(|it| **it != Value::Null)
    }

    /// The text under the command's own name: its collection.
    pub(crate) fn collection(&self) -> Result<String, Failure> {
        match self.field(self.name) {
            Some(Value::Text(name)) => Ok(name.clone()),
            _ => Err(Failure::new(
                Code::INVALID_NAMESPACE,
                format!("collection name has invalid type for {}", self.name),
            )),
        }
    }

    pub(crate) fn namespace(&self, collection: &str) -> String {
        format!("{}.{collection}", self.database)
    }

    /// A field that must be a map, or an empty one.
    pub(crate) fn map(&self, name: &str) -> Result<Value, Failure> {
        match self.field(name) {
            None => Ok(Value::Map(Vec::new())),
            Some(map @ Value::Map(_)) => Ok(map.clone()),
            Some(_) => Err(Failure::wrong_type(&format!("{}.{name}", self.name), "object")),
        }
    }

    /// A field that must be a list, or an empty one.
    pub(crate) fn list(&self, name: &str) -> Result<&'a [Value], Failure> {
        match self.field(name) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(Failure::wrong_type(&format!("{}.{name}", self.name), "array")),
        }
    }

    /// A field that must be a whole number.
    pub(crate) fn number_field(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.field(name) {
            None => Ok(None),
            Some(value) => match types::integer(value).filter(|_| types::is_number(value)) {
                Some(number) => Ok(Some(number)),
                None => Err(Failure::wrong_type(&format!("{}.{name}", self.name), "long")),
            },
        }
    }

    pub(crate) fn truth(&self, name: &str) -> bool {
        types::truth(self.field(name))
    }
}

/// Refuses what we would otherwise silently ignore.
pub(crate) fn check_options(of: &Value) -> Result<(), Failure> {
    if let Some(collation) = field(of, "collation")
        && !matches!(field(collation, "locale"), Some(Value::Text(it)) if it == "simple")
        && *collation != Value::Null
        && *collation != Value::Map(Vec::new())
    {
        let message = "collations other than simple are not offered by this server";
        return Err(Failure::new(Code::NOT_IMPLEMENTED, message));
    }
    Ok(())
}

/// The variables of `let`.
pub(crate) fn variables(of: &Value) -> Result<Vec<(String, Value)>, Failure> {
    let Some(Value::Map(fields)) = field(of, "let") else { return Ok(Vec::new()) };
    let nothing = Value::Map(Vec::new());
    let mut variables = Vec::new();
    for (name, value) in fields {
        let value = kumiko_lang::Expr::parse(value)?
            .eval(&kumiko_lang::Context::new(&nothing))?
            .unwrap_or(Value::Null);
        variables.push((name.clone(), value));
    }
    Ok(variables)
}
