//! Engines side by side in one run: ours through the contract, others bare.
//!
//! Each engine runs in a process of its own, one after another, so that its memory is its own. The
//! table has one row per workload and engine, with the ratio of our disk engine to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

mod store;
mod work;

use work::{Line, Plan};

const USAGE: &str = "\
usage: bench-kv [options]
  --keys N         how many keys (1000000); a hundredth of it for values of 100 kB
  --seconds S      how long each workload runs (3)
  --engines A,B    which engines (all of this build)
  --only W,X       which workloads, by the beginning of their names: put get scan mixed durable
  --sizes A,B      sizes of values in bytes (100,1024,100000)
  --cache-mib N    the cache of engines that have one (64)
  --dir D          where the stores go (a new directory among the temporary ones)
  --tiny           a few keys and a blink of time: does everything still work?";

#[derive(Clone, Debug)]
struct Args {
    plan: Plan,
    engines: Vec<String>,
    dir: PathBuf,
    /// The one engine that this process measures.
    child: Option<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let args = match parse(&words) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match &args.child {
        Some(engine) => measure(engine, &args),
        None => compare(&args, &words),
    }
}

fn parse(words: &[String]) -> Result<Args, String> {
    let plan = Plan {
        keys: 1_000_000,
        time: Duration::from_secs(3),
        sizes: vec![100, 1024, 100_000],
        only: Vec::new(),
        cache_bytes: 64 << 20,
    };
    let engines = store::ENGINES.iter().map(ToString::to_string).collect();
    let dir = std::env::temp_dir().join(format!("bench-kv-{}", std::process::id()));
    let mut args = Args { plan, engines, dir, child: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--tiny" {
            args.plan.keys = 2_000;
            args.plan.time = Duration::from_millis(30);
            continue;
        }
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || value.parse::<f64>().map_err(|_| format!("{value} is no number"));
        let list = || value.split(',').map(str::to_owned).collect::<Vec<String>>();
        match word.as_str() {
            "--keys" => args.plan.keys = number()?.max(10.0) as u64,
            "--seconds" => args.plan.time = Duration::from_secs_f64(number()?.max(0.001)),
            "--cache-mib" => args.plan.cache_bytes = (number()?.max(1.0) as usize) << 20,
            "--engines" => args.engines = list(),
            "--only" => args.plan.only = list(),
            "--sizes" => {
                let sizes = list().iter().map(|it| it.parse()).collect::<Result<_, _>>();
                args.plan.sizes = sizes.map_err(|_| format!("{value} is no list of sizes"))?;
            }
            "--dir" => args.dir = value.into(),
            "--child" => args.child = Some(value.clone()),
            _ => return Err(format!("there is no option {word}")),
        }
    }
    if let Some(unknown) = args.engines.iter().find(|it| !store::ENGINES.contains(&it.as_str())) {
        return Err(format!("there is no engine {unknown} in this build"));
    }
    Ok(args)
}

/// Measures one engine in this process and writes lines that the parent reads.
fn measure(engine: &str, args: &Args) -> ExitCode {
    let mut out = std::io::stdout();
    let mut tell = |text: String| {
        writeln!(out, "{text}").and_then(|()| out.flush()).expect("the parent reads");
    };
    work::run(engine, &args.dir, &args.plan, &mut |line| {
        let Line { name, per_second, p50_ns, p99_ns } = line;
        tell(format!("line\t{name}\t{per_second}\t{p50_ns}\t{p99_ns}"));
    });
    tell(format!("peak\t{}", status_kib("VmHWM:") * 1024));
    tell(format!("disk\t{}", bytes_below(&args.dir)));
    ExitCode::SUCCESS
}

