//! One running node: the engine, and the services on it.

use std::sync::Arc;

use kumiko_kv::Engine;

use kumiko_coordinator::{Dialect, NodeId};

use crate::cluster::{self, Identity};
use crate::engine::Missing;
use crate::{Error, Service, Settings, engine, http, mongo, random, redis};

/// A running node. Stop it with [`Node::stop`]; dropping it stops it too.
pub struct Node {
    engine: Arc<dyn Engine>,
    services: Vec<Service>,
}

impl Node {
    /// Opens the engine and starts every service that the settings do not switch off.
    pub fn start(settings: &Settings) -> Result<Node, Error> {
        let engine =
            engine::open(&settings.engine(), settings.text("durability"), Missing::Create)?;
        let mut node = Node { engine, services: Vec::new() };
        let mut routes = http::Routes::default();
        let identity = identity(settings)?;
        let mut front = None;
        if let Some((service, handle)) =
            redis::setup::start_from(settings, &node.engine, identity.node.0)?
        {
            node.services.push(service);
            front = Some(handle);
        }
        if let Some(address) = settings.address("mongo") {
            let set = Some(settings.text("mongo-replica-set")).filter(|it| !it.is_empty());
            let set = set.map(Into::into);
            node.services.push(mongo::start(address, Arc::clone(&node.engine), set)?);
        }
        let (cluster, service) = cluster::start(Arc::clone(&node.engine), identity)?;
        node.services.push(service);
        if let Some(front) = front.filter(|_| node.engine.shared()) {
            cluster::channels::join(&front, &cluster);
        }
        cluster::report::add_routes(&mut routes, &node.engine, &cluster);
        if let Some(address) = settings.address("http") {
            node.services.push(http::start(address, Arc::clone(&node.engine), routes)?);
        }
        Ok(node)
    }

    /// The engine that the services share.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// The running services, in the order in which they were started.
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// Stops the services, the newest first, and makes everything durable.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stop_services();
        self.engine.sync()?;
        Ok(())
    }

    fn stop_services(&mut self) {
        while let Some(service) = self.services.pop() {
            (service.stop)();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop_services();
    }
}

/// Who this node is. The id is drawn once and kept beside the store.
fn identity(settings: &Settings) -> Result<Identity, Error> {
    let dialect = match settings.text("cluster-dialect") {
        "puzzledb" => Dialect::Puzzle,
        _ => Dialect::Own,
    };
    let host = match settings.text("host") {
        "" => settings.address("redis").unwrap_or("127.0.0.1").to_string(),
        host => host.to_string(),
    };
    let cluster = settings.text("cluster").to_string();
    Ok(Identity { node: node_id(settings)?, cluster, host, dialect })
}

fn node_id(settings: &Settings) -> Result<NodeId, Error> {
    if settings.engine() == "memory" {
        return Ok(NodeId(random::bytes()?));
    }
    let path = settings.dir().join("node.id");
    match std::fs::read_to_string(&path) {
        Ok(text) => NodeId::parse(text.trim()).ok_or_else(|| {
            Error::invalid(format!("the file {} does not hold a node's id", path.display()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = NodeId(random::bytes()?);
            std::fs::create_dir_all(settings.dir())?;
            std::fs::write(&path, format!("{id}\n"))?;
            Ok(id)
        }
        Err(error) => Err(Error::from(error).during(&format!("cannot read {}", path.display()))),
    }
}
