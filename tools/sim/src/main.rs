//! `sim [seeds] [first]`: runs seeds and prints what happened. A failing seed panics with its
//! number.
#![expect(clippy::print_stdout, reason = "it prints what happened")]

use sim::World;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|it| it.parse::<u64>().ok());
    let count = arguments.next().unwrap_or(100);
    let first = arguments.next().unwrap_or(0);
    let mut total = sim::Report::default();
    for seed in first..first + count {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        match run {
            Ok(report) => total.add(&report),
            Err(panic) => {
                println!("seed {seed} failed; run it again with `sim 1 {seed}`");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{count} seeds from {first}: {total:?}");
}
