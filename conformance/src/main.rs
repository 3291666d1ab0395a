//! The program that compares schedtwin with the real kernel.
//!
//! `l0`: arithmetic, against the kernel's own C; `l1`: decisions, against recordings.

use schedtwin_conformance::l0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let code = match args.first().map(|command| command.trim_start_matches('-')) {
        Some("l0") => l0::main(&args[1..]),
        Some("l1") => schedtwin_conformance::l1::main(&args[1..]),
        _ => {
            eprintln!("usage: schedtwin-conformance (l0|l1) ...   (each explains itself)");
            2
        }
    };
    std::process::exit(code);
}
