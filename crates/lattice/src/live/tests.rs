//! The live structure against models of plain vectors and maps, and against its own journal.

use std::collections::{BTreeMap, BTreeSet};

use kumiko_base::draw::{self, Draw};

use super::{
    Added, Bound, Db, DbId, End, Error, Live, Rename, Settings, SnapshotStep, Thresholds, Ttl,
    Type, ZaddRule,
};

type Bytes = Vec<u8>;

/// What a key holds, in the plainest form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    Zset(BTreeMap<Bytes, f64>),
    List(Vec<Bytes>),
}

pub(crate) type Plains = BTreeMap<Bytes, (Plain, u64)>;

/// A whole database in the plainest form, with expiries.
pub(crate) fn plain(db: &mut Db<'_>) -> Plains {
    let mut keys = Vec::new();
    db.each_key(|key| keys.push(key.to_vec()));
    let mut all = BTreeMap::new();
    for key in keys {
        let held = match db.type_of(&key).expect("it was listed") {
            Type::String => Plain::Text(db.get(&key).unwrap().unwrap().to_vec()),
            Type::Hash => Plain::Hash(
                db.hiter(&key).unwrap().map(|it| (it.0.to_vec(), it.1.to_vec())).collect(),
            ),
            Type::Set => {
                let mut members = BTreeSet::new();
                db.smembers(&key, |it| assert!(members.insert(it.to_vec()))).unwrap();
                Plain::Set(members)
            }
            Type::Zset => {
                let all = db.zrange(&key, 0, usize::MAX, false).unwrap();
                Plain::Zset(all.map(|it| (it.0.to_vec(), it.1)).collect())
            }
            Type::List => Plain::List(db.lrange(&key, 0).unwrap().map(<[u8]>::to_vec).collect()),
        };
        let expiry = db.expiry_ms(&key).unwrap();
        all.insert(key, (held, expiry));
    }
    all
}

fn settings(draw: &mut Draw) -> Settings {
    let small = Thresholds {
        hash_entries: 4,
        set_ints: 4,
        set_entries: 6,
        zset_entries: 4,
        ..Thresholds::default()
    };
    Settings {
        journal: true,
        report_expired: true,
        seed: draw.bits(),
        thresholds: draw.one_of(&[small, Thresholds::default()]),
        ..Settings::default()
    }
}

fn word(draw: &mut Draw) -> Bytes {
    match draw.below(4) {
        0 => draw.bytes(8),
        1 => vec![b'v'; draw.index(100)],
        _ => (draw.below(30) as i64 - 10).to_string().into_bytes(),
    }
}

struct Model {
    keys: Plains,
    now_ms: u64,
}

impl Model {
    fn alive(&mut self, key: &[u8]) -> Option<&mut (Plain, u64)> {
        let now_ms = self.now_ms;
        self.keys.retain(|_, it| it.1 == 0 || now_ms < it.1);
        self.keys.get_mut(key)
    }

    fn is(&mut self, key: &[u8], kind: Type) -> bool {
        self.alive(key).is_none_or(|it| {
            kind == match it.0 {
                Plain::Text(_) => Type::String,
                Plain::Hash(_) => Type::Hash,
                Plain::Set(_) => Type::Set,
                Plain::Zset(_) => Type::Zset,
                Plain::List(_) => Type::List,
            }
        })
    }

    fn hash(&mut self, key: &[u8]) -> &mut BTreeMap<Bytes, Bytes> {
        let fresh = || (Plain::Hash(BTreeMap::new()), 0);
        match &mut self.keys.entry(key.to_vec()).or_insert_with(fresh).0 {
            Plain::Hash(it) => it,
            other => panic!("not a hash: {other:?}"),
        }
    }

    fn set(&mut self, key: &[u8]) -> &mut BTreeSet<Bytes> {
        let fresh = || (Plain::Set(BTreeSet::new()), 0);
        match &mut self.keys.entry(key.to_vec()).or_insert_with(fresh).0 {
            Plain::Set(it) => it,
            other => panic!("not a set: {other:?}"),
        }
    }

