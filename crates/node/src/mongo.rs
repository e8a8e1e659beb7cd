//! The MongoDB front: sockets and threads around the commands of `kumiko_mongo`.
//!
//! One thread per connection, up to a limit: a command may wait for a commit or for a change, and a
//! thread that waits costs little. One more thread does what is due now and then: forgotten cursors,
//! expired documents, the change log, index builds that a stop interrupted.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kumiko_document::{Error as StoreError, Notes, State, Work, catalog, index};
use kumiko_kv::{Engine, Retry, Txn};
use kumiko_mongo::{Options, Server, World};
use kumiko_wire::mongo as wire;

use crate::{Error, Service, clock, random};

/// The most connections at once.
pub const CONNECTIONS_MAX: usize = 4_000;
/// The stack of a connection's thread: documents nest a hundred levels, pipelines a few.
const STACK_BYTES: usize = 4 * 1024 * 1024;
/// How long a client may take to read an answer.
const WRITE_TIME_MAX: Duration = Duration::from_secs(60);
/// How often the second thread looks around.
const TURN: Duration = Duration::from_millis(500);
/// In which turns expired documents and old changes go.
const TURNS_TO_EXPIRE: u64 = 20;
/// How many documents one step of a background job takes.
const STEP_DOCUMENTS: usize = 200;

struct Real;

impl World for Real {
    fn now_ms(&self) -> i64 {
        clock::now_ms()
    }

    fn random(&self) -> [u8; 32] {
        random::bytes().expect("the system gives random bytes")
    }
}

/// The open connections, so that a stop can end them.
#[derive(Default)]
struct Connections {
    streams: Mutex<HashMap<usize, TcpStream>>,
    next: AtomicUsize,
    stopping: AtomicBool,
}

impl Connections {
    fn add(&self, stream: &TcpStream) -> Result<Option<usize>, Error> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if CONNECTIONS_MAX <= streams.len() {
            return Ok(None);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        streams.insert(id, stream.try_clone()?);
        Ok(Some(id))
    }

    fn remove(&self, id: usize) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn end_all(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn is_empty(&self) -> bool {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Starts to listen on `address`. With `replica_set` the node says it is that set's one member.
pub fn start(
    address: &str,
    engine: Arc<dyn Engine>,
    replica_set: Option<String>,
) -> Result<Service, Error> {
    let listener = TcpListener::bind(address).map_err(|error| {
        Error::from(error).during(&format!("cannot listen for MongoDB clients on {address}"))
    })?;
    let bound = listener.local_addr()?;
    let options = Options { address: bound.to_string(), replica_set };
    let server = Arc::new(Server::new(Arc::clone(&engine), Arc::new(Real), options));
    let connections = Arc::new(Connections::default());
    let (accepting, serving) = (Arc::clone(&connections), Arc::clone(&server));
    let listen = thread::Builder::new()
        .name("mongo".into())
        .spawn(move || accept(&listener, &serving, &accepting))?;
    let turning = Arc::clone(&connections);
    let keep = thread::Builder::new()
        .name("mongo-keeper".into())
        .spawn(move || keep_house(&server, engine.as_ref(), &turning))?;
    let stop = move || stop(bound, &connections, listen, keep);
    Ok(Service { name: "mongo", address: Some(bound), stop: Box::new(stop) })
}

fn stop(
    bound: SocketAddr,
    connections: &Connections,
    listen: thread::JoinHandle<()>,
    keep: thread::JoinHandle<()>,
) {
    connections.end_all();
    // The accept call returns for this connection and sees the flag.
    let _ = TcpStream::connect_timeout(&bound, Duration::from_secs(1));
    let _ = listen.join();
    connections.end_all();
    let _ = keep.join();
    // Commands under way end within their own bounds; a stop does not wait for ever.
    for _ in 0..100 {
        if connections.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn accept(listener: &TcpListener, server: &Arc<Server>, connections: &Arc<Connections>) {
    for stream in listener.incoming() {
        if connections.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(Some(id)) = connections.add(&stream) else { continue };
        let (server, all) = (Arc::clone(server), Arc::clone(connections));
        let spawned = thread::Builder::new()
            .name("mongo-client".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // A client that breaks the protocol, or goes away, ends its own connection.
                let _ = serve(&server, stream);
                all.remove(id);
            });
        if spawned.is_err() {
            connections.remove(id);
        }
    }
}

fn serve(server: &Server, mut stream: TcpStream) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIME_MAX))?;
    let mut connection = server.connect();
    let mut message = Vec::new();
    let mut answers = Vec::new();
    let mut number = 0;
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let Some(length) = wire::length(&head).map_err(Error::from_wire)? else { return Ok(()) };
        message.clear();
        message.extend_from_slice(&head);
        // Memory grows with what has arrived, not with what was announced.
        let rest = (length - head.len()) as u64;
        if (&mut stream).take(rest).read_to_end(&mut message)? as u64 != rest {
            return Ok(());
        }
        let request = wire::decode(&message).map_err(Error::from_wire)?;
        if let Some(answer) = server.run(&mut connection, &request) {
            number += 1;
            answers.clear();
            wire::encode_reply(&request, number, &answer, &mut answers);
            stream.write_all(&answers)?;
        }
    }
}

