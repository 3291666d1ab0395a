// SPDX-License-Identifier: GPL-2.0-or-later
//! `[turns]`: the CPUs execute in turns, one at a time, as those of an emulator with one host thread do.
//!
//! ```toml
//! [turns]
//! piece_ns = 3_300       # programs pass the turn after so much work; 0: the CPUs execute at the same time
//! work_by_clock = true   # programs measure that work by the clock
//! ```
//!
//! A CPU whose turn it is not makes no progress: its task waits, and interrupts that have come to it wait too. The clock
//! goes on. With `work_by_clock` a program's work is time that passes, not time in which its CPU has the turn, as it is
//! for programs that read the clock to know how far they are.
//!
//! `crates/schedtwin-engine/src/twin/turns.rs` says when a turn ends and which CPU is next.

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::Ns;

use crate::keys::{keys, upto};

/// The longest piece of work, ns.
const MAX_PIECE_NS: u64 = 1_000_000_000;

/// The way in which CPUs take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// The work after which a program passes the turn, ns at the present speed.
    pub piece_ns: Ns,
    /// A program's work is time on the clock; otherwise it is time in which its CPU has the turn.
    pub work_by_clock: bool,
}

keys! {
    /// CPUs that execute in turns, one at a time, as an emulator with one host thread executes them
    struct TurnsKeys in "turns" {
        /// work after which a program passes the turn; 0: the CPUs execute at the same time
        piece_ns: Located<u64> = Always, upto(MAX_PIECE_NS);
        /// programs measure their work by the clock, so it goes on while other CPUs have the turn; false
        work_by_clock: bool = May, Switch;
    }
}

/// Reads the table.
pub(crate) fn read(mut table: TableReader<'_>, faults: &mut Diagnostics) -> Option<Turns> {
    let TurnsKeys { piece_ns, work_by_clock } = TurnsKeys::read(&mut table, faults);
    table.finish(faults);
    let piece = piece_ns?;
    if piece.value > MAX_PIECE_NS {
        faults.push_at(&piece.at, format!("`piece_ns` is above {MAX_PIECE_NS}"), None);
    }
    let turns = Turns { piece_ns: piece.value, work_by_clock: work_by_clock.unwrap_or(false) };
    (turns.piece_ns > 0).then_some(turns)
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use crate::Machine;
    use schedtwin_input::Source;

    fn read(table: &str) -> Result<Option<Turns>, String> {
        let text = include_str!("../machines/uniform8.toml");
        let source = Source::new("turns.toml", format!("{text}\n{table}"));
        let machine = Machine::from_source(&source, &[]).map_err(|faults| faults.to_string())?;
        Ok(machine.turns)
    }

    #[test]
    fn a_table_says_how_cpus_take_turns() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("[turns]\npiece_ns = 0\n"), Ok(None));
        let turns = |work_by_clock| Ok(Some(Turns { piece_ns: 3_300, work_by_clock }));
        assert_eq!(read("[turns]\npiece_ns = 3_300\n"), turns(false));
        assert_eq!(read("[turns]\npiece_ns = 3_300\nwork_by_clock = true\n"), turns(true));
        for (table, complaint) in [
            ("work_by_clock = true", "piece_ns"),
            ("piece_ns = 1_000_000_001", "is above 1000000000"),
            ("piece_ns = 1\nquantum_ns = 1", "quantum_ns"),
        ] {
            let faults = read(&format!("[turns]\n{table}\n")).unwrap_err();
            assert!(faults.contains(complaint), "{table}: {faults}");
        }
    }
}
