//! The program `kumiko`; see [`kumiko::program`].

fn main() -> std::process::ExitCode {
    kumiko::program::main()
}
