// SPDX-License-Identifier: GPL-2.0-or-later
//! The board's workloads: reads `NAME.wl.txt`, which the emulated board's init executes.
//!
//! ```text
//! gov teo                                           the idle governor
//! seconds 6
//! task ui     1 0 0 -1 -1 1000000:1800:16667>render      for ever: 1.8 ms of work, wake render, sleep
//! task render 1 0 0 -1 -1 wait:2600                      for each wake 2.6 ms of work
//! ```
//!
//! A line of `task` is NAME COUNT MASK NICE UMIN UMAX WHAT...; MASK is hexadecimal, 0 = all CPUs; UMIN and UMAX
//! are −1 where nothing is clamped. WHAT is attributes and *steps*, which go round:
//!
//! | | |
//! |---|---|
//! | `LOOPS:RUN:PERIOD[>NAME]` | LOOPS times: work, wake the tasks NAME, sleep to the period's end; period 0: a sleep of 1 us, −1: none |
//! | `LOOPS:RUN:wait[>NAME]`, `wait:RUN[>NAME]` | LOOPS times: wait for a wake (they are counted), work, wake NAME |
//! | `cpus:MASK` `nice:N` | changes its own affinity, its own nice value |
//! | `fork:COUNT:RUN` | starts children that inherit all, work and end |
//! | `start:US` `fifo:PRIORITY` `slice:US` `group:NAME` | attributes |
//!
//! Work and periods are in microseconds, work at capacity 1024 and full speed; each is N, N~ (drawn from 1 to 2 N)
//! or A..B (rises from the first loop to the last). A period that is missed restarts from the end of the work.
//!
//! All faults of a file are told at once. What the board can do and the twin cannot is refused by name when the
//! file is made a scenario ([`super::scenario`]), not here.

use schedtwin_input::{Diagnostics, Source, did_you_mean};
use schedtwin_types::rng::Rng;
use std::ops::Range;
use std::sync::Arc;

/// CPUs of the board.
pub const NR_CPUS: u32 = 8;
/// The most tasks that the board can hold.
const TASKS_MAX: u32 = 256;
/// Steps of a task.
const STEPS_MAX: usize = 32;
/// Letters of a task's name that are told apart: a thread is called by the first 11, `-` and a number.
const NAME_MAX: usize = 11;
/// Microseconds beyond which a number is a slip of the pen: an hour.
const US_MAX: i64 = 3_600_000_000;

/// A workload as written.
#[derive(Clone, Debug)]
pub struct BoardWorkload {
    /// The file's name without folders and endings.
    pub name: String,
    /// Where it was read.
    pub source: Arc<Source>,
    /// `gov`: the idle governor, teo unless given.
    pub idle_governor: String,
    /// `seconds`: how long the tasks run; 5 unless given, as on the board.
    pub seconds: u32,
    /// `features`: sched_features to be set, `NO_` in front for off.
    pub features: Vec<Named>,
    /// `rate_limit_us` of schedutil, if given.
    pub rate_limit_us: Option<u32>,
    /// `slice_us`: the fair class's base slice, if given.
    pub slice_us: Option<u32>,
    /// `fair_server 0` takes it away.
    pub fair_server: bool,
    /// `eas 0`: the sysctl that turns energy aware scheduling off.
    pub energy_aware: bool,
    /// `fast 0`: schedutil's thread in place of the fast switch.
    pub fast_switch: bool,
    /// `latency_us`: the transition latency that the driver states.
    pub latency_us: u32,
    /// `probes 1`: the kernel prints its signals, which takes its time.
    pub probes: bool,
    /// `group`: task groups.
    pub groups: Vec<Named>,
    /// The tasks.
    pub tasks: Vec<BoardTask>,
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// As written.
    pub text: String,
    /// Its bytes.
    pub at: Range<usize>,
}

/// A line of `task`.
#[derive(Clone, Debug)]
pub struct BoardTask {
    /// Its name; the threads are called `NAME-N`.
    pub name: Named,
    /// How many threads.
    pub count: u32,
    /// The CPUs it may use; 0 = all.
    pub mask: u32,
    /// −20..=19.
    pub nice: i32,
    /// Clamps of utilisation, −1 = none, with their place.
    pub clamps: [(i32, Range<usize>); 2],
    /// Microseconds after the common start: of the first thread and of the last.
    pub start_us: (u32, u32),
    /// SCHED_FIFO of this priority in place of the nice value.
    pub fifo: Option<u32>,
    /// A slice of its own, microseconds.
    pub own_slice_us: Option<u32>,
    /// The group that it is in.
    pub group: Option<Named>,
    /// The steps of the task, in turn.
    pub steps: Vec<Step>,
}

