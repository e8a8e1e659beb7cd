//! The text of INFO: sections of `name:value` lines, with the fields that tools read.

use crate::Server;
use crate::client::Client;
use crate::server::REDIS_VERSION;

/// Sections that are shown when none is named.
const DEFAULT: &[&str] = &[
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "modules",
    "errorstats",
    "cluster",
    "keyspace",
];
/// Sections that are shown only by name, or by "all" and "everything".
const EXTRA: &[&str] = &["commandstats"];

/// The wanted sections; none means the usual ones.
pub fn text(server: &mut Server, client: &Client, wanted: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let all: Vec<&str> = DEFAULT.iter().chain(EXTRA).copied().collect();
    if wanted.is_empty() {
        names.extend(DEFAULT);
    }
    for word in wanted {
        match word.as_str() {
            "all" | "everything" => names.extend(&all),
            "default" => names.extend(DEFAULT),
            word => names.extend(all.iter().filter(|name| **name == word)),
        }
    }
    let mut shown: Vec<&str> = Vec::new();
    let mut sections: Vec<String> = Vec::new();
    for name in names {
        if !shown.contains(&name) {
            shown.push(name);
            sections.push(section(server, client, name));
        }
    }
    sections.join("\r\n")
}

fn section(server: &mut Server, client: &Client, name: &str) -> String {
    let lines = match name {
        "server" => about_server(server),
        "clients" => about_clients(server, client),
        "memory" => about_memory(server),
        "persistence" => about_persistence(server),
        "stats" => about_stats(server),
        "replication" => about_replication(server),
        "cpu" => about_cpu(server),
        "commandstats" => about_commands(server),
        "errorstats" => about_errors(server),
        "cluster" => vec!["cluster_enabled:0".to_owned()],
        "keyspace" => about_keyspace(server),
        _ => Vec::new(),
    };
    let title = match name {
        "cpu" => "CPU".to_owned(),
        name => {
            let mut letters = name.chars();
            let first = letters.next().map(|it| it.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
    };
    let body: String = lines.into_iter().map(|line| line + "\r\n").collect();
    format!("# {title}\r\n{body}")
}

fn about_server(server: &Server) -> Vec<String> {
    let facts = &server.facts;
    let uptime_s = server.now_ms.saturating_sub(facts.started_ms) / 1000;
    vec![
        format!("redis_version:{REDIS_VERSION}"),
        format!("kumiko_version:{}", env!("CARGO_PKG_VERSION")),
        "redis_git_sha1:00000000".to_owned(),
        "redis_git_dirty:0".to_owned(),
        "redis_build_id:0".to_owned(),
        "redis_mode:standalone".to_owned(),
        format!("os:{}", std::env::consts::OS),
        format!("arch_bits:{}", usize::BITS),
        "multiplexing_api:epoll".to_owned(),
        format!("process_id:{}", facts.process_id),
        "process_supervised:no".to_owned(),
        format!("run_id:{}", facts.run_id),
        format!("tcp_port:{}", facts.port),
        format!("server_time_usec:{}", server.micros()),
        format!("uptime_in_seconds:{uptime_s}"),
        format!("uptime_in_days:{}", uptime_s / 86_400),
        format!("hz:{}", server.config.get("hz")),
        format!("configured_hz:{}", server.config.get("hz")),
        format!("lru_clock:{}", (server.now_ms / 1000) & 0xFF_FFFF),
        format!("executable:{}", facts.executable),
        "config_file:".to_owned(),
        "io_threads_active:0".to_owned(),
        "locks_are:per node, not global".to_owned(),
    ]
}

fn about_clients(server: &Server, client: &Client) -> Vec<String> {
    let all = server.clients.iter().chain(std::iter::once(client));
    let output_max = all.map(|it| it.out.len()).max().unwrap_or(0);
    vec![
        format!("connected_clients:{}", server.clients.len()),
        "cluster_connections:0".to_owned(),
        format!("maxclients:{}", server.config.hot.clients_max),
        format!("client_recent_max_input_buffer:{}", server.request_bytes),
        format!("client_recent_max_output_buffer:{output_max}"),
        format!("blocked_clients:{}", server.blocking.len()),
        "tracking_clients:0".to_owned(),
        format!("clients_in_timeout_table:{}", server.blocking.with_deadline()),
    ]
}

fn human(bytes: u64) -> String {
    let units = [("G", 1_u64 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    match units.iter().find(|(_, scale)| *scale <= bytes) {
        Some((unit, scale)) => format!("{:.2}{unit}", bytes as f64 / *scale as f64),
        None => format!("{bytes}B"),
    }
}

fn about_memory(server: &mut Server) -> Vec<String> {
    let used = server.used_memory();
    let peak = server.stats.memory_peak;
    let rss = server.facts.rss_bytes;
    let max = server.config.hot.memory_bytes_max;
    let data = server.live.bytes();
    let ratio = if used == 0 { 1.0 } else { rss as f64 / used as f64 };
    vec![
        format!("used_memory:{used}"),
        format!("used_memory_human:{}", human(used)),
        format!("used_memory_rss:{rss}"),
        format!("used_memory_rss_human:{}", human(rss)),
        format!("used_memory_peak:{peak}"),
        format!("used_memory_peak_human:{}", human(peak)),
        format!("used_memory_dataset:{data}"),
        format!("used_memory_startup:0"),
        "used_memory_lua:0".to_owned(),
        "used_memory_scripts:0".to_owned(),
        format!("mem_clients_normal:{}", server.unsent_bytes),
        format!("maxmemory:{max}"),
        format!("maxmemory_human:{}", human(max)),
        format!("maxmemory_policy:{}", server.config.get("maxmemory-policy")),
        format!("mem_fragmentation_ratio:{ratio:.2}"),
        "mem_allocator:libc".to_owned(),
        "active_defrag_running:0".to_owned(),
        "lazyfree_pending_objects:0".to_owned(),
        "lazyfreed_objects:0".to_owned(),
    ]
}

fn about_persistence(server: &Server) -> Vec<String> {
    let facts = &server.facts;
    let runs = u8::from(facts.snapshot_runs);
    let status = if facts.snapshot_failed { "err" } else { "ok" };
    vec![
        format!("loading:{}", u8::from(facts.loading)),
        "async_loading:0".to_owned(),
        format!("rdb_changes_since_last_save:{}", server.stats.dirty),
        format!("rdb_bgsave_in_progress:{runs}"),
        format!("rdb_last_save_time:{}", facts.last_snapshot_ms / 1000),
        format!("rdb_last_bgsave_status:{status}"),
        "rdb_last_bgsave_time_sec:0".to_owned(),
        "rdb_current_bgsave_time_sec:-1".to_owned(),
        format!("rdb_saves:{}", facts.snapshots),
        format!("aof_enabled:{}", u8::from(facts.journal)),
        "aof_rewrite_in_progress:0".to_owned(),
        "aof_rewrite_scheduled:0".to_owned(),
        format!("aof_last_bgrewrite_status:{status}"),
        format!("aof_last_write_status:{}", if facts.journal_failed { "err" } else { "ok" }),
        format!("journal_durability:{}", facts.durability),
        format!("journal_batches:{}", facts.journal_batches),
        format!("journal_bytes:{}", facts.journal_bytes),
    ]
}

fn about_stats(server: &Server) -> Vec<String> {
    let stats = &server.stats;
    vec![
        format!("total_connections_received:{}", stats.connections),
        format!("total_commands_processed:{}", stats.commands),
        format!("instantaneous_ops_per_sec:{}", stats.commands_per_second),
        format!("total_net_input_bytes:{}", stats.input_bytes),
        format!("total_net_output_bytes:{}", stats.output_bytes),
        format!("rejected_connections:{}", stats.connections_refused),
        format!("expired_keys:{}", stats.expired_keys),
        "expired_stale_perc:0.00".to_owned(),
        format!("evicted_keys:{}", stats.evicted_keys),
        format!("evicted_clients:{}", stats.clients_dropped),
        format!("keyspace_hits:{}", stats.hits),
        format!("keyspace_misses:{}", stats.misses),
        format!("pubsub_channels:{}", server.pubsub.channels.len()),
        format!("pubsub_patterns:{}", server.pubsub.patterns.len()),
        format!("pubsubshard_channels:{}", server.pubsub.shards.len()),
        "latest_fork_usec:0".to_owned(),
        "total_forks:0".to_owned(),
        format!("total_error_replies:{}", stats.error_count),
        "unexpected_error_replies:0".to_owned(),
    ]
}

fn about_replication(server: &Server) -> Vec<String> {
    vec![
        "role:master".to_owned(),
        "connected_slaves:0".to_owned(),
        format!("lattice_peers:{}", server.facts.peers),
        "master_failover_state:no-failover".to_owned(),
        format!("master_replid:{}", server.facts.run_id),
        "master_repl_offset:0".to_owned(),
    ]
}

fn about_cpu(server: &Server) -> Vec<String> {
    vec![
        format!("used_cpu_sys:{:.6}", server.facts.cpu_system_s),
        format!("used_cpu_user:{:.6}", server.facts.cpu_user_s),
    ]
}

fn about_commands(server: &Server) -> Vec<String> {
    let rows = server.table.rows().iter().zip(&server.stats.by_command);
    rows.filter(|(_, stats)| 0 < stats.calls + stats.rejected)
        .map(|(row, stats)| {
            let each = stats.micros as f64 / stats.calls.max(1) as f64;
            format!(
                "cmdstat_{}:calls={},usec={},usec_per_call={each:.2},rejected_calls={},\
                 failed_calls={}",
                row.command.name, stats.calls, stats.micros, stats.rejected, stats.failed
            )
        })
        .collect()
}

fn about_errors(server: &Server) -> Vec<String> {
    let errors = server.stats.errors.iter();
    errors.map(|(code, count)| format!("errorstat_{code}:count={count}")).collect()
}

fn about_keyspace(server: &mut Server) -> Vec<String> {
    let now_ms = server.now_ms;
    let found: Vec<_> = server
        .live
        .databases()
        .filter(|(_, _, keys)| 0 < *keys)
        .map(|(id, name, keys)| (id, String::from_utf8_lossy(name).into_owned(), keys))
        .collect();
    let mut lines = Vec::new();
    for (id, name, keys) in found {
        let expires = server.live.db(id, now_ms).expiring();
        lines.push(format!("db{name}:keys={keys},expires={expires},avg_ttl=0"));
    }
    lines
}
