//! Commands by which a client gets to know the server. They need no user and no transaction.

use std::sync::atomic::Ordering;

use kumiko_base::Value;
use kumiko_document::path::field;
use kumiko_lang::Code;
use kumiko_wire::mongo::{DOCUMENT_BYTES_MAX, MESSAGE_BYTES_MAX};

use crate::server::{Connection, Server};
use crate::{Failure, auth};

/// The version whose behaviour we follow.
const VERSION: [i32; 4] = [6, 0, 5, 0];
/// The wire version of that.
const WIRE_VERSION: i32 = 17;

/// Whether a command may be given before the client says who it is.
pub(crate) fn is_open(name: &str) -> bool {
    matches!(
        name,
        "hello"
            | "isMaster"
            | "ismaster"
            | "ping"
            | "buildInfo"
            | "buildinfo"
            | "whatsmyuri"
            | "connectionStatus"
            | "getLog"
            | "endSessions"
    )
}

/// Answers the command if it is one of these.
pub(crate) fn run(
    server: &Server,
    connection: &mut Connection,
    name: &str,
    command: &Value,
) -> Option<Result<Value, Failure>> {
    Some(Ok(match name {
        "hello" | "isMaster" | "ismaster" => return Some(hello(server, connection, command)),
        "ping" => doc! {},
        "buildInfo" | "buildinfo" => build_info(),
        "whatsmyuri" => doc! { "you" => text("127.0.0.1:0") },
        "getParameter" => return Some(parameters(command)),
        "setParameter" => doc! { "was" => Value::Null },
        "getLog" => log(command),
        "getCmdLineOpts" => doc! {
            "argv" => Value::Array(vec![text("kumiko")]),
            "parsed" => doc! {},
        },
        "connectionStatus" => status(connection),
        "hostInfo" => doc! {
            "system" => doc! { "currentTime" => Value::DateTime(server.world.now_ms()) },
            "os" => doc! { "type" => text("Linux") },
            "extra" => doc! {},
        },
        "serverStatus" => server_status(server),
        "listCommands" => list_commands(),
        "logout" => {
            connection.user = None;
            doc! {}
        }
        _ => return None,
    }))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn hello(server: &Server, connection: &mut Connection, command: &Value) -> Result<Value, Failure> {
    let mut fields = vec![
        ("helloOk".to_string(), Value::Bool(true)),
        ("ismaster".into(), Value::Bool(true)),
        ("isWritablePrimary".into(), Value::Bool(true)),
    ];
    match &server.options.replica_set {
        None => fields.push(("msg".into(), text("isdbgrid"))),
        Some(name) => {
            let address = text(&server.options.address);
            fields.push(("setName".into(), text(name)));
            fields.push(("setVersion".into(), Value::I32(1)));
            fields.push(("secondary".into(), Value::Bool(false)));
            fields.push(("hosts".into(), Value::Array(vec![address.clone()])));
            fields.push(("primary".into(), address.clone()));
            fields.push(("me".into(), address));
        }
    }
    fields.extend([
        ("maxBsonObjectSize".to_string(), Value::I32(DOCUMENT_BYTES_MAX as i32)),
        ("maxMessageSizeBytes".into(), Value::I32(MESSAGE_BYTES_MAX as i32)),
        ("maxWriteBatchSize".into(), Value::I32(100_000)),
        ("localTime".into(), Value::DateTime(server.world.now_ms())),
        ("logicalSessionTimeoutMinutes".into(), Value::I32(30)),
        ("connectionId".into(), Value::I32(connection.id)),
        ("minWireVersion".into(), Value::I32(0)),
        ("maxWireVersion".into(), Value::I32(WIRE_VERSION)),
        ("readOnly".into(), Value::Bool(false)),
    ]);
    if let Some(Value::Text(user)) = field(command, "saslSupportedMechs") {
        let mechanisms = auth::mechanisms(server, user)?;
        let mechanisms = mechanisms.iter().map(|it| text(it)).collect();
        fields.push(("saslSupportedMechs".into(), Value::Array(mechanisms)));
    }
    if let Some(speculative) = field(command, "speculativeAuthenticate") {
        // A step that fails here is tried again by the client, and told then.
        if let Ok(answer) = auth::start(server, connection, speculative) {
            fields.push(("speculativeAuthenticate".into(), answer));
        }
    }
    Ok(Value::Map(fields))
}

fn version() -> String {
    let [a, b, c, _] = VERSION;
    format!("{a}.{b}.{c}")
}

fn build_info() -> Value {
    doc! {
        "version" => Value::Text(version()),
        "gitVersion" => text("kumiko"),
        "modules" => Value::Array(Vec::new()),
        "sysInfo" => text("kumiko"),
        "versionArray" => Value::Array(VERSION.iter().map(|it| Value::I32(*it)).collect()),
        "bits" => Value::I32(64),
        "debug" => Value::Bool(false),
        "maxBsonObjectSize" => Value::I32(DOCUMENT_BYTES_MAX as i32),
        "storageEngines" => Value::Array(vec![text("kumiko")]),
    }
}

fn parameters(command: &Value) -> Result<Value, Failure> {
    let compatibility = || doc! { "version" => text("6.0") };
    let all = field(command, "getParameter") == Some(&text("*"));
    let asked = field(command, "featureCompatibilityVersion").is_some();
    if !all && !asked {
        return Err(Failure::new(Code::INVALID_OPTIONS, "no option found to get"));
    }
    let mut fields = vec![("featureCompatibilityVersion".to_string(), compatibility())];
    if all {
        fields.push(("enableTestCommands".into(), Value::Bool(false)));
        fields.push(("requireApiVersion".into(), Value::Bool(false)));
    }
    Ok(Value::Map(fields))
}

fn log(command: &Value) -> Value {
    if field(command, "getLog") == Some(&text("*")) {
        return doc! { "names" => Value::Array(vec![text("global"), text("startupWarnings")]) };
    }
    doc! { "totalLinesWritten" => Value::I32(0), "log" => Value::Array(Vec::new()) }
}

fn status(connection: &Connection) -> Value {
    let users = connection.user.iter().map(|(database, user)| {
        doc! { "user" => Value::Text(user.clone()), "db" => Value::Text(database.clone()) }
    });
    doc! { "authInfo" => doc! {
        "authenticatedUsers" => Value::Array(users.collect()),
        "authenticatedUserRoles" => Value::Array(Vec::new()),
    } }
}

fn server_status(server: &Server) -> Value {
    let now_ms = server.world.now_ms();
    let uptime = (now_ms - server.started_ms) / 1000;
    doc! {
        "host" => Value::Text(server.options.address.clone()),
        "version" => Value::Text(version()),
        "process" => text(if server.options.replica_set.is_some() { "mongod" } else { "mongos" }),
        "pid" => Value::I64(1),
        "uptime" => Value::F64(uptime as f64),
        "uptimeMillis" => Value::I64(now_ms - server.started_ms),
        "localTime" => Value::DateTime(now_ms),
        "connections" => doc! { "current" => Value::I32(1), "available" => Value::I32(1) },
        "metrics" => doc! {
            "commands" => Value::I64(server.commands.load(Ordering::Relaxed)),
            "cursor" => doc! { "open" => doc! {
                "total" => Value::I64(server.cursors.count() as i64),
            } },
        },
        "transactions" => doc! { "currentOpen" => Value::I64(server.sessions.count() as i64) },
        "storageEngine" => doc! { "name" => text(server.engine.name()) },
    }
}

/// Every command there is.
pub(crate) const COMMANDS: &[&str] = &[
    "abortTransaction",
    "aggregate",
    "buildInfo",
    "collMod",
    "collStats",
    "commitTransaction",
    "connectionStatus",
    "count",
    "create",
    "createIndexes",
    "createUser",
    "currentOp",
    "dbStats",
    "delete",
    "distinct",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "dropUser",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getCmdLineOpts",
    "getLog",
    "getMore",
    "getParameter",
    "hello",
    "hostInfo",
    "insert",
    "isMaster",
    "killAllSessions",
    "killCursors",
    "killSessions",
    "listCollections",
    "listCommands",
    "listDatabases",
    "listIndexes",
    "logout",
    "ping",
    "refreshSessions",
    "renameCollection",
    "saslContinue",
    "saslStart",
    "serverStatus",
    "setParameter",
    "startSession",
    "update",
    "updateUser",
    "usersInfo",
    "validate",
    "whatsmyuri",
];

fn list_commands() -> Value {
    let commands = COMMANDS.iter().map(|name| ((*name).to_string(), doc! { "help" => text("") }));
    doc! { "commands" => Value::Map(commands.collect()) }
}