    fn zset(&mut self, key: &[u8]) -> &mut BTreeMap<Bytes, f64> {
        let fresh = || (Plain::Zset(BTreeMap::new()), 0);
        match &mut self.keys.entry(key.to_vec()).or_insert_with(fresh).0 {
            Plain::Zset(it) => it,
            other => panic!("not a sorted set: {other:?}"),
        }
    }

    fn list(&mut self, key: &[u8]) -> &mut Vec<Bytes> {
        let fresh = || (Plain::List(Vec::new()), 0);
        match &mut self.keys.entry(key.to_vec()).or_insert_with(fresh).0 {
            Plain::List(it) => it,
            other => panic!("not a list: {other:?}"),
        }
    }

    /// Empty collections do not exist.
    fn sweep(&mut self) {
        self.keys.retain(|_, it| match &it.0 {
            Plain::Text(_) => true,
            Plain::Hash(it) => !it.is_empty(),
            Plain::Set(it) => !it.is_empty(),
            Plain::Zset(it) => !it.is_empty(),
            Plain::List(it) => !it.is_empty(),
        });
    }
}

fn strings(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let value = word(draw);
    if draw.one_in(3) {
        let ttl = draw.one_of(&[Ttl::Clear, Ttl::Keep, Ttl::At(model.now_ms + 30)]);
        db.set(key, &value, ttl).unwrap();
        let kept = model.alive(key).map_or(0, |it| it.1);
        let expiry = match ttl {
            Ttl::Clear => 0,
            Ttl::Keep => kept,
            Ttl::At(at_ms) => at_ms,
        };
        model.keys.insert(key.to_vec(), (Plain::Text(value), expiry));
        return;
    }
    if !model.is(key, Type::String) {
        assert_eq!(db.get(key), Err(Error::WrongType));
        assert_eq!(db.incr(key, 1), Err(Error::WrongType));
        assert_eq!(db.append(key, b"x"), Err(Error::WrongType));
        return;
    }
    let old = model.alive(key).map(|it| match &it.0 {
        Plain::Text(text) => (text.clone(), it.1),
        other => panic!("not a string: {other:?}"),
    });
    assert_eq!(db.get(key).unwrap(), old.as_ref().map(|it| &it.0[..]));
    let expiry = old.as_ref().map_or(0, |it| it.1);
    let mut text = old.clone().map_or(Vec::new(), |it| it.0);
    match draw.below(4) {
        0 => {
            let number = if old.is_some() { super::parse_int(&text) } else { Some(0) };
            let Some(n) = number else {
                assert_eq!(db.incr(key, 7), Err(Error::NotInteger));
                return;
            };
            assert_eq!(db.incr(key, 7), Ok(n + 7));
            text = (n + 7).to_string().into_bytes();
        }
        1 => {
            text.extend_from_slice(&value);
            assert_eq!(db.append(key, &value), Ok(text.len()));
        }
        2 if !value.is_empty() => {
            let offset = draw.index(12);
            if text.len() < offset + value.len() {
                text.resize(offset + value.len(), 0);
            }
            text[offset..offset + value.len()].copy_from_slice(&value);
            assert_eq!(db.set_range(key, offset, &value), Ok(text.len()));
        }
        _ => {
            db.write(key, &value).unwrap();
            text = value;
        }
    }
    model.keys.insert(key.to_vec(), (Plain::Text(text), expiry));
}