/// A figure of the kernel about this process.
fn status_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What the files below a directory take on the device; holes do not count.
fn bytes_below(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

#[derive(Default)]
struct Results {
    /// By workload in the order of the first engine, then by engine.
    order: Vec<String>,
    lines: BTreeMap<(String, String), Line>,
    figures: BTreeMap<(String, String), u64>,
}

fn compare(args: &Args, words: &[String]) -> ExitCode {
    let mut results = Results::default();
    for engine in &args.engines {
        eprintln!("{engine} ...");
        let dir = args.dir.join(engine);
        std::fs::create_dir_all(&dir).expect("a directory for the store");
        let done = run_child(engine, &dir, words, &mut results);
        std::fs::remove_dir_all(&dir).expect("the store goes away");
        if !done {
            eprintln!("{engine} failed");
            return ExitCode::FAILURE;
        }
    }
    std::fs::remove_dir_all(&args.dir).ok();
    print(args, &results);
    ExitCode::SUCCESS
}

fn run_child(engine: &str, dir: &Path, words: &[String], results: &mut Results) -> bool {
    let program = std::env::current_exe().expect("this program has a name");
    let mut child = Command::new(program)
        .args(words)
        .args(["--child", engine, "--dir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let out = child.stdout.take().expect("the child's output is ours");
    for text in BufReader::new(out).lines().map_while(Result::ok) {
        let parts: Vec<&str> = text.split('\t').collect();
        match parts.as_slice() {
            ["line", name, per_second, p50_ns, p99_ns] => {
                let line = Line {
                    name: (*name).to_owned(),
                    per_second: per_second.parse().unwrap_or(0.0),
                    p50_ns: p50_ns.parse().unwrap_or(0),
                    p99_ns: p99_ns.parse().unwrap_or(0),
                };
                if !results.order.contains(&line.name) {
                    results.order.push(line.name.clone());
                }
                results.lines.insert(((*name).to_owned(), engine.to_owned()), line);
            }
            [figure, number] => {
                let number = number.parse().unwrap_or(0);
                results.figures.insert(((*figure).to_owned(), engine.to_owned()), number);
            }
            _ => {}
        }
    }
    child.wait().is_ok_and(|status| status.success())
}

fn print(args: &Args, results: &Results) {
    println!(
        "{} keys, {:?} per workload, {} MiB of cache, one process per engine",
        args.plan.keys,
        args.plan.time,
        args.plan.cache_bytes >> 20
    );
    println!("rows per second; 'ratio' is ours (disk) to theirs, above 1 we are faster\n");
    let of = |name: &str, engine: &str| results.lines.get(&(name.to_owned(), engine.to_owned()));
    println!(
        "{:<18} {:<8} {:>12} {:>10} {:>10} {:>7}",
        "workload", "engine", "per second", "p50 us", "p99 us", "ratio"
    );
    for name in &results.order {
        for engine in &args.engines {
            let Some(line) = of(name, engine) else { continue };
            let ratio = of(name, "disk").map_or(f64::NAN, |ours| ours.per_second / line.per_second);
            let micros = |nanos: u64| nanos as f64 / 1000.0;
            println!(
                "{name:<18} {engine:<8} {:>12.0} {:>10.1} {:>10.1} {ratio:>7.2}",
                line.per_second,
                micros(line.p50_ns),
                micros(line.p99_ns)
            );
        }
    }
    println!(
        "\n{:<8} {:>12} {:>14} {:>28}",
        "engine", "peak MiB", "on disk MiB", "durable 16 / 1 thread"
    );
    for engine in &args.engines {
        let figure = |name: &str| results.figures.get(&(name.to_owned(), engine.clone())).copied();
        let mib = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / f64::from(1 << 20);
        let durable = |threads: u8| of(&format!("durable/{threads} 100 B"), engine);
        let gain = match (durable(16), durable(1)) {
            (Some(many), Some(one)) => format!("{:.2}", many.per_second / one.per_second),
            _ => "-".into(),
        };
        println!(
            "{engine:<8} {:>12.1} {:>14.1} {gain:>28}",
            mib(figure("peak")),
            mib(figure("disk"))
        );
    }
}
