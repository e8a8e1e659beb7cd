//! Why a command failed, as clients are told.

use kumiko_base::{Kind, Value};
use kumiko_document::Error as Store;
use kumiko_lang::json::{Style, show};
use kumiko_lang::{Code, Error as Language};

/// Why a command failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The number for the client.
    pub code: Code,
    /// The fact.
    pub message: String,
    /// What a retry loop may do about it.
    pub kind: Kind,
    /// Further fields of the answer.
    pub extra: Vec<(String, Value)>,
}

impl Failure {
    /// A failure with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        let kind = if code == Code::WRITE_CONFLICT { Kind::Conflict } else { Kind::Invalid };
        Failure { code, message: message.into(), kind, extra: Vec::new() }
    }

    /// A value is wrong.
    pub fn bad(message: impl Into<String>) -> Failure {
        Failure::new(Code::BAD_VALUE, message)
    }

    /// A field has the wrong type.
    pub fn wrong_type(field: &str, wanted: &str) -> Failure {
        let message = format!("BSON field '{field}' is the wrong type, expected type '{wanted}'");
        Failure::new(Code::TYPE_MISMATCH, message)
    }

    /// Names the collection in a message about a key that is there already.
    pub fn in_collection(mut self, namespace: &str) -> Failure {
        if self.code == Code::DUPLICATE_KEY {
            self.message =
                self.message.replace("collection: ?", &format!("collection: {namespace}"));
        }
        self
    }

    /// The failure of a whole command.
    pub fn to_answer(&self, labels: &[&str]) -> Value {
        let mut fields = vec![
            ("ok".to_string(), Value::F64(0.0)),
            ("errmsg".into(), Value::Text(self.message.clone())),
            ("code".into(), Value::I32(self.code.0)),
            ("codeName".into(), Value::Text(self.code.name())),
        ];
        fields.extend(self.extra.iter().cloned());
        if !labels.is_empty() {
            let labels = labels.iter().map(|it| Value::Text((*it).into())).collect();
            fields.push(("errorLabels".into(), Value::Array(labels)));
        }
        Value::Map(fields)
    }

    /// The failure of one statement of a write.
    pub fn to_write_error(&self, index: usize) -> Value {
        let mut fields = vec![
            ("index".to_string(), Value::I32(index as i32)),
            ("code".into(), Value::I32(self.code.0)),
        ];
        fields.extend(self.extra.iter().cloned());
        fields.push(("errmsg".into(), Value::Text(self.message.clone())));
        Value::Map(fields)
    }
}

impl kumiko_kv::retry::AsKind for Failure {
    fn as_kind(&self) -> Kind {
        self.kind
    }
}

impl From<Language> for Failure {
    fn from(error: Language) -> Failure {
        let kind = error.kind();
        Failure { code: error.code, message: error.message, kind, extra: Vec::new() }
    }
}

impl From<kumiko_kv::Error> for Failure {
    fn from(error: kumiko_kv::Error) -> Failure {
        Failure::from(Store::from(error))
    }
}

impl From<Store> for Failure {
    fn from(error: Store) -> Failure {
        let kind = error.kind();
        let code = match (&error, kind) {
            (Store::Duplicate { .. }, _) => Code::DUPLICATE_KEY,
            (Store::ParallelArrays, _) => Code::PARALLEL_ARRAYS,
            (Store::HistoryLost, _) => Code::HISTORY_LOST,
            (Store::ReadOnly(_), _) => Code::ILLEGAL_OPERATION,
            (Store::TooLarge { what: "document", .. }, _) => Code::OBJECT_TOO_LARGE,
            (_, Kind::NotFound) => Code::NAMESPACE_NOT_FOUND,
            (_, Kind::Exists) => Code::NAMESPACE_EXISTS,
            (_, Kind::Conflict) => Code::WRITE_CONFLICT,
            (_, Kind::Invalid) => Code::BAD_VALUE,
            (_, Kind::TooLarge) => Code(17_280),
            _ => Code::INTERNAL,
        };
        let mut message = error.to_string();
        let mut extra = Vec::new();
        if kind == Kind::Conflict {
            message = "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.".into();
        }
        if let Store::Duplicate { index, key: key @ Value::Map(fields) } = &error {
            let shown = show(key, Style::Relaxed).replace("\":", ": ").replace("{\"", "{ ");
            let shown = shown.replace(",\"", ", ").replace('}', " }");
            message =
                format!("E11000 duplicate key error collection: ? index: {index} dup key: {shown}");
            let pattern = fields.iter().map(|(name, _)| (name.clone(), Value::I32(1)));
            extra.push(("keyPattern".into(), Value::Map(pattern.collect())));
            extra.push(("keyValue".into(), key.clone()));
        }
        Failure { code, message, kind, extra }
    }
}
