// SPDX-License-Identifier: GPL-2.0-or-later
//! `[smt]`: what hardware threads of one core share.
//!
//! A topology says with `core = ["0,6", "1,7"]` which CPUs are threads of one core. A core is one piece of silicon: while one
//! thread executes, all of it has its clock and its power, and a second thread adds a little. Its idle states (`core =
//! true`, see `core_type`) are entered when all its threads have asked for them; until then a
//! thread is idle in its own.
//!
//! ```toml
//! [smt]
//! second_permille = 150          # what each further executing thread adds, thousandths of what it would draw alone
//! speed_permille = [1000, 650]   # speed of each thread while one, two, ... of the core work; the last holds for more
//! polling_permille = 100         # how much of a working thread one in the polling state is to the others; 0 if left out
//! ```
//!
//! Speeds hold for programs and, where path costs are work, for the kernel's paths. Between two whole numbers of working
//! threads the speed changes evenly: beside a poller that counts 100, a thread does 965 thousandths here.
//!
//! The core draws what its thread with the most to do draws (executing, polling, then the
//! shallowest idle state); other threads that execute add their share, and idle ones nothing.
//!
//! Differences: the shares do not depend on what the threads do. A kernel path is paid at the speed of its beginning.

use schedtwin_input::{Diagnostics, Located, TableReader};

use crate::PERMILLE;
use crate::keys::{keys, list};

/// The most threads that the speeds of a core are told for (SMT8).
const MAX_THREADS: usize = 8;

/// Values that the threads of a core share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smt {
    /// The power that each further executing thread adds to its core's, thousandths of what it
    /// would draw alone.
    pub second_permille: u64,
    /// Speed of each thread while one, two, ... of its core work, thousandths; never rising, not empty.
    pub speed_permille: Vec<u64>,
    /// The effect of a polling thread on the others of its core, as a share of a working thread's effect,
    /// thousandths, 0..=1000.
    pub polling_permille: u64,
}

impl Smt {
    /// Speed of each of `working` threads, thousandths.
    pub fn speed(&self, working: usize) -> u64 {
        let last = self.speed_permille.len() - 1;
        self.speed_permille[working.saturating_sub(1).min(last)]
    }

    /// Speed of a thread that works beside others which together are `others` thousandths of a working one.
    ///
    /// ```
    /// let smt = schedtwin_machine::Smt { second_permille: 0, speed_permille: vec![1000, 600], polling_permille: 100 };
    /// assert_eq!([0, 100, 1000, 1100].map(|others| smt.speed_beside(others)), [1000, 960, 600, 600]);
    /// ```
    pub fn speed_beside(&self, others: u64) -> u64 {
        let whole = (others / PERMILLE) as usize;
        let (fewer, more) = (self.speed(1 + whole), self.speed(2 + whole));
        fewer - (fewer - more) * (others % PERMILLE) / PERMILLE
    }
}

keys! {
    /// sharing between hardware threads of a core; needed where a topology has a `core`
    struct SmtKeys in "smt" {
        /// power that each further executing thread adds, as a share of one thread's power
        second_permille: Located<u64> = Always, Whole(0, 1000);
        /// speed of each thread while one, two, ... threads work; the first is 1000
        speed_permille: Located<Vec<u64>> = Always, list(Whole(1, 1000));
        /// effect of a polling thread on the speed of the others, as a share of a working thread's effect; 0
        polling_permille: Located<u64> = May, Whole(0, 1000);
    }
}

/// Reads the table.
pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<Smt> {
    let SmtKeys { second_permille: second, speed_permille: speeds, polling_permille: polling } =
        SmtKeys::read(&mut table, faults);
    table.finish(faults);
    if let Some(polling) = polling.as_ref().filter(|polling| polling.value > PERMILLE) {
        let message = "a thread that polls slows the others no more than one that works: 1000";
        faults.push_at(&polling.at, message, None);
        return None;
    }
    let polling_permille = polling.map_or(0, |polling| polling.value);
    let (second, Located { value: speeds, at }) = (second?, speeds?);
    if second.value > PERMILLE {
        faults.push_at(&second.at, "a thread adds at most what it would draw alone: 1000", None);
        return None;
    }
    let good = (1..=MAX_THREADS).contains(&speeds.len())
        && speeds[0] == PERMILLE
        && speeds.windows(2).all(|pair| pair[1] <= pair[0])
        && speeds.iter().all(|speed| *speed > 0);
    if !good {
        let help = format!(
            "1 to {MAX_THREADS} numbers: 1000 for a thread alone, then none above the last"
        );
        faults.push_at(&at, "these are no speeds of a core's threads", Some(help));
        return None;
    }
    Some(Smt { second_permille: second.value, speed_permille: speeds, polling_permille })
}

#[cfg(test)]
mod tests {
    use crate::Machine;
    use schedtwin_input::Source;
    use schedtwin_types::CpuId;

    fn read(core: &str, table: &str) -> Result<Machine, String> {
        let text = include_str!("../machines/uniform8.toml");
        let text = text.replace("llc = [\"0-7\"]\n", &format!("llc = [\"0-7\"]\n{core}\n"));
        let source = Source::new("threads.toml", format!("{text}\n{table}"));
        Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())
    }

    #[test]
    fn threads_of_a_core() {
        let table = "[smt]\nsecond_permille = 100\nspeed_permille = [1000, 700, 500]\n";
        let machine = read("core = [\"1,5\", \"2-4\"]", table).unwrap();
        let threads = |cpu| machine.threads_of(CpuId(cpu)).map(|c| c.0).collect::<Vec<_>>();
        assert_eq!([threads(0), threads(5), threads(3)], [vec![0], vec![1, 5], vec![2, 3, 4]]);
        let smt = machine.smt.unwrap();
        assert_eq!([0, 1, 2, 3, 9].map(|n| smt.speed(n)), [1000, 1000, 700, 500, 500]);
        let beside = [0, 500, 1000, 1250, 2000, 7000].map(|others| smt.speed_beside(others));
        assert_eq!((beside, smt.polling_permille), ([1000, 850, 700, 650, 500, 500], 0));
        let polling = read("core = [\"0,1\"]", &format!("{table}polling_permille = 250\n"));
        assert_eq!(polling.unwrap().smt.unwrap().polling_permille, 250);
        for (core, table, complaint) in [
            ("core = [\"0,1\"]", String::new(), "nobody says what"),
            ("", table.replace("100\n", "1001\n"), "at most what it would draw alone"),
            ("", table.replace("[1000", "[900"), "no speeds"),
            ("", table.replace("500", "800"), "no speeds"),
            ("", table.replace("500", "0"), "no speeds"),
            ("", format!("{table}polling_permille = 1001\n"), "no more than one that works"),
        ] {
            let faults = read(core, &table).unwrap_err();
            assert!(faults.contains(complaint), "{faults}");
        }
    }
}
