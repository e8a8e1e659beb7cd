//! Starts the Redis front from the settings.

use std::path::Path;
use std::sync::Arc;

use kumiko_eventlog::repair::{Allow, repair};
use kumiko_eventlog::verify::verify;
use kumiko_kv::Engine;
use kumiko_lattice::live::{Live, Settings as LiveSettings};
use kumiko_redis::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::points::Points;
use super::store::{Store, log_of};
use super::users::Users;
use super::{Handle, Options, start};
use crate::{Error, Service, Settings, random};

/// Starts the front if the settings name an address for it.
pub fn start_from(
    settings: &Settings,
    engine: &Arc<dyn Engine>,
    node: [u8; 16],
) -> Result<Option<(Service, Handle)>, Error> {
    let Some(address) = settings.address("redis") else { return Ok(None) };
    let in_memory = settings.engine() == "memory";
    let store = if in_memory {
        None
    } else {
        mend(settings, engine, node)?;
        Some(Store::open(Arc::clone(engine), &node, &kumiko_base::hex::uuid(&node))?)
    };
    let mut server = new_server()?;
    let durability = settings.text("durability");
    server.facts.durability = String::from(if in_memory { "never" } else { durability });
    let fsync = match server.facts.durability.as_str() {
        "always" => "always",
        "everysecond" => "everysec",
        _ => "no",
    };
    server.config.force("appendfsync", fsync.to_owned());
    server.config.force("appendonly", if in_memory { "no" } else { "yes" }.to_owned());
    server.config.force("dir", settings.dir().display().to_string());
    if !in_memory {
        load_users(&mut server, settings.dir())?;
    }
    set_limits(&mut server, settings)?;
    let owner = kumiko_base::hex::uuid(&node);
    server.event_log = Some(Box::new(Points::new(Arc::clone(engine), owner)));
    let options = Options {
        address: address.to_owned(),
        server,
        store,
        hold_answers: durability == "always",
        tls: tls(settings)?,
    };
    start(options).map(Some)
}

fn new_server() -> Result<Server, Error> {
    let seed = random::number()?;
    let live = Live::new(LiveSettings { seed, ..LiveSettings::default() });
    let mut server = Server::with_live(random::number()?, live);
    server.secret_key = random::bytes()?;
    server.facts.run_id = server.secret();
    server.facts.run_id.truncate(40);
    let executable = std::env::current_exe().unwrap_or_default();
    server.facts.executable = executable.display().to_string();
    Ok(server)
}

fn set_limits(server: &mut Server, settings: &Settings) -> Result<(), Error> {
    let memory = settings.number("max-memory").to_string();
    let pairs = [
        ("requirepass", settings.text("redis-password")),
        ("maxmemory", memory.as_str()),
        ("maxmemory-policy", settings.text("max-memory-policy")),
    ];
    for (name, value) in pairs {
        if value.is_empty() {
            continue;
        }
        let names = server
            .config
            .set(&[(name.as_bytes(), value.as_bytes())])
            .map_err(|refused| Error::invalid(refused.as_str().to_owned()))?;
        server.apply_config(&names);
    }
    Ok(())
}

fn load_users(server: &mut Server, dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir)?;
    let mut users: Box<dyn kumiko_redis::server::UsersFile> =
        Box::new(Users { path: dir.join("users.acl") });
    let text = users.load().map_err(Error::invalid)?;
    if !text.trim().is_empty() {
        server
            .acl
            .load(&text)
            .map_err(|why| Error::invalid(format!("the file users.acl is wrong: {why}")))?;
    }
    server.users_file = Some(users);
    Ok(())
}

/// `--repair show` tells what a repair would lose, `--repair apply` loses it.
fn mend(settings: &Settings, engine: &Arc<dyn Engine>, node: [u8; 16]) -> Result<(), Error> {
    let wanted = settings.text("repair");
    if wanted == "off" {
        return Ok(());
    }
    let log = log_of(&node);
    let told = |error: kumiko_eventlog::Error| Error::new(error.kind(), error.to_string());
    let report = verify(engine.as_ref(), &log, &mut |_, _| ()).map_err(told)?;
    if report.is_clean() {
        eprintln!("kumiko: the journal is in order; there is nothing to repair");
        return Ok(());
    }
    for finding in &report.findings {
        eprintln!("kumiko: the journal: {finding:?}");
    }
    let loss = match report.damaged() {
        Some(id) => format!("everything from event {id} on would be lost"),
        None => "no event would be lost".to_owned(),
    };
    if wanted == "show" {
        return Err(Error::new(
            kumiko_base::Kind::Corrupt,
            format!("the journal is damaged: {loss}; --repair apply does that"),
        ));
    }
    eprintln!("kumiko: repairing the journal: {loss}");
    let allow = Allow { cut: true, take_over: true, ..Allow::default() };
    let owner = kumiko_base::hex::uuid(&node);
    let done = repair(engine.as_ref(), &log, &owner, allow).map_err(told)?;
    for action in done.actions {
        eprintln!("kumiko: {action}");
    }
    Ok(())
}

fn tls(settings: &Settings) -> Result<Option<Arc<rustls::ServerConfig>>, Error> {
    let (cert, key) = (settings.text("redis-tls-cert"), settings.text("redis-tls-key"));
    if cert.is_empty() && key.is_empty() {
        return Ok(None);
    }
    let wrong = |what: &str, why: &dyn std::fmt::Display| {
        Error::invalid(format!("TLS for Redis clients: {what}: {why}"))
    };
    let certs = read_certs(cert)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("redis-tls-key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("versions", &error))?;
    let ca = settings.text("redis-tls-ca");
    let builder = if ca.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = rustls::RootCertStore::empty();
        for cert in read_certs(ca)? {
            roots.add(cert).map_err(|error| wrong("redis-tls-ca", &error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| wrong("redis-tls-ca", &error))?;
        builder.with_client_cert_verifier(verifier)
    };
    let config =
        builder.with_single_cert(certs, key).map_err(|error| wrong("certificate", &error))?;
    Ok(Some(Arc::new(config)))
}

fn read_certs(path: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: String| Error::invalid(format!("cannot read certificates of {path}: {why}"));
    let certs = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    certs.map(|cert| cert.map_err(|error| wrong(error.to_string()))).collect()
}