fn hashes(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let (field, value) = (word(draw), word(draw));
    if !model.is(key, Type::Hash) {
        assert_eq!(db.hset(key, &field, &value), Err(Error::WrongType));
        return;
    }
    match draw.below(4) {
        0 => {
            let gone = model.hash(key).remove(&field).is_some();
            assert_eq!(db.hdel(key, &field), Ok(gone));
        }
        1 => {
            let want = model.hash(key).get(&field).map(|it| &it[..]);
            assert_eq!(db.hget(key, &field).unwrap(), want);
        }
        _ => {
            let fresh = model.hash(key).insert(field.clone(), value.clone()).is_none();
            assert_eq!(db.hset(key, &field, &value), Ok(fresh));
            assert_eq!(db.hlen(key), Ok(model.hash(key).len()));
        }
    }
    let mut seen = BTreeMap::new();
    let mut cursor = 0;
    loop {
        let note = |field: &[u8], value: &[u8]| {
            assert!(seen.insert(field.to_vec(), value.to_vec()).is_none());
        };
        cursor = db.hscan(key, cursor, 3, note).unwrap();
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(&seen, model.hash(key));
}

fn sets(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let member = word(draw);
    if !model.is(key, Type::Set) {
        assert_eq!(db.sadd(key, &member), Err(Error::WrongType));
        return;
    }
    match draw.below(4) {
        0 => assert_eq!(db.srem(key, &member), Ok(model.set(key).remove(&member))),
        1 => assert_eq!(db.sismember(key, &member), Ok(model.set(key).contains(&member))),
        2 => {
            let picked = db.srandom(key, &mut |n| draw.below(n)).unwrap();
            assert!(picked.map_or(model.set(key).is_empty(), |it| model.set(key).contains(&it)));
        }
        _ => {
            assert_eq!(db.sadd(key, &member), Ok(model.set(key).insert(member)));
            assert_eq!(db.scard(key), Ok(model.set(key).len()));
        }
    }
}

fn zsets(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let (member, score) = (word(draw), draw.below(6) as f64 - 2.5);
    if !model.is(key, Type::Zset) {
        let failed = db.zadd(key, &member, score, ZaddRule::default());
        assert_eq!(failed, Err(Error::WrongType));
        return;
    }
    let zset = model.zset(key);
    let old = zset.get(&member).copied();
    match draw.below(6) {
        0 => assert_eq!(db.zrem(key, &member), Ok(zset.remove(&member).is_some())),
        1 => {
            let rule = ZaddRule { greater: true, ..ZaddRule::default() };
            let did = db.zadd(key, &member, score, rule).unwrap();
            let want = match old {
                None => Added::New(score),
                Some(old) if score <= old => Added::Refused(Some(old)),
                Some(_) => Added::Changed(score),
            };
            assert_eq!(did, want);
            if !matches!(want, Added::Refused(_)) {
                zset.insert(member, score);
            }
        }
        2 => {
            let rule = ZaddRule { increment: true, ..ZaddRule::default() };
            let sum = old.unwrap_or(0.0) + score;
            let want = if old.is_none() { Added::New(sum) } else { Added::Changed(sum) };
            assert_eq!(db.zadd(key, &member, score, rule), Ok(want));
            zset.insert(member, sum);
        }
        3 => {
            let mut low: Vec<(f64, Bytes)> = zset.iter().map(|it| (*it.1, it.0.clone())).collect();
            low.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let want = low.first().map(|it| (it.1.clone(), it.0));
            if let Some(it) = &want {
                zset.remove(&it.0);
            }
            assert_eq!(db.zpop(key, false), Ok(want));
        }
        4 => {
            let inside = zset.values().filter(|it| -1.0 <= **it && **it < 2.0).count();
            let (from, to) =
                db.zrange_by_score(key, Bound::With(-1.0), Bound::Without(2.0)).unwrap();
            assert_eq!(to - from, inside);
        }
        _ => {
            let did = db.zadd(key, &member, score, ZaddRule::default()).unwrap();
            assert_eq!(matches!(did, Added::New(_)), old.is_none());
            zset.insert(member, score);
        }
    }
}

fn lists(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let value = word(draw);
    if !model.is(key, Type::List) {
        assert_eq!(db.push(key, End::Back, &value), Err(Error::WrongType));
        return;
    }
    let list = model.list(key);
    let index = draw.index(list.len() + 1);
    match draw.below(9) {
        0 | 1 => {
            list.insert(0, value.clone());
            assert_eq!(db.push(key, End::Front, &value), Ok(list.len()));
        }
        2 | 3 => {
            list.push(value.clone());
            assert_eq!(db.push(key, End::Back, &value), Ok(list.len()));
        }
        4 => {
            let gone = if list.is_empty() { None } else { Some(list.remove(0)) };
            assert_eq!(db.pop(key, End::Front), Ok(gone));
        }
        5 => assert_eq!(db.pop(key, End::Back), Ok(list.pop())),
        6 if !list.is_empty() => {
            if index < list.len() {
                list[index] = value.clone();
                assert_eq!(db.lset(key, index, &value), Ok(()));
            } else {
                assert_eq!(db.lset(key, index, &value), Err(Error::OutOfRange));
            }
            list.insert(index, value.clone());
            assert_eq!(db.linsert(key, index, &value), Ok(list.len()));
        }
        7 => {
            let mut left = 2;
            let mut gone = 0;
            list.retain(|it| {
                let hit = *it == value && 0 < left;
                left -= usize::from(hit);
                gone += usize::from(hit);
                !hit
            });
            assert_eq!(db.lrem(key, &value, 2, End::Front), Ok(gone));
        }
        _ => {
            let end = index + draw.index(list.len() + 1 - index);
            *list = list[index..end].to_vec();
            db.ltrim(key, index, end).unwrap();
        }
    }
}

fn generic(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model, key: &[u8]) {
    let exists = model.alive(key).is_some();
    let at_ms = model.now_ms + draw.below(60);
    match draw.below(7) {
        0 => assert_eq!(db.del(key), model.keys.remove(key).is_some()),
        1 | 2 => {
            assert_eq!(db.expire_at(key, at_ms), exists);
            if let Some(it) = model.alive(key) {
                it.1 = at_ms;
            }
        }
        3 => {
            let had = model.alive(key).is_some_and(|it| std::mem::take(&mut it.1) != 0);
            assert_eq!(db.persist(key), had);
        }
        4 => {
            let to = vec![b'k', draw.below(6) as u8];
            if exists {
                assert_eq!(db.rename(key, &to, true), Ok(Rename::Done));
                let moved = model.keys.remove(key).expect("it exists");
                model.keys.insert(to, moved);
            } else {
                assert_eq!(db.rename(key, &to, true), Err(Error::NoKey));
            }
        }
        5 => {
            let to = vec![b'k', draw.below(6) as u8];
            if let Some((image, expiry)) = db.image(key) {
                db.put(&to, &image, expiry).unwrap();
                let copied = model.keys[key].clone();
                model.keys.insert(to, copied);
            }
        }
        _ if draw.one_in(40) => {
            db.flush();
            model.keys.clear();
        }
        _ => assert_eq!(db.exists(key), exists),
    }
}

/// One random command on both; true time moves on a little each time.
fn command(draw: &mut Draw, db: &mut Db<'_>, model: &mut Model) {
    let key = vec![b'k', draw.below(6) as u8];
    model.alive(&key);
    match draw.below(7) {
        0 => strings(draw, db, model, &key),
        1 => hashes(draw, db, model, &key),
        2 => sets(draw, db, model, &key),
        3 => zsets(draw, db, model, &key),
        4 | 5 => lists(draw, db, model, &key),
        _ => generic(draw, db, model, &key),
    }
    model.sweep();
}

#[test]
fn commands_do_what_the_model_does() {
    draw::check("commands_do_what_the_model_does", 25, |draw| {
        let settings = settings(draw);
        let mut live = Live::new(settings.clone());
        let id = live.open(b"0");
        let mut model = Model { keys: BTreeMap::new(), now_ms: 1_000_000 };
        let mut journal = Vec::new();
        for _ in 0..300 {
            model.now_ms += draw.below(4);
            let mut db = live.db(id, model.now_ms);
            command(draw, &mut db, &mut model);
            model.alive(b"");
            assert_eq!(plain(&mut db), model.keys);
            assert_eq!(db.len(), model.keys.len());
            if draw.one_in(5) {
                journal.push(live.take_changes());
            }
        }
        journal.push(live.take_changes());
        let mut again = Live::new(settings);
        for batch in &journal {
            again.replay(batch, None).unwrap();
        }
        let id = again.open(b"0");
        assert_eq!(plain(&mut again.db(id, model.now_ms)), model.keys);
    });
}

/// A snapshot taken in small steps between commands, then the journal since it began.
#[test]
fn a_snapshot_does_not_stop_writers() {
    draw::check("a_snapshot_does_not_stop_writers", 30, |draw| {
        let settings = settings(draw);
        let mut live = Live::new(settings.clone());
        let ids: Vec<DbId> = [&b"0"[..], b"one", b"2"].iter().map(|it| live.open(it)).collect();
        let mut models: Vec<Model> =
            ids.iter().map(|_| Model { keys: BTreeMap::new(), now_ms: 1_000_000 }).collect();
        let run = |draw: &mut Draw, live: &mut Live, models: &mut Vec<Model>, count: u64| {
            for _ in 0..count {
                let index = draw.index(ids.len());
                models[index].now_ms += draw.below(4);
                let mut db = live.db(ids[index], models[index].now_ms);
                command(draw, &mut db, &mut models[index]);
            }
        };
        let count = draw.below(200);
        run(draw, &mut live, &mut models, count);
        live.take_changes();
        let mut number = 1;
        live.snapshot_begin(number);
        let (mut parts, mut journal) = (Vec::new(), Vec::new());
        loop {
            match live.snapshot_step(1, 1_000_000) {
                SnapshotStep::Part(part) => parts.push(part),
                SnapshotStep::Last(part) => {
                    parts.push(part);
                    break;
                }
                SnapshotStep::Restart => {
                    parts.clear();
                    journal.clear();
                    live.take_changes();
                    number += 1;
                    live.snapshot_begin(number);
                }
            }
            let count = draw.below(10);
            run(draw, &mut live, &mut models, count);
            journal.push(live.take_changes());
        }
        run(draw, &mut live, &mut models, 20);
        journal.push(live.take_changes());
        let mut again = Live::new(settings);
        for part in &parts {
            again.replay(part, None).unwrap();
        }
        for batch in &journal {
            again.replay(batch, Some(number)).unwrap();
        }
        for (index, name) in [&b"0"[..], b"one", b"2"].iter().enumerate() {
            let id = again.open(name);
            let now_ms = models[index].now_ms;
            models[index].alive(b"");
            assert_eq!(plain(&mut again.db(id, now_ms)), models[index].keys);
        }
    });
}

/// The example of `docs/format/journal.md`.
#[test]
fn records_have_the_documented_bytes() {
    let mut live = Live::new(Settings { journal: true, ..Settings::default() });
    let id = live.open(b"0");
    let mut db = live.db(id, 1000);
    db.set(b"k", b"v", Ttl::Clear).unwrap();
    db.incr(b"n", -2).unwrap();
    let batch = live.take_changes();
    let hex: Vec<String> = batch.iter().map(|it| format!("{it:02x}")).collect();
    assert_eq!(hex.join(" "), "01 3e 01 30 3f e8 07 01 01 6b 00 01 76 05 01 6e 03");
    let mut reader = super::Reader::new(&batch).unwrap();
    let mut words = Vec::new();
    while let Some((change, _)) = reader.next().unwrap() {
        words.push(change.word());
    }
    assert_eq!(words, ["database", "time", "set", "incr"]);
    assert!(super::Reader::new(&[2]).is_err());
}

/// Broken journal bytes are refused or applied, never a panic and never without end.
#[test]
fn broken_records_do_no_harm() {
    draw::check("broken_records_do_no_harm", 500, |draw| {
        let settings = Settings { journal: true, ..Settings::default() };
        let mut live = Live::new(settings);
        let id = live.open(b"0");
        let mut model = Model { keys: BTreeMap::new(), now_ms: 1_000_000 };
        for _ in 0..10 {
            let mut db = live.db(id, model.now_ms);
            command(draw, &mut db, &mut model);
        }
        let mut batch = if draw.one_in(4) { draw.bytes(60) } else { live.take_changes() };
        for _ in 0..draw.below(4) {
            if !batch.is_empty() {
                let at = draw.index(batch.len());
                match draw.below(3) {
                    0 => batch[at] = draw.bits() as u8,
                    1 => batch.truncate(at),
                    _ => batch.insert(at, draw.bits() as u8),
                }
            }
        }
        let mut again = Live::new(Settings::default());
        let _ = again.replay(&batch, None);
        let id = again.open(b"0");
        let _ = again.db(id, 5).put(b"x", &draw.bytes(40), 0);
    });
}

#[test]
fn watched_keys_have_versions() {
    let mut live = Live::new(Settings::default());
    let id = live.open(b"0");
    let first = live.watch(id, b"k");
    live.db(id, 10).set(b"other", b"1", Ttl::Clear).unwrap();
    assert_eq!(live.version(id, b"k", 10), first);
    live.db(id, 10).set(b"k", b"1", Ttl::At(20)).unwrap();
    let second = live.version(id, b"k", 10);
    assert!(first < second);
    assert!(second < live.version(id, b"k", 20), "expiry is a change");
    live.unwatch(id, b"k");
    assert_eq!(live.version(id, b"k", 20), u64::MAX);
}

#[test]
fn replicated_names_have_a_limit() {
    let mut live = Live::new(Settings { replication: true, ..Settings::default() });
    let id = live.open(b"0");
    let mut db = live.db(id, 10);
    let (fits, long) = (vec![b'k'; 255], vec![b'k'; 256]);
    assert_eq!(db.set(&fits, b"v", Ttl::Clear), Ok(()));
    assert!(matches!(db.set(&long, b"v", Ttl::Clear), Err(Error::TooLong { size: 256, .. })));
    assert_eq!(db.hset(b"h", &fits, b"v"), Ok(true));
    assert!(db.hset(b"h", &long, b"v").is_err());
    assert_eq!(db.sadd(b"s", &long), Ok(true));
    assert_eq!(db.len(), 3);
}

#[test]
fn forms_have_the_names_that_redis_gives() {
    let mut live = Live::new(Settings::default());
    let id = live.open(b"0");
    let mut db = live.db(id, 10);
    db.set(b"int", b"12", Ttl::Clear).unwrap();
    db.set(b"short", &[b'x'; 44], Ttl::Clear).unwrap();
    db.set(b"long", &[b'x'; 45], Ttl::Clear).unwrap();
    for n in 0..129 {
        let text = n.to_string().into_bytes();
        db.hset(b"hash", &text, b"v").unwrap();
        db.sadd(b"ints", &text).unwrap();
        db.zadd(b"zset", &text, 1.0, ZaddRule::default()).unwrap();
        db.push(b"list", End::Back, &text).unwrap();
        if n == 127 {
            assert_eq!(db.facts(b"hash").unwrap().encoding, "listpack");
            assert_eq!(db.facts(b"zset").unwrap().encoding, "listpack");
        }
    }
    db.sadd(b"words", b"a").unwrap();
    let rows = [
        ("int", "int"),
        ("short", "embstr"),
        ("long", "raw"),
        ("hash", "hashtable"),
        ("ints", "intset"),
        ("words", "listpack"),
        ("zset", "skiplist"),
        ("list", "listpack"),
    ];
    for (key, encoding) in rows {
        assert_eq!(db.facts(key.as_bytes()).unwrap().encoding, encoding, "{key}");
    }
    for _ in 0..100 {
        db.push(b"list", End::Back, &[b'x'; 100]).unwrap();
    }
    assert_eq!(db.facts(b"list").unwrap().encoding, "quicklist");
}