impl Error {
    fn from_wire(error: wire::Error) -> Error {
        Error::invalid(error.to_string())
    }
}

fn keep_house(server: &Server, engine: &dyn Engine, connections: &Connections) {
    let mut turn = 0_u64;
    while !connections.stopping.load(Ordering::SeqCst) {
        // What fails here is tried again in a later turn.
        if turn == 0 {
            let _ = go_on_building(engine);
        }
        server.tidy();
        if turn.is_multiple_of(TURNS_TO_EXPIRE) {
            let _ = expire(engine);
            let _ = server.keep_log();
        }
        turn += 1;
        thread::sleep(TURN);
    }
}

fn write<T>(
    engine: &dyn Engine,
    mut body: impl FnMut(&mut Work<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    kumiko_kv::run(engine, Retry::default(), |txn: &mut dyn Txn| {
        let mut notes = Notes::default();
        body(&mut Work::new(txn, clock::now_ms(), &mut notes))
    })
}

/// The database, collection and name of every index that `wanted` picks.
fn indexes(
    engine: &dyn Engine,
    wanted: impl Fn(&kumiko_document::Index) -> bool,
) -> Result<Vec<(String, String, String)>, StoreError> {
    let mut txn = engine.begin()?;
    let mut found = Vec::new();
    for database in catalog::databases(txn.as_mut())? {
        for collection in catalog::collections(txn.as_mut(), &database)? {
            let names = collection.indexes.iter().filter(|it| wanted(it));
            let names =
                names.map(|it| (database.clone(), collection.name.clone(), it.name.clone()));
            found.extend(names);
        }
    }
    Ok(found)
}

/// Removes documents whose time has come.
fn expire(engine: &dyn Engine) -> Result<(), StoreError> {
    for (database, name, index) in indexes(engine, |it| it.expire_s.is_some())? {
        loop {
            let removed = write(engine, |work| {
                let Some(mut collection) = catalog::get(work.txn, &database, &name)? else {
                    return Ok(0);
                };
                index::expire(work, &mut collection, &index, STEP_DOCUMENTS)
            })?;
            if removed < STEP_DOCUMENTS {
                break;
            }
        }
    }
    Ok(())
}

/// Goes on with index builds that a stop or a crash interrupted.
fn go_on_building(engine: &dyn Engine) -> Result<(), StoreError> {
    for (database, name, index) in indexes(engine, |it| it.state == State::Building)? {
        loop {
            let step = write(engine, |work| {
                index::build_step(work, &database, &name, &index, STEP_DOCUMENTS)
            });
            match step {
                Ok(index::Step::More { .. }) => {}
                Ok(index::Step::Done) => break,
                Err(StoreError::Duplicate { .. }) => {
                    write(engine, |work| {
                        let mut collection = catalog::load(work.txn, &database, &name)?;
                        index::drop(work, &mut collection, &index)
                    })?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
