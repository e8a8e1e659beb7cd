//! `cargo xtask tidy`: checks of the house that a program can make.

fn main() {
    eprintln!("usage: cargo xtask tidy");
    std::process::exit(2);
}
