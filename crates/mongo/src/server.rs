//! The server: who is connected, and which command goes where.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_kv::Engine;
use kumiko_lang::Code;
use kumiko_wire::mongo::Request;

use crate::auth::{self, Scram};
use crate::call::Call;
use crate::cursors::Cursors;
use crate::sessions::Sessions;
use crate::{Failure, admin, hello, indexes, read, stream, update, write};

/// What the server needs of the world.
pub trait World: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
    /// Random bytes, fit for keys.
    fn random(&self) -> [u8; 32];
}

/// How the server presents itself.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address that clients reach it by.
    pub address: String,
    /// It says it is the one member of this replica set, for clients that insist on one.
    pub replica_set: Option<String>,
}

/// Answers commands.
pub struct Server {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) options: Options,
    pub(crate) cursors: Cursors,
    pub(crate) sessions: Sessions,
    pub(crate) started_ms: i64,
    pub(crate) commands: AtomicI64,
    connections: AtomicI32,
}

/// One client.
#[derive(Debug, Default)]
pub struct Connection {
    pub(crate) id: i32,
    /// Database and name of the user, once it proved itself.
    pub(crate) user: Option<(String, String)>,
    pub(crate) scram: Option<Scram>,
}

impl Server {
    /// A server on `engine`.
    pub fn new(engine: Arc<dyn Engine>, world: Arc<dyn World>, options: Options) -> Server {
        let started_ms = world.now_ms();
        Server {
            engine,
            world,
            options,
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            started_ms,
            commands: AtomicI64::new(0),
            connections: AtomicI32::new(0),
        }
    }

    /// A new client.
    pub fn connect(&self) -> Connection {
        let id = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Connection { id, ..Connection::default() }
    }

    /// A new random number above zero.
    pub(crate) fn random_i64(&self) -> i64 {
        let bytes = self.world.random();
        let number = i64::from_le_bytes(bytes[..8].try_into().expect("eight bytes of thirty-two"));
        (number & i64::MAX).max(1)
    }

    /// A new random id of 16 bytes.
    pub(crate) fn uuid(&self) -> [u8; 16] {
        let bytes = self.world.random();
        let mut uuid: [u8; 16] = bytes[..16].try_into().expect("sixteen bytes of thirty-two");
        uuid[6] = (uuid[6] & 0x0F) | 0x40;
        uuid[8] = (uuid[8] & 0x3F) | 0x80;
        uuid
    }

