//! One running node: the engine, and the services on it.

use std::sync::Arc;

use kumiko_kv::Engine;

use crate::{Error, Service, Settings, engine, http};

/// A running node. Stop it with [`Node::stop`]; dropping it stops it too.
pub struct Node {
    engine: Arc<dyn Engine>,
    services: Vec<Service>,
}

impl Node {
    /// Opens the engine and starts every service that the settings do not switch off.
    pub fn start(settings: &Settings) -> Result<Node, Error> {
        let engine = engine::open(&settings.engine(), settings.text("durability"))?;
        let mut node = Node { engine, services: Vec::new() };
        if let Some(address) = settings.address("http") {
            node.services.push(http::start(address, Arc::clone(&node.engine))?);
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