/// An amount of microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// `A..B`; `N` is `N..N`.
    Rises(i64, i64),
    /// `N~`: drawn from 1 to 2 N.
    Drawn(i64),
}

/// The action after the work of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Sleep to the period's absolute end; 0 = 1 us, below = no sleep.
    Period(Amount),
    /// Nothing: a wake was waited for before it.
    Waited,
}

/// One thing after another.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Work, again and again.
    Work {
        /// How often.
        loops: u32,
        /// Work at full capacity.
        run: Amount,
        /// The action that comes with it.
        then: Then,
        /// The task that it wakes after the work.
        wakes: Option<Named>,
    },
    /// A new affinity; 0 = all CPUs.
    Cpus(u32),
    /// A new nice value.
    Nice(i32),
    /// Children.
    Fork {
        /// How many.
        count: u32,
        /// Their work.
        run: Amount,
    },
}

impl Amount {
    /// The value in loop `index` of `loops`, as the board computes it.
    pub fn value(self, index: u32, loops: u32, random: &mut Random) -> i64 {
        match self {
            Amount::Drawn(mean) => 1 + (random.0.next() % (2 * mean as u64)) as i64,
            Amount::Rises(from, _) if loops < 2 => from,
            Amount::Rises(from, to) => from + (to - from) * i64::from(index) / i64::from(loops - 1),
        }
    }

    /// Whether it is the same in each loop.
    pub fn is_fixed(self) -> bool {
        matches!(self, Amount::Rises(from, to) if from == to)
    }
}

/// The board's generator (splitmix64): the twin draws what the board drew.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// Of a thread by its number among all threads, and the recording's seed.
    pub fn of_thread(number: u64, seed: u64) -> Random {
        Random(Rng::with_state(number.wrapping_mul(1_000_003).wrapping_add(seed)))
    }
}

impl BoardTask {
    /// Returns the tasks that it wakes.
    pub fn wakes(&self) -> impl Iterator<Item = &Named> {
        self.steps.iter().filter_map(|step| match step {
            Step::Work { wakes, .. } => wakes.as_ref(),
            _ => None,
        })
    }

    /// Whether it waits for wakes.
    pub fn waits(&self) -> bool {
        self.steps.iter().any(|s| matches!(s, Step::Work { then: Then::Waited, .. }))
    }

    /// Its shortest period, if it has one; of drawn periods none is meant.
    pub fn period_us(&self) -> Option<u32> {
        let period = |step: &Step| match step {
            Step::Work { then: Then::Period(Amount::Rises(a, b)), .. } if *a > 0 && *b > 0 => {
                Some(*a.min(b) as u32)
            }
            _ => None,
        };
        self.steps.iter().filter_map(period).min()
    }
}

/// A word of a line and where it stands.
#[derive(Clone)]
struct Word<'a> {
    text: &'a str,
    at: Range<usize>,
}

impl<'a> Word<'a> {
    fn part(&self, from: usize, to: usize) -> Word<'a> {
        Word { text: &self.text[from..to], at: self.at.start + from..self.at.start + to }
    }
}

/// The words of a text's line that begins at `offset`.
fn words(line: &str, offset: usize) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut from = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match (c.is_whitespace(), from) {
            (false, None) => from = Some(at),
            (true, Some(start)) => {
                found.push(Word { text: &line[start..at], at: offset + start..offset + at });
                from = None;
            }
            _ => {}
        }
    }
    found
}

/// Collects the faults of one file.
struct Reader<'s> {
    source: &'s Arc<Source>,
    faults: Diagnostics,
}

