//! Errors with the codes that clients of MongoDB look at.

use std::fmt;

use kumiko_base::Kind;

/// A number that MongoDB's clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($number);)*

            /// The name that goes with the number.
            pub fn name(self) -> String {
                match self.0 {
                    $($number => $word.into(),)*
                    other => format!("Location{other}"),
                }
            }
        }
    };
}

codes! {
    /// Our own fault.
    INTERNAL = 1, "InternalError";
    /// A value is wrong.
    BAD_VALUE = 2, "BadValue";
    /// Text or a document cannot be parsed.
    FAILED_TO_PARSE = 9, "FailedToParse";
    /// No such user.
    USER_NOT_FOUND = 11, "UserNotFound";
    /// Not allowed.
    UNAUTHORIZED = 13, "Unauthorized";
    /// A value has the wrong type.
    TYPE_MISMATCH = 14, "TypeMismatch";
    /// Something is too long.
    INVALID_LENGTH = 16, "InvalidLength";
    /// The password or mechanism is wrong.
    AUTHENTICATION_FAILED = 18, "AuthenticationFailed";
    /// The operation cannot be done here.
    ILLEGAL_OPERATION = 20, "IllegalOperation";
    /// No such collection.
    NAMESPACE_NOT_FOUND = 26, "NamespaceNotFound";
    /// No such index.
    INDEX_NOT_FOUND = 27, "IndexNotFound";
    /// A path leads through something that is no document.
    PATH_NOT_VIABLE = 28, "PathNotViable";
    /// The change log is damaged or gone.
    CONFLICTING_UPDATE = 40, "ConflictingUpdateOperators";
    /// No such cursor.
    CURSOR_NOT_FOUND = 43, "CursorNotFound";
    /// The collection exists.
    NAMESPACE_EXISTS = 48, "NamespaceExists";
    /// The time is over.
    MAX_TIME_EXPIRED = 50, "MaxTimeMSExpired";
    /// A field has a name that cannot be stored.
    DOLLAR_PREFIXED = 52, "DollarPrefixedFieldName";
    /// An _id cannot be that.
    INVALID_ID = 53, "InvalidIdField";
    /// A field name is empty.
    EMPTY_FIELD = 56, "EmptyFieldName";
    /// No such command.
    COMMAND_NOT_FOUND = 59, "CommandNotFound";
    /// A field must not change.
    IMMUTABLE_FIELD = 66, "ImmutableField";
    /// An index cannot be made.
    CANNOT_CREATE_INDEX = 67, "CannotCreateIndex";
    /// The index is there already.
    INDEX_EXISTS = 68, "IndexAlreadyExists";
    /// The options do not fit.
    INVALID_OPTIONS = 72, "InvalidOptions";
    /// The name cannot be used.
    INVALID_NAMESPACE = 73, "InvalidNamespace";
    /// An index with other options has that key.
    INDEX_OPTIONS_CONFLICT = 85, "IndexOptionsConflict";
    /// An index of that name has another key.
    INDEX_KEY_SPECS_CONFLICT = 86, "IndexKeySpecsConflict";
    /// The operation was interrupted.
    INTERRUPTED = 11601, "Interrupted";
    /// Another writer was first.
    WRITE_CONFLICT = 112, "WriteConflict";
    /// The document is not valid for its collection.
    DOCUMENT_VALIDATION = 121, "DocumentValidationFailure";
    /// Understood and not offered.
    NOT_IMPLEMENTED = 238, "NotImplemented";
    /// The plan's collection is gone.
    QUERY_PLAN_KILLED = 175, "QueryPlanKilled";
    /// Two arrays under one index.
    PARALLEL_ARRAYS = 171, "CannotIndexParallelArrays";
    /// A write was retried with a number that is too old.
    TRANSACTION_TOO_OLD = 225, "TransactionTooOld";
    /// The transaction is not there.
    NO_SUCH_TRANSACTION = 251, "NoSuchTransaction";
    /// The transaction was committed.
    TRANSACTION_COMMITTED = 256, "TransactionCommitted";
    /// The operation cannot run in a transaction.
    NOT_IN_TRANSACTION = 263, "OperationNotSupportedInTransaction";
    /// The log no longer holds what a stream wants.
    HISTORY_LOST = 286, "ChangeStreamHistoryLost";
    /// A stage needs more memory than it may use.
    MEMORY_EXCEEDED = 292, "QueryExceededMemoryLimitNoDiskUseAllowed";
    /// The document is too large.
    OBJECT_TOO_LARGE = 10334, "BSONObjectTooLarge";
    /// A unique index holds the value.
    DUPLICATE_KEY = 11000, "DuplicateKey";
    /// No such field in the command.
    UNKNOWN_FIELD = 40415, "Location40415";
}

/// What is wrong with a query, an update or a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number for the client.
    pub code: Code,
    /// The fact.
    pub message: String,
}

impl Error {
    /// An error with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    /// A value is wrong.
    pub fn bad(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// A number that has no name.
    pub fn location(number: i32, message: impl Into<String>) -> Error {
        Error::new(Code(number), message)
    }

    /// The kind decides what other protocols answer.
    pub fn kind(&self) -> Kind {
        match self.code {
            Code::WRITE_CONFLICT => Kind::Conflict,
            Code::DUPLICATE_KEY | Code::NAMESPACE_EXISTS => Kind::Exists,
            Code::NAMESPACE_NOT_FOUND | Code::INDEX_NOT_FOUND => Kind::NotFound,
            Code::TYPE_MISMATCH => Kind::WrongType,
            Code::MEMORY_EXCEEDED | Code::OBJECT_TOO_LARGE => Kind::TooLarge,
            Code::NOT_IMPLEMENTED => Kind::Unsupported,
            Code::INTERNAL => Kind::Internal,
            _ => Kind::Invalid,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
