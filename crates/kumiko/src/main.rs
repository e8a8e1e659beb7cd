//! The program `kumiko`; see [`kumiko::program`].

/// The data of the Redis front is many small values, which the system's allocator pads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    kumiko::program::main()
}
