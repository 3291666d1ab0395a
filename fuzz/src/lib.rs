// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fuzz targets share: changes of a text that keep most of it readable, and a run of what was read.
//!
//! Random bytes hardly ever make a file that a reader accepts, and most of what a reader checks comes after it has
//! read all of it. Half of the inputs of a text target are therefore made by libFuzzer, byte by byte, and half here:
//! lines move, disappear and come twice; numbers become those at the edges of their types; words change places.

use libfuzzer_sys::fuzzer_mutate;
use schedtwin_engine::Scenario;
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_input::{Diagnostics, Source};
use schedtwin_machine::Machine;
use schedtwin_workload::Workload;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The text of [`MACHINE`]: a large one would take most of the time.
pub static SMALL_MACHINE: LazyLock<Arc<Source>> = LazyLock::new(|| {
    Source::new("good.toml", include_str!("../../crates/schedtwin-machine/tests/good.toml"))
});

/// The kernel that machines and workloads run with.
pub static KERNEL: LazyLock<KernelFile> =
    LazyLock::new(|| KernelFile::load("linux-6.12").expect("built in"));

/// The machine that kernels and workloads run on.
pub static MACHINE: LazyLock<Machine> =
    LazyLock::new(|| Machine::from_source(&SMALL_MACHINE, &[]).expect("a machine without faults"));

/// Two threads that compute and sleep, one of them in real time.
pub static WORKLOAD: LazyLock<Workload> = LazyLock::new(|| {
    let text = r#"{ "tasks": { "a": { "loop": 3, "run": 200, "sleep": 100 },
        "b": { "loop": 2, "policy": "SCHED_FIFO", "run": 50, "timer": { "ref": "t", "period": 400 } } } }"#;
    Workload::parse_rtapp(Source::new("small.json", text)).expect("a workload without faults")
});

/// CPUs of the largest machine that runs, and events of the longest run.
const CPUS_MAX: usize = 16;
const EVENTS_MAX: u64 = 1000;

/// The beginning of a run: what its readers take may be refused together, and may not fail.
pub fn run_a_little(machine: Machine, kernel: KernelFile, workload: Workload) {
    if machine.nr_cpus() > CPUS_MAX {
        return;
    }
    match Scenario::from_parts(machine, kernel, workload, Some(1_000_000)) {
        Ok(scenario) => {
            let mut twin = scenario.twin::<FlatBoard>(1);
            while twin.step(&mut ()) {
                if twin.events() > EVENTS_MAX {
                    return;
                }
            }
            drop(twin.finish());
        }
        Err(faults) => drop(faults.render(false)),
    }
}

/// A machine that was read is described and runs; faults are shown.
pub fn try_machine(machine: Result<Machine, Diagnostics>) {
    match machine {
        Ok(machine) => {
            drop(machine.describe());
            run_a_little(machine, KERNEL.clone(), WORKLOAD.clone());
        }
        Err(faults) => drop(faults.render(false)),
    }
}

/// The mutator of a target that reads text.
#[macro_export]
macro_rules! text_mutator {
    () => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::change_text(data, size, max_size, seed)
        });
    };
}

/// Numbers at which a check may be wrong by one, or a type may end.
const NUMBERS: [&str; 44] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "7",
    "8",
    "63",
    "64",
    "65",
    "127",
    "128",
    "255",
    "256",
    "257",
    "1023",
    "1024",
    "1025",
    "4095",
    "4096",
    "4097",
    "65535",
    "65536",
    "100000",
    "1000000",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "1000000000000",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0.5",
    "-0.0",
    "1e9",
    "1e308",
    "1e-9",
    "nan",
];

/// Draws by a seed; nothing else is random here.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

/// Changes `data[..size]` to a text of at most `max_size` bytes; its new size. For `fuzz_mutator!`.
pub fn change_text(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut draw = Draw(u64::from(seed) << 1 | 1);
    draw.below(2);
    if draw.below(2) == 0 || size < 2 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut text = data[..size].to_vec();
    for _ in 0..=draw.below(4) {
        change_once(&mut text, &mut draw);
    }
    let new_size = text.len().min(max_size).min(data.len());
    data[..new_size].copy_from_slice(&text[..new_size]);
    new_size
}

fn change_once(text: &mut Vec<u8>, draw: &mut Draw) {
    if text.is_empty() {
        return;
    }
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_line = |byte: u8| byte != b'\n';
    let is_piece = |byte: u8| !b",{}[]\n".contains(&byte);
    match draw.below(10) {
        0..=2 => {
            if let Some(at) = some(text, draw, is_digit) {
                let number = NUMBERS[draw.below(NUMBERS.len())].as_bytes().to_vec();
                text.splice(at, number);
            }
        }
        3 => {
            if let (Some(from), Some(to)) = (some(text, draw, is_digit), some(text, draw, is_digit))
            {
                let number = text[from].to_vec();
                text.splice(to, number);
            }
        }
        4 => {
            if let (Some(from), Some(to)) = (some(text, draw, is_word), some(text, draw, is_word)) {
                let word = text[from].to_vec();
                text.splice(to, word);
            }
        }
        // A line is taken away, comes twice, or moves.
        5 => drop(some(text, draw, is_line).map(|at| text.drain(with_end(text, at)).count())),
        6 | 7 => {
            if let (Some(from), Some(to)) = (some(text, draw, is_line), some(text, draw, is_line)) {
                let line = text[with_end(text, from)].to_vec();
                text.splice(to.start..to.start, line);
            }
        }
        // So does a piece of a list.
        8 => drop(some(text, draw, is_piece).map(|at| text.drain(with_end(text, at)).count())),
        _ => {
            if let (Some(from), Some(to)) = (some(text, draw, is_piece), some(text, draw, is_piece))
            {
                let piece = text[with_end(text, from)].to_vec();
                text.splice(to.start..to.start, piece);
            }
        }
    }
}

/// Some run of bytes of a kind, the next one behind a drawn place; `None`: there is none.
fn some(text: &[u8], draw: &mut Draw, kind: impl Fn(u8) -> bool) -> Option<Range<usize>> {
    if text.is_empty() {
        return None;
    }
    let place = draw.below(text.len());
    let found = (place..text.len()).chain(0..place).find(|at| kind(text[*at]))?;
    let start = text[..found].iter().rposition(|byte| !kind(*byte)).map_or(0, |at| at + 1);
    let end = text[found..].iter().position(|byte| !kind(*byte)).map_or(text.len(), |n| found + n);
    Some(start..end)
}

/// The same with the byte that ends it.
fn with_end(text: &[u8], at: Range<usize>) -> Range<usize> {
    at.start..(at.end + 1).min(text.len())
}

/// Reads a recording to its end. Its events cannot be more than the bytes that they came from, unpacked at the most that
/// any packing gives.
pub fn read_to_the_end<S: schedtwin_trace::event::TraceSource>(
    opened: Result<S, schedtwin_trace::event::SourceFault>,
    bytes: usize,
) {
    /// Unpacked bytes of a packed one: runs of Zstandard give the most.
    const RATIO_MAX: usize = 50_000;
    match opened {
        Ok(mut source) => {
            let mut events = 0;
            while let Ok(Some(_)) = source.next_event() {
                events += 1;
                assert!(events <= bytes.saturating_mul(RATIO_MAX));
            }
            for (name, count) in source.report().counts(source.names()) {
                assert!(count.unused <= count.events, "{name}");
            }
        }
        Err(fault) => drop(fault.to_string()),
    }
}