impl Reader<'_> {
    fn fault(&mut self, word: &Word<'_>, message: impl Into<String>, help: Option<String>) {
        self.faults.push(self.source, word.at.clone(), message, help);
    }

    /// A number in a range, or a fault and `None`.
    fn number(&mut self, word: &Word<'_>, what: &str, range: Range<i64>) -> Option<i64> {
        match word.text.parse::<i64>() {
            Ok(number) if range.contains(&number) => Some(number),
            Ok(number) => {
                let message =
                    format!("{what} is {number}, outside {}..={}", range.start, range.end - 1);
                self.fault(word, message, None);
                None
            }
            Err(_) => {
                self.fault(word, format!("{what} is `{}`, not a number", word.text), None);
                None
            }
        }
    }

    fn name(&mut self, word: &Word<'_>) -> Option<Named> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if word.text.is_empty() || !word.text.chars().all(good) {
            let help = Some("names are of ASCII letters, digits and _".into());
            self.fault(word, format!("`{}` cannot name a task", word.text), help);
            return None;
        }
        if word.text.len() > NAME_MAX {
            let message = format!("the name `{}` is longer than {NAME_MAX} letters", word.text);
            self.fault(word, message, Some("threads could not be told apart in a trace".into()));
            return None;
        }
        Some(Named { text: word.text.to_string(), at: word.at.clone() })
    }

    /// `FIELDS[>NAME]`: the part before, and whom it wakes.
    fn wakes<'a>(&mut self, word: &Word<'a>) -> (Word<'a>, Option<Named>) {
        match word.text.find('>') {
            Some(at) => {
                let name = self.name(&word.part(at + 1, word.text.len()));
                (word.part(0, at), name)
            }
            None => (word.clone(), None),
        }
    }

    /// `N`, `N~` or `A..B`.
    fn amount(&mut self, word: &Word<'_>, what: &str, least: i64) -> Option<Amount> {
        let length = word.text.len();
        if let Some(at) = word.text.find("..") {
            let from = self.number(&word.part(0, at), what, least..US_MAX);
            let to = self.number(&word.part(at + 2, length), what, least..US_MAX);
            return Some(Amount::Rises(from?, to?));
        }
        if word.text.ends_with('~') {
            return self.number(&word.part(0, length - 1), what, 1..US_MAX).map(Amount::Drawn);
        }
        self.number(word, what, least..US_MAX).map(|n| Amount::Rises(n, n))
    }

    fn mask(&mut self, word: &Word<'_>) -> Option<u32> {
        let mask = u32::from_str_radix(word.text, 16).ok().filter(|mask| *mask < 1 << NR_CPUS);
        if mask.is_none() {
            let help = Some(format!("hexadecimal, of {NR_CPUS} CPUs; 0 = all"));
            self.fault(word, format!("the mask is `{}`", word.text), help);
        }
        mask
    }

    fn step(&mut self, word: &Word<'_>) -> Option<Step> {
        let (fields, wakes) = self.wakes(word);
        let mut parts = Vec::new();
        let mut from = 0;
        for to in fields.text.match_indices(':').map(|(at, _)| at).chain([fields.text.len()]) {
            parts.push(fields.part(from, to));
            from = to + 1;
        }
        let loops = 1..i64::from(i32::MAX);
        let texts: Vec<&str> = parts.iter().map(|p| p.text).collect();
        match texts.as_slice() {
            ["cpus", _] => self.mask(&parts[1]).map(Step::Cpus),
            ["nice", _] => self.number(&parts[1], "nice", -20..20).map(|n| Step::Nice(n as i32)),
            ["wait", _] => {
                let run = self.amount(&parts[1], "RUN", 0)?;
                Some(Step::Work { loops: 1, run, then: Then::Waited, wakes })
            }
            ["fork", _, _] => {
                let count = self.number(&parts[1], "COUNT", 1..1025);
                let run = self.amount(&parts[2], "RUN", 0)?;
                Some(Step::Fork { count: count? as u32, run })
            }
            [_, _, _] => {
                let loops = self.number(&parts[0], "LOOPS", loops);
                let run = self.amount(&parts[1], "RUN", 0);
                let then = match parts[2].text {
                    "wait" => Some(Then::Waited),
                    _ => self.amount(&parts[2], "PERIOD", -1).map(Then::Period),
                };
                Some(Step::Work { loops: loops? as u32, run: run?, then: then?, wakes })
            }
            _ => {
                let help = "as 100:1800:16667, 100:1800:16667>render, wait:2600, cpus:0f, nice:5, \
                            fork:4:500, start:3000, fifo:50, slice:500";
                let message = format!("`{}` is nothing that a task does", word.text);
                self.fault(word, message, Some(help.into()));
                None
            }
        }
    }

    fn task(&mut self, words: &[Word<'_>]) -> Option<BoardTask> {
        let [_, name, count, mask, nice, umin, umax, rest @ ..] = words else {
            let help = Some("task NAME COUNT MASK NICE UMIN UMAX WHAT...".into());
            self.fault(&words[0], "a task has at least six fields and something to do", help);
            return None;
        };
        let name = self.name(name);
        let count = self.number(count, "COUNT", 1..i64::from(TASKS_MAX) + 1);
        let mask = self.mask(mask);
        let nice = self.number(nice, "NICE", -20..20);
        let clamps = [(umin, "UMIN"), (umax, "UMAX")]
            .map(|(word, what)| (self.number(word, what, -1..1025), word.at.clone()));
        let (mut steps, mut start_us, mut fifo, mut own_slice_us, mut group) =
            (Vec::new(), Some((0, 0)), None, None, None);
        let before = self.faults.0.len();
        for word in rest.iter().take_while(|word| !word.text.starts_with('#')) {
            let (key, value) = match word.text.split_once(':') {
                Some((key, _)) => (key, word.part(key.len() + 1, word.text.len())),
                None => (word.text, word.clone()),
            };
            match key {
                "start" => {
                    start_us = match self.amount(&value, "start", 0) {
                        Some(Amount::Rises(from, to)) => Some((from as u32, to as u32)),
                        Some(Amount::Drawn(_)) => {
                            self.fault(word, "a start is not drawn", None);
                            None
                        }
                        None => None,
                    };
                }
                "fifo" => fifo = self.number(&value, "fifo", 1..100).map(|n| n as u32),
                "slice" => {
                    own_slice_us = self.number(&value, "slice", 1..1_000_000).map(|n| n as u32);
                }
                "group" => group = Some(Named { text: value.text.into(), at: value.at.clone() }),
                _ => steps.extend(self.step(word)),
            }
        }
        let last = rest.last().unwrap_or(umax);
        if steps.len() > STEPS_MAX {
            self.fault(last, format!("more than {STEPS_MAX} steps"), None);
        }
        let works = steps.iter().any(|step| matches!(step, Step::Work { .. }));
        if !works && self.faults.0.len() == before {
            self.fault(last, "the task never works", Some("as 100:1800:16667".into()));
        }
        let [(umin, umin_at), (umax, umax_at)] = clamps;
        Some(BoardTask {
            name: name?,
            count: count? as u32,
            mask: mask?,
            nice: nice? as i32,
            clamps: [(umin? as i32, umin_at), (umax? as i32, umax_at)],
            start_us: start_us?,
            fifo,
            own_slice_us,
            group,
            steps,
        })
    }

    fn flag(&mut self, word: &Word<'_>, what: &str) -> Option<bool> {
        self.number(word, what, 0..2).map(|n| n == 1)
    }

    fn setting(&mut self, words: &[Word<'_>], found: &mut BoardWorkload) {
        const KNOWN: [&str; 12] = [
            "gov",
            "seconds",
            "features",
            "rate_limit_us",
            "slice_us",
            "fair_server",
            "eas",
            "fast",
            "latency_us",
            "probes",
            "group",
            "task",
        ];
        let key = &words[0];
        if !KNOWN.contains(&key.text) {
            let nearest = did_you_mean(key.text, KNOWN);
            let help = nearest.map_or_else(
                || format!("known: {}", KNOWN.join(", ")),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            self.fault(key, format!("there is no setting `{}`", key.text), Some(help));
            return;
        }
        let end = words.iter().position(|w| w.text.starts_with('#')).unwrap_or(words.len());
        let value = match &words[1..end] {
            [value] => value,
            [value, _] if key.text == "group" => value,
            _ => {
                self.fault(key, format!("`{}` takes one value", key.text), None);
                return;
            }
        };
        match key.text {
            "gov" if ["teo", "menu"].contains(&value.text) => {
                found.idle_governor = value.text.to_string();
            }
            "gov" => {
                let help = Some("the board has teo and menu".into());
                self.fault(value, format!("there is no idle governor `{}`", value.text), help);
            }
            "seconds" => {
                let seconds = self.number(value, "seconds", 1..3601);
                found.seconds = seconds.map_or(found.seconds, |s| s as u32);
            }
            "features" | "group" => {
                let named = Named { text: value.text.to_string(), at: value.at.clone() };
                let list =
                    if key.text == "group" { &mut found.groups } else { &mut found.features };
                list.push(named);
            }
            "rate_limit_us" => {
                found.rate_limit_us =
                    self.number(value, "rate_limit_us", 0..US_MAX).map(|us| us as u32);
            }
            "slice_us" => {
                found.slice_us = self.number(value, "slice_us", 1..1_000_000).map(|us| us as u32);
            }
            "fair_server" => {
                found.fair_server = self.flag(value, "fair_server").unwrap_or(found.fair_server);
            }
            "eas" => found.energy_aware = self.flag(value, "eas").unwrap_or(found.energy_aware),
            "fast" => found.fast_switch = self.flag(value, "fast").unwrap_or(found.fast_switch),
            "latency_us" => {
                let us = self.number(value, "latency_us", 1..US_MAX / 1000);
                found.latency_us = us.map_or(found.latency_us, |us| us as u32);
            }
            _ => found.probes = self.flag(value, "probes").unwrap_or(found.probes),
        }
    }

    /// Names that belong together: who is woken waits, and no name stands twice.
    fn names(&mut self, tasks: &[BoardTask]) {
        fn word(name: &Named) -> Word<'_> {
            Word { text: &name.text, at: name.at.clone() }
        }
        for (index, task) in tasks.iter().enumerate() {
            let name = &task.name;
            if tasks[..index].iter().any(|t| t.name.text == name.text) {
                self.fault(&word(name), format!("a second task `{}`", name.text), None);
            }
            for woken in task.wakes() {
                if tasks.iter().any(|t| t.name.text == woken.text && t.waits()) {
                    continue;
                }
                let waiting = tasks.iter().filter(|t| t.waits());
                let help = match did_you_mean(&woken.text, waiting.map(|t| t.name.text.as_str())) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => "a task is woken if it has wait:RUN".into(),
                };
                let message = format!("`{}` does not wait", woken.text);
                self.fault(&word(woken), message, Some(help));
            }
        }
        let threads: u32 = tasks.iter().map(|t| t.count).sum();
        if let (true, Some(task)) = (threads > TASKS_MAX, tasks.last()) {
            self.fault(
                &word(&task.name),
                format!("{threads} threads; the board has room for {TASKS_MAX}"),
                None,
            );
        }
    }
}