    /// A new object id: the time, then random bytes.
    pub(crate) fn object_id(&self) -> Value {
        let mut id = [0; 12];
        let seconds = (self.world.now_ms() / 1000) as u32;
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..].copy_from_slice(&self.world.random()[..8]);
        Value::ObjectId(id)
    }

    /// Forgets cursors, sessions and transactions that nobody has used for long. Call it now and
    /// then.
    pub fn tidy(&self) {
        let now_ms = self.world.now_ms();
        self.cursors.tidy(now_ms);
        self.sessions.tidy(now_ms);
    }

    /// Answers one command; `None` if the client wants no answer.
    pub fn run(&self, connection: &mut Connection, request: &Request) -> Option<Value> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let answer = match self.dispatch(connection, &request.command) {
            Ok(Value::Map(mut fields)) => {
                if !fields.iter().any(|(name, _)| name == "ok") {
                    fields.push(("ok".into(), Value::F64(1.0)));
                }
                Value::Map(fields)
            }
            Ok(other) => other,
            Err((failure, labels)) => failure.to_answer(&labels),
        };
        (!request.silent).then_some(answer)
    }

    fn dispatch(
        &self,
        connection: &mut Connection,
        command: &Value,
    ) -> Result<Value, (Failure, Vec<&'static str>)> {
        let plain = |failure: Failure| (failure, Vec::new());
        let name = match command {
            Value::Map(fields) => fields.first().map(|(name, _)| name.as_str()),
            _ => None,
        };
        let Some(name) = name else {
            return Err(plain(Failure::bad("a command must have a name")));
        };
        self.check_user(connection, name).map_err(plain)?;
        if let Some(answer) = hello::run(self, connection, name, command) {
            return answer.map_err(plain);
        }
        let mut call = Call::new(self, name, command).map_err(plain)?;
        let result = self.run_call(connection, &mut call);
        // A commit takes the transaction out before it can fail.
        let in_transaction = call.in_transaction;
        call.close(result.is_ok());
        result.map_err(|failure| {
            let transient = match failure.code {
                Code::WRITE_CONFLICT => in_transaction,
                Code::NO_SUCH_TRANSACTION => true,
                _ => false,
            };
            let unknown = in_transaction && failure.kind == kumiko_base::Kind::Unknown;
            let labels = match (transient, unknown) {
                (true, _) => vec!["TransientTransactionError"],
                (_, true) => vec!["UnknownTransactionCommitResult"],
                _ => Vec::new(),
            };
            (failure, labels)
        })
    }

    /// Once there are users, a client must be one of them.
    fn check_user(&self, connection: &Connection, name: &str) -> Result<(), Failure> {
        let open = hello::is_open(name) || matches!(name, "saslStart" | "saslContinue" | "logout");
        if connection.user.is_some() || open {
            return Ok(());
        }
        let mut txn = self.engine.begin()?;
        if auth::any_user(txn.as_mut())? {
            let message = format!("command {name} requires authentication");
            return Err(Failure::new(Code::UNAUTHORIZED, message));
        }
        Ok(())
    }

    fn run_call(&self, connection: &mut Connection, call: &mut Call<'_>) -> Result<Value, Failure> {
        match call.name {
            "insert" => write::insert(call),
            "update" => update::update(call),
            "delete" => write::delete(call),
            "findAndModify" | "findandmodify" => update::find_and_modify(call),
            "find" => read::find(call),
            "getMore" => read::get_more(call),
            "killCursors" => read::kill_cursors(call),
            "count" => read::count(call),
            "distinct" => read::distinct(call),
            "aggregate" if stream::is_wanted(call) => stream::open(call),
            "aggregate" => read::aggregate(call),
            "explain" => read::explain(call),
            "commitTransaction" => call.commit(),
            "abortTransaction" => call.abort(),
            "create" => admin::create(call),
            "drop" => admin::drop(call),
            "dropDatabase" => admin::drop_database(call),
            "renameCollection" => admin::rename(call),
            "listDatabases" => admin::list_databases(call),
            "listCollections" => admin::list_collections(call),
            "collStats" | "collstats" => admin::collection_stats(call),
            "dbStats" | "dbstats" => admin::database_stats(call),
            "collMod" => admin::modify(call),
            "validate" => admin::validate(call),
            "currentOp" => admin::current_operations(call),
            "createIndexes" => indexes::create(call),
            "listIndexes" => indexes::list(call),
            "dropIndexes" | "deleteIndexes" => indexes::drop(call),
            "saslStart" => auth::start(self, connection, call.command),
            "saslContinue" => auth::proceed(self, connection, call.command),
            "createUser" | "updateUser" => auth::put_user(call),
            "dropUser" => auth::drop_user(call),
            "usersInfo" => auth::users(call),
            "endSessions" | "killSessions" => {
                self.sessions.end(field(call.command, call.name));
                Ok(doc! {})
            }
            "startSession" => {
                let id = doc! { "id" => Value::Uuid(self.uuid()) };
                Ok(doc! { "id" => id, "timeoutMinutes" => Value::I32(30) })
            }
            "refreshSessions" | "killAllSessions" => Ok(doc! {}),
            other => {
                let message = format!("no such command: '{other}'");
                Err(Failure::new(Code::COMMAND_NOT_FOUND, message))
            }
        }
    }
}
