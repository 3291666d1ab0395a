// SPDX-License-Identifier: GPL-2.0-or-later
//! How often the properties are broken by a kernel that nothing is known to be wrong with: over the random cases of
//! `schedtwin hunt`, alone, without a kernel to compare with.
//!
//! ```text
//! cargo run --release -p schedtwin-lab --example false_alarms -- linux-7.3 1000
//! ```
//!
//! Prints one line for each property with the number of cases that break it, and the first few cases in words: each needs an
//! explanation by the kernel's own rules (overload, RT tasks that leave nothing, an affinity).

use rayon::prelude::*;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::result::{Bounds, Property};
use schedtwin_lab::search::hunt::case_of;
use schedtwin_lab::search::{Answer, Question};
use schedtwin_lab::verdict::words;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kernel = arguments.next().unwrap_or_else(|| "linux-7.3".to_string());
    let cases: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let kernel = match KernelFile::load(&kernel) {
        Ok(kernel) => kernel,
        Err(faults) => {
            eprintln!("{faults}");
            std::process::exit(2);
        }
    };
    for property in Property::ALL {
        let question = Question { property: Some(*property), bounds: Bounds::default() };
        let answers: Vec<(u64, Answer)> = (1..=cases)
            .into_par_iter()
            .map(|seed| (seed, question.ask(&case_of(seed, &question), &kernel)))
            .collect();
        let broken: Vec<_> = answers
            .iter()
            .filter_map(|(seed, answer)| match answer {
                Answer::Broken(breach) => Some((seed, breach)),
                _ => None,
            })
            .collect();
        let unknown = answers.iter().filter(|(_, a)| matches!(a, Answer::Unknown(_))).count();
        println!("{property}: {} of {cases} cases, {unknown} unknown", broken.len());
        for (seed, breach) in broken.iter().take(3) {
            println!("  case {seed}: {}", words(breach));
        }
    }
}
