//! The program that compares schedtwin with the real kernel.
//!
//! `l0`: arithmetic, against the kernel's own C; `rational`: the fair class, against its definitions in
//! exact fractions; `l1`: averages, against recordings, with `l1 fair` the fair class's decisions; `mechanisms`:
//! every decision that recordings show; `side-by-side`: executions, in the twin and recorded; `judge`: these on a
//! kernel tree of the user's.

use schedtwin_conformance::l0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let code = match args.first().map(|command| command.trim_start_matches('-')) {
        // They need the whole kernel crate, so they stand beside the others.
        Some("l0") if args.get(1).is_some_and(|subject| subject == "cfs") => {
            schedtwin_conformance::cfs::main(&args[2..])
        }
        Some("l0") if args.get(1).is_some_and(|subject| subject == "eevdf") => {
            schedtwin_conformance::eevdf::main(&args[2..])
        }
        Some("l0") if args.get(1).is_some_and(|subject| subject.starts_with("schedutil")) => {
            schedtwin_conformance::schedutil::main(&args[2..], args[1] == "schedutil-6.1")
        }
        Some("l0") => l0::main(&args[1..]),
        Some("rational") => schedtwin_conformance::rational::main(&args[1..]),
        Some("l1") => schedtwin_conformance::l1::main(&args[1..]),
        Some("mechanisms") => schedtwin_conformance::l1::mechanisms::main(&args[1..]),
        Some("judge") => schedtwin_conformance::l2::judge::main(&args[1..]),
        Some("side-by-side") => schedtwin_conformance::l2::main(&args[1..]),
        _ => {
            eprintln!(
                "usage: schedtwin-conformance (l0|rational|l1|mechanisms|side-by-side|judge) ...   (each explains itself)"
            );
            2
        }
    };
    std::process::exit(code);
}
