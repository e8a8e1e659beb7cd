//! Users, and how they prove who they are: SCRAM-SHA-256.
//!
//! ```text
//! U 11  database, user      CBOR {v, salt, rounds, stored, server, roles}
//! ```
//!
//! The password itself is never kept. Names and passwords are taken as they come: text that needs
//! the preparation of RFC 4013 is not prepared.

use hmac::{Hmac, KeyInit, Mac};
use kumiko_base::tuple::Reader;
use kumiko_base::{Category, Value, cbor};
use kumiko_document::path::field;
use kumiko_kv::{Range, Read, Scan, Txn};
use kumiko_lang::Code;
use kumiko_lang::json::{base64_parse, base64_show};
use sha2::{Digest, Sha256};

use crate::Failure;
use crate::call::Call;
use crate::server::{Connection, Server};

const MECHANISM: &str = "SCRAM-SHA-256";
/// MongoDB's own number of rounds.
const ROUNDS: u32 = 15_000;

/// A proof under way.
#[derive(Clone, Debug)]
pub struct Scram {
    user: (String, String),
    /// The client's first message without its header, a comma, and our first message.
    messages: String,
    nonce: String,
    verifier: Verifier,
    done: bool,
}

#[derive(Clone, Debug)]
struct Verifier {
    salt: Vec<u8>,
    rounds: u32,
    stored: Vec<u8>,
    server: Vec<u8>,
}

fn key(database: &str, user: &str) -> Vec<u8> {
    Category::User.key().text(database).text(user).finish()
}

/// Whether there is a user at all.
pub(crate) fn any_user(txn: &mut dyn Txn) -> Result<bool, Failure> {
    let range = Range::prefix(&Category::User.prefix());
    Ok(!txn.scan(&Scan::new(range).snapshot().rows(1))?.rows.is_empty())
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn verifier(password: &str, salt: &[u8]) -> Verifier {
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, ROUNDS, &mut salted);
    let stored = Sha256::digest(hmac(&salted, b"Client Key")).to_vec();
    let server = hmac(&salted, b"Server Key");
    Verifier { salt: salt.to_vec(), rounds: ROUNDS, stored, server }
}

fn load(
    txn: &mut dyn Txn,
    database: &str,
    user: &str,
) -> Result<Option<(Verifier, Value)>, Failure> {
    let Some(bytes) = txn.get(&key(database, user), Read::Snapshot)? else { return Ok(None) };
    let bad = || Failure::new(Code::INTERNAL, "a user's record is damaged");
    let record = cbor::decode(&bytes).map_err(|_| bad())?;
    let part = |name: &str| match field(&record, name) {
        Some(Value::Bytes(bytes)) => Ok(bytes.clone()),
        _ => Err(bad()),
    };
    let Some(Value::I32(rounds)) = field(&record, "rounds") else { return Err(bad()) };
    let verifier = Verifier {
        salt: part("salt")?,
        rounds: rounds.unsigned_abs(),
        stored: part("stored")?,
        server: part("server")?,
    };
    Ok(Some((verifier, field(&record, "roles").cloned().unwrap_or(Value::Array(Vec::new())))))
}

/// The mechanisms that a user named `database.user` can use.
pub(crate) fn mechanisms(server: &Server, user: &str) -> Result<Vec<&'static str>, Failure> {
    let (database, name) = user.split_once('.').unwrap_or(("admin", user));
    let mut txn = server.engine.begin()?;
    Ok(if load(txn.as_mut(), database, name)?.is_some() { vec![MECHANISM] } else { Vec::new() })
}

fn failed() -> Failure {
    Failure::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn payload(command: &Value) -> Result<String, Failure> {
    let bytes = match field(command, "payload") {
        Some(Value::Bytes(bytes) | Value::Binary(_, bytes)) => bytes.clone(),
        Some(Value::Text(text)) => text.clone().into_bytes(),
        _ => return Err(failed()),
    };
    String::from_utf8(bytes).map_err(|_| failed())
}

fn attribute<'a>(message: &'a str, name: &str) -> Result<&'a str, Failure> {
    let wanted = |part: &&str| part.starts_with(name) && part[name.len()..].starts_with('=');
    let part = message.split(',').find(wanted).ok_or_else(failed)?;
    Ok(&part[name.len() + 1..])
}

fn step(done: bool, payload: &str) -> Value {
    doc! {
        "conversationId" => Value::I32(1),
        "done" => Value::Bool(done),
        "payload" => Value::Bytes(payload.as_bytes().to_vec()),
    }
}

/// `saslStart`: the client says who it is; it gets salt and rounds.
pub(crate) fn start(
    server: &Server,
    connection: &mut Connection,
    command: &Value,
) -> Result<Value, Failure> {
    connection.scram = None;
    if field(command, "mechanism") != Some(&Value::Text(MECHANISM.into())) {
        let message = format!("the mechanism must be {MECHANISM}");
        return Err(Failure::new(Code::AUTHENTICATION_FAILED, message));
    }
    let database = match (field(command, "db"), field(command, "$db")) {
        (Some(Value::Text(database)), _) | (None, Some(Value::Text(database))) => database.clone(),
        _ => "admin".into(),
    };
    let message = payload(command)?;
    let bare = message.strip_prefix("n,,").ok_or_else(failed)?;
    let user = attribute(bare, "n")?.replace("=2C", ",").replace("=3D", "=");
    let theirs = attribute(bare, "r")?;
    let mut txn = server.engine.begin()?;
    let random = server.world.random();
    let verifier = match load(txn.as_mut(), &database, &user)? {
        Some((verifier, _)) => verifier,
        // A stranger gets as far as a user with a wrong password: names cannot be guessed.
        None => Verifier {
            salt: Sha256::digest(format!("{database}.{user}"))[..28].to_vec(),
            rounds: ROUNDS,
            stored: random.to_vec(),
            server: random.to_vec(),
        },
    };
    let nonce = format!("{theirs}{}", base64_show(&random[..24]));
    let answer = format!("r={nonce},s={},i={}", base64_show(&verifier.salt), verifier.rounds);
    let messages = format!("{bare},{answer}");
    connection.scram =
        Some(Scram { user: (database, user), messages, nonce, verifier, done: false });
    Ok(step(false, &answer))
}