impl BoardWorkload {
    /// Reads a file's text.
    ///
    /// ```
    /// use schedtwin_conformance::l2::workload::BoardWorkload;
    /// use schedtwin_input::Source;
    /// let text = "gov toe\ntask ui 1 0 40 -1 -1 10:500\n";
    /// let faults = BoardWorkload::parse(&Source::new("a.wl.txt", text)).unwrap_err();
    /// assert_eq!(
    ///     faults.to_string(),
    ///     "a.wl.txt:1:5: there is no idle governor `toe`\n  help: the board has teo and menu\n\
    ///      a.wl.txt:2:13: NICE is 40, outside -20..=19\n\
    ///      a.wl.txt:2:22: `10:500` is nothing that a task does\n  \
    ///      help: as 100:1800:16667, 100:1800:16667>render, wait:2600, cpus:0f, nice:5, fork:4:500, \
    ///      start:3000, fifo:50, slice:500"
    /// );
    /// ```
    pub fn parse(source: &Arc<Source>) -> Result<BoardWorkload, Diagnostics> {
        let stem = source.name.rsplit('/').next().unwrap_or_default();
        let mut found = BoardWorkload {
            name: stem.split('.').next().unwrap_or_default().to_string(),
            source: source.clone(),
            idle_governor: "teo".into(),
            seconds: 5,
            features: Vec::new(),
            rate_limit_us: None,
            slice_us: None,
            fair_server: true,
            energy_aware: true,
            fast_switch: true,
            latency_us: 500,
            probes: true,
            groups: Vec::new(),
            tasks: Vec::new(),
        };
        let mut reader = Reader { source, faults: Diagnostics::new() };
        let mut offset = 0;
        let mut tasks = 0;
        for line in source.text.split_inclusive('\n') {
            let words = words(line, offset);
            offset += line.len();
            match words.first().map(|w| w.text) {
                None => {}
                Some(first) if first.starts_with('#') => {}
                Some("task") => {
                    tasks += 1;
                    found.tasks.extend(reader.task(&words));
                }
                Some(_) => reader.setting(&words, &mut found),
            }
        }
        if tasks == found.tasks.len() {
            reader.names(&found.tasks);
        }
        if tasks == 0 {
            reader.faults.push_whole(source, "there is no task", Some("a line `task ...`".into()));
        }
        reader.faults.sort();
        reader.faults.into_result(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BoardWorkload, Diagnostics> {
        BoardWorkload::parse(&Source::new("folder/some.wl.txt", text))
    }

    #[test]
    fn what_the_board_can_do_is_read() {
        let text = "# a comment\n\
            gov menu   # another\n\
            seconds 4\nprobes 0\nfair_server 0\nrate_limit_us 1000\nfast 0\nlatency_us 5000\n\
            features NO_RUN_TO_PARITY\nslice_us 3000\n\
            task ui 2 f0 -5 -1 -1 start:0..25000 90:1800:16667>render 8:300~:2000 1:0:40000\n\
            task render 1 0 0 0 512 fifo:50 slice:700 90:900..100:wait cpus:0f nice:3 fork:4:500\n";
        let wl = parse(text).unwrap();
        assert_eq!((wl.name.as_str(), wl.seconds, wl.probes), ("some", 4, false));
        assert_eq!((wl.rate_limit_us, wl.slice_us, wl.latency_us), (Some(1000), Some(3000), 5000));
        assert!(!wl.fair_server && !wl.fast_switch && wl.features[0].text == "NO_RUN_TO_PARITY");
        let [ui, render] = wl.tasks.as_slice() else { panic!("{:?}", wl.tasks) };
        assert_eq!((ui.count, ui.mask, ui.nice, ui.start_us), (2, 0xf0, -5, (0, 25_000)));
        assert_eq!(ui.period_us(), Some(2000));
        let drawn = Step::Work {
            loops: 8,
            run: Amount::Drawn(300),
            then: Then::Period(Amount::Rises(2000, 2000)),
            wakes: None,
        };
        assert_eq!(ui.steps[1], drawn);
        assert_eq!(
            (render.fifo, render.own_slice_us, render.clamps[1].0),
            (Some(50), Some(700), 512)
        );
        assert_eq!(render.steps[1..3], [Step::Cpus(0x0f), Step::Nice(3)]);
        assert!(render.waits() && !ui.waits());
    }

    #[test]
    fn faults_have_their_place() {
        for (text, expected) in [
            ("", "folder/some.wl.txt: there is no task\n  help: a line `task ...`"),
            ("task a 1 0 0 -1 -1", "1:17: the task never works\n  help: as 100:1800:16667"),
            ("task a 1 0 0 -1", "1:1: a task has at least six fields and something to do"),
            ("task a 0 0 0 -1 -1 1:2:3", "1:8: COUNT is 0, outside 1..=256"),
            ("task a 1 100 0 -1 -1 1:2:3", "1:10: the mask is `100`"),
            ("task a 1 0 0 -1 -1 1:x:3", "1:22: RUN is `x`, not a number"),
            ("task a 1 0 0 -1 -1 1:2:3>b", "1:26: `b` does not wait"),
            (
                "task a 1 0 0 -1 -1 wait:1>aa\ntask ab 1 0 0 -1 -1 1:2:3>a",
                "1:27: `aa` does not wait",
            ),
            ("task a 1 0 0 -1 -1 1:2:3\ntask a 1 0 0 -1 -1 1:2:3", "2:6: a second task `a`"),
            ("task a-1 1 0 0 -1 -1 1:2:3", "1:6: `a-1` cannot name a task"),
            ("task abcdefghijkl 1 0 0 -1 -1 1:2:3", "longer than 11 letters"),
            (
                "goov teo\ntask a 1 0 0 -1 -1 1:2:3",
                "1:1: there is no setting `goov`\n  help: did you mean `gov`?",
            ),
            ("seconds\ntask a 1 0 0 -1 -1 1:2:3", "1:1: `seconds` takes one value"),
            ("probes 2\ntask a 1 0 0 -1 -1 1:2:3", "1:8: probes is 2, outside 0..=1"),
        ] {
            let faults = parse(text).expect_err(text).to_string();
            assert!(faults.contains(expected), "{text}: {faults}");
        }
    }

    /// Values by the board's own arithmetic (splitmix64; a rise in whole microseconds).
    #[test]
    fn amounts_are_the_boards() {
        let mut random = Random::of_thread(0, 0);
        // The first outputs of splitmix64 with state 0.
        assert_eq!(
            [random.0.next(), random.0.next()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        let mut random = Random::of_thread(2, 7);
        let values: Vec<i64> =
            (0..1000).map(|l| Amount::Drawn(300).value(l, 1000, &mut random)).collect();
        assert!(values.iter().all(|v| (1..=600).contains(v)));
        let mean = values.iter().sum::<i64>() / 1000;
        assert!((280..320).contains(&mean), "{mean}");
        let rise: Vec<i64> =
            (0..4).map(|l| Amount::Rises(900, 600).value(l, 4, &mut random)).collect();
        assert_eq!(rise, [900, 800, 700, 600]);
        assert_eq!(Amount::Rises(5, 9).value(0, 1, &mut random), 5);
    }
}
