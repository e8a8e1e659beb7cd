use std::sync::mpsc;

use kumiko_base::Value;
use kumiko_kv::Memory;

use super::*;

fn identity(number: u8) -> Identity {
    Identity {
        node: NodeId([number; 16]),
        cluster: "test".into(),
        host: format!("127.0.0.{number}"),
        dialect: Dialect::Own,
    }
}

/// Waits for what must come; a test that hangs for this long has failed.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_message_reaches_every_node_once_and_in_order() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let mut nodes = Vec::new();
    let mut inboxes = Vec::new();
    for number in 1..=3 {
        let (handle, service) = start(Arc::clone(&engine), identity(number)).unwrap();
        let (sender, receiver) = mpsc::channel();
        handle.observe(move |message: &Message| {
            let _ = sender.send((message.clock, message.object.clone()));
        });
        nodes.push((handle, service));
        inboxes.push(receiver);
    }
    for number in 0..30_u8 {
        let (handle, _) = &nodes[usize::from(number) % 3];
        handle.post(Draft::user(1, vec![], vec![number])).unwrap();
    }
    let mut seen = Vec::new();
    for inbox in &inboxes {
        seen.push((0..30).map(|_| inbox.recv_timeout(LONG).unwrap()).collect::<Vec<_>>());
    }
    let numbers: Vec<u8> = seen[0].iter().map(|(_, object)| object[0]).collect();
    assert_eq!(numbers, (0..30).collect::<Vec<u8>>());
    assert!(seen.iter().all(|it| *it == seen[0]));
    for (_, service) in nodes {
        (service.stop)();
    }
    assert!(inboxes.iter().all(|it| it.try_recv().is_err()), "no message came twice");
    let mut txn = engine.begin().unwrap();
    let nodes = report::nodes(txn.as_mut(), "test").unwrap();
    assert_eq!(nodes.len(), 3);
    assert!(nodes.iter().all(|it| it["status"] == "down"), "{nodes:?}");
}

struct Count(mpsc::Sender<String>);

impl Runner for Count {
    fn run(&self, work: &mut Work<'_>) -> Result<String, String> {
        let done = work.progress().as_int().unwrap_or(0) as i64;
        for number in done..3 {
            work.step(Value::I64(number + 1), |txn| txn.add(&[1, 1], 1))?;
        }
        let _ = self.0.send(work.args().to_string());
        Ok("counted".into())
    }
}

#[test]
fn a_job_runs_once_on_one_of_the_nodes() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let (sender, receiver) = mpsc::channel();
    let mut services = Vec::new();
    let mut handles = Vec::new();
    for number in 1..=2 {
        let (handle, service) = start(Arc::clone(&engine), identity(number)).unwrap();
        handle.register("count", Arc::new(Count(sender.clone())));
        handles.push(handle);
        services.push(service);
    }
    for number in 0..4 {
        let order = Order::new(format!("j{number}"), "count", Value::I64(number), clock::now_ms());
        assert!(handles[0].submit(&order).unwrap());
        assert!(!handles[1].submit(&order).unwrap());
    }
    let mut args: Vec<String> = (0..4).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    args.sort();
    assert_eq!(args, ["0i64", "1i64", "2i64", "3i64"]);
    for service in services {
        (service.stop)();
    }
    let mut txn = engine.begin().unwrap();
    let count = txn.get(&[1, 1], kumiko_kv::Read::Snapshot).unwrap().unwrap();
    assert_eq!(count, 12_i64.to_le_bytes());
    let jobs = report::jobs(txn.as_mut(), None, 10).unwrap();
    assert!(jobs.iter().all(|it| it["state"] == "done" && it["note"] == "counted"), "{jobs:?}");
}