/// `saslContinue`: the client proves that it knows the password; it gets our proof.
pub(crate) fn proceed(
    server: &Server,
    connection: &mut Connection,
    command: &Value,
) -> Result<Value, Failure> {
    let Some(scram) = connection.scram.take() else { return Err(failed()) };
    if scram.done {
        connection.user = Some(scram.user);
        return Ok(step(true, ""));
    }
    let message = payload(command)?;
    if attribute(&message, "r")? != scram.nonce {
        return Err(failed());
    }
    let (without, proof) = message.rsplit_once(",p=").ok_or_else(failed)?;
    let proof = base64_parse(proof).ok_or_else(failed)?;
    let signed = format!("{},{without}", scram.messages);
    let signature = hmac(&scram.verifier.stored, signed.as_bytes());
    if proof.len() != signature.len() {
        return Err(failed());
    }
    let client: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    let difference = Sha256::digest(&client)
        .iter()
        .zip(&scram.verifier.stored)
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    let mut txn = server.engine.begin()?;
    let known = load(txn.as_mut(), &scram.user.0, &scram.user.1)?.is_some();
    if difference != 0 || !known {
        return Err(failed());
    }
    let ours = base64_show(&hmac(&scram.verifier.server, signed.as_bytes()));
    // The user has proved itself; a client that asked for it sends one more, empty message.
    connection.user = Some(scram.user.clone());
    connection.scram = Some(Scram { done: true, ..scram });
    Ok(step(true, &format!("v={ours}")))
}

fn text_field(call: &Call<'_>, name: &str) -> Result<String, Failure> {
    match call.field(name) {
        Some(Value::Text(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(Failure::wrong_type(&format!("{}.{name}", call.name), "string")),
    }
}

/// `createUser` and `updateUser`.
pub(crate) fn put_user(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (database, user) = (call.database.clone(), text_field(call, call.name)?);
    let fresh = call.name == "createUser";
    let password = match call.field("pwd") {
        None if !fresh => None,
        _ => Some(text_field(call, "pwd")?),
    };
    let salt = call.server.world.random()[..28].to_vec();
    let made = password.map(|it| verifier(&it, &salt));
    let roles = call.field("roles").cloned();
    call.write(|work| {
        let old = load(work.txn, &database, &user)?;
        let (verifier, old_roles) = match (old, &made) {
            (Some(_), _) if fresh => {
                let message = format!("User \"{user}@{database}\" already exists");
                return Err(Failure::new(Code(51_003), message));
            }
            (None, _) if !fresh => {
                let message = format!("User {user}@{database} not found");
                return Err(Failure::new(Code::USER_NOT_FOUND, message));
            }
            (Some((_, roles)), Some(made)) => (made.clone(), roles),
            (Some((verifier, roles)), None) => (verifier, roles),
            (None, Some(made)) => (made.clone(), Value::Array(Vec::new())),
            (None, None) => return Err(Failure::bad("a user needs a password")),
        };
        let record = doc! {
            "v" => Value::I32(1),
            "salt" => Value::Bytes(verifier.salt),
            "rounds" => Value::I32(verifier.rounds as i32),
            "stored" => Value::Bytes(verifier.stored),
            "server" => Value::Bytes(verifier.server),
            "roles" => roles.clone().unwrap_or(old_roles),
        };
        let bytes = cbor::encode(&record).map_err(|it| Failure::bad(it.to_string()))?;
        Ok(work.txn.put(&key(&database, &user), &bytes)?)
    })?;
    Ok(doc! {})
}

pub(crate) fn drop_user(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (database, user) = (call.database.clone(), text_field(call, "dropUser")?);
    call.write(|work| {
        if load(work.txn, &database, &user)?.is_none() {
            let message = format!("User '{user}@{database}' not found");
            return Err(Failure::new(Code::USER_NOT_FOUND, message));
        }
        Ok(work.txn.del(&key(&database, &user))?)
    })?;
    Ok(doc! {})
}

pub(crate) fn users(call: &mut Call<'_>) -> Result<Value, Failure> {
    let wanted = call.field("usersInfo").cloned();
    let database = call.database.clone();
    let users = call.read(|txn| {
        let range = Range::prefix(&Category::User.prefix());
        let page = txn.scan(&Scan::new(range).snapshot())?;
        let mut users = Vec::new();
        for (key, _) in page.rows {
            let mut reader = Reader::new(&key);
            let parts = (reader.bytes(), reader.text(), reader.text());
            let (Ok(_), Ok(at), Ok(name)) = parts else { continue };
            let named = match &wanted {
                Some(Value::Text(it)) => *it == name && at == database,
                Some(it @ Value::Map(_)) => field(it, "user") == Some(&Value::Text(name.clone())),
                _ => at == database,
            };
            if named && let Some((_, roles)) = load(txn, &at, &name)? {
                users.push(doc! {
                    "_id" => Value::Text(format!("{at}.{name}")),
                    "user" => Value::Text(name),
                    "db" => Value::Text(at),
                    "roles" => roles,
                    "mechanisms" => Value::Array(vec![Value::Text(MECHANISM.into())]),
                });
            }
        }
        Ok(users)
    })?;
    Ok(doc! { "users" => Value::Array(users) })
}
