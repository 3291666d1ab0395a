// SPDX-License-Identifier: GPL-2.0-or-later
//! Which rows of a replay's comparison can be trusted.
//!
//! # Idea
//!
//! The first kernel is the one that recorded. Where its replay shows the same figures as the recording, the twin models what
//! these figures measure, and a difference between kernels in a row that depends on them means something. Where it does not, the
//! row's differences may be an artefact.
//!
//! # Algorithm
//!
//! 1. *Figures* that both the recording and the replay have are set beside each other: [`Figure`], each about one [`Aspect`].
//! 2. Each is held against a limit that was fixed before: counts and shares within [`WITHIN_PCT`] %, latencies within a factor of
//!    [`FACTOR`], the work done at least [`WORK_LEAST_PCT`] %. A count below [`COUNT_LEAST`] and a share that differs by less than
//!    [`POINTS`] points are never off.
//! 3. A row of the comparison depends on aspects, by what it measures ([`depends_on`]), and cannot do without some of them
//!    ([`needs`]). Three words say how far it goes ([`Standing`]): *doubtful* if a figure of these aspects is off, *not judged* if one
//!    that it needs is not in the trace, has fewer than [`COUNT_LEAST`] samples or lies where events were lost; else *compare*.
//! 4. Events that were lost or contradict each other bound all figures ([`Gap`]): from [`LOST_MOST_PCT`] % of the events on, no row
//!    is judged. Power is judged on machines whose power was measured.
//!
//! ```text
//!   waking_latency p90   recorded 195 us   replayed 510 us   2.62 times > 1.5: off
//!      └─ latency ─┬─ waking_latency, wakeup_latency, ...  doubtful
//!                  └─ job_duration, throughput, ...        doubtful
//! ```
//!
//! Differences: the classes of tasks are names of threads, those with the most wakeups; rows of a single thread or CPU share the trust
//! of the whole machine's rows.

use schedtwin_types::metric::{self, Section};

/// Counts and shares may differ by that many percent of the recorded.
pub const WITHIN_PCT: f64 = 20.0;

/// Latencies may differ by that factor, up or down.
pub const FACTOR: f64 = 1.5;

/// The least share of the recorded work that is done in its time, %.
pub const WORK_LEAST_PCT: f64 = 99.0;

/// Counts below, and figures of fewer samples, are not judged: chance alone moves them.
pub const COUNT_LEAST: f64 = 30.0;

/// Shares that differ by fewer points are not off, on machines of at most [`FEW_CPUS`] CPUs.
pub const POINTS: f64 = 2.0;

/// On machines of more CPUs a share of a few points may be all of the work, so its relative error counts alone.
pub const FEW_CPUS: usize = 16;

/// The most events that may be lost or contradict others, % of all: a figure is allowed to be off by [`WITHIN_PCT`] %, and one lost
/// switch spoils the run and the sleep around it.
pub const LOST_MOST_PCT: f64 = 1.0;

/// The aspect of a replay that a figure describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// How long woken tasks wait for a CPU.
    Latency,
    /// How often tasks sleep.
    Sleeps,
    /// How often CPUs switch.
    Switches,
    /// How often tasks change their CPU.
    Migrations,
    /// How long CPUs are busy, all together.
    CpuTime,
    /// On which kind of CPU tasks run.
    Placement,
    /// How fast CPUs are clocked while they run.
    Frequency,
    /// How deep CPUs sleep.
    Idle,
    /// How much of the work is done in time.
    Work,
    /// How long frames take.
    Frames,
}

impl Aspect {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Aspect::Latency => "latency",
            Aspect::Sleeps => "sleeps",
            Aspect::Switches => "switches",
            Aspect::Migrations => "migrations",
            Aspect::CpuTime => "cpu_time",
            Aspect::Placement => "placement",
            Aspect::Frequency => "frequency",
            Aspect::Idle => "idle",
            Aspect::Work => "work",
            Aspect::Frames => "frames",
        }
    }
}

/// The limit that a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`WITHIN_PCT`] of a count.
    Count,
    /// [`WITHIN_PCT`] of a share, or [`POINTS`].
    Share,
    /// [`WITHIN_PCT`] of a sum or of a share.
    Relative,
    /// [`FACTOR`].
    Factor,
    /// [`WORK_LEAST_PCT`].
    Least,
}

impl Limit {
    /// In words.
    pub fn text(self) -> String {
        match self {
            Limit::Count => format!("within {WITHIN_PCT}%"),
            Limit::Share => format!("within {WITHIN_PCT}% or {POINTS} points"),
            Limit::Relative => format!("within {WITHIN_PCT}%"),
            Limit::Factor => format!("within a factor of {FACTOR}"),
            Limit::Least => format!("at least {WORK_LEAST_PCT}%"),
        }
    }
}

/// A number of the recording beside that of its replay on the kernel that recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The aspect that the figure describes.
    pub aspect: Aspect,
    /// The name of the figure, in words: `waking_latency p90`.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// In the recording; `None` where it has none.
    pub recorded: Option<f64>,
    /// In the replay, the mean over the seeds.
    pub replayed: Option<f64>,
    /// The limit that the figure is compared with.
    pub limit: Limit,
    /// How many recorded samples it is made of; `None`: it is a count, and its own number.
    pub samples: Option<u64>,
}

impl Figure {
    /// Replayed divided by recorded.
    pub fn ratio(&self) -> Option<f64> {
        let (recorded, replayed) = (self.recorded?, self.replayed?);
        (recorded > 0.0).then(|| replayed / recorded)
    }

    /// Whether it is within its limit; `None` where it cannot be judged.
    pub fn within(&self) -> Option<bool> {
        let (recorded, replayed) = (self.recorded?, self.replayed?);
        if self.samples.is_some_and(|samples| (samples as f64) < COUNT_LEAST) {
            return None;
        }
        let near = (replayed - recorded).abs() * 100.0 <= WITHIN_PCT * recorded;
        Some(match self.limit {
            Limit::Count if recorded < COUNT_LEAST => return None,
            Limit::Count => near,
            Limit::Relative if recorded <= 0.0 => return None,
            Limit::Relative => near,
            Limit::Share => near || (replayed - recorded).abs() <= POINTS,
            Limit::Factor if recorded <= 0.0 => return None,
            Limit::Factor => replayed <= recorded * FACTOR && recorded <= replayed * FACTOR,
            Limit::Least => replayed >= WORK_LEAST_PCT,
        })
    }

    /// `waking_latency p90 is 2.62 times the recorded 195 us`.
    pub fn text(&self) -> String {
        let number = crate::report::number;
        let unit = if self.unit == "%" { "%".to_owned() } else { format!(" {}", self.unit) };
        let unit = if self.unit == "count" { "" } else { &unit };
        match (self.recorded, self.replayed, self.ratio()) {
            (Some(recorded), _, Some(ratio))
                if self.limit == Limit::Factor || self.limit == Limit::Count =>
            {
                format!("{} is {ratio:.2} times the recorded {}{unit}", self.name, number(recorded))
            }
            (Some(recorded), Some(replayed), _) => {
                format!(
                    "{} is {}{unit}, recorded {}{unit}",
                    self.name,
                    number(replayed),
                    number(recorded)
                )
            }
            _ => format!("{} cannot be compared", self.name),
        }
    }
}

/// The aspects that a metric depends on.
pub fn depends_on(name: &str) -> &'static [Aspect] {
    use Aspect::{
        CpuTime, Frames, Frequency, Idle, Latency, Migrations, Placement, Sleeps, Switches, Work,
    };
    match name {
        "elapsed" | "warmup" => &[],
        "work" | "replayed_work" => &[Work],
        "replayed_frame_duration" | "replayed_jank" => &[Frames, Work],
        "replayed_sleeps" | "replayed_early_wakeups" => &[Sleeps, Work],
        "context_switches" | "preemptions" => &[Switches, Sleeps],
        "migrations" | "balance_passes" | "balance_moved" => &[Migrations],
        "cpu_time" | "utilization" | "cpu_usage" | "overutilized" | "irq_time" => {
            &[CpuTime, Placement, Frequency, Work]
        }
        "ipis" | "ticks" => &[Switches, Idle],
        "contention" => &[Latency, Placement],
        _ => match metric::declared(name).map(|metric| metric.section) {
            Some(Section::Latency) => &[Latency, Sleeps, Work],
            Some(Section::Power) => &[CpuTime, Placement, Frequency, Idle, Work],
            Some(Section::Idle) => &[Idle, Sleeps, Placement],
            Some(Section::Frequency) => &[Frequency, Placement],
            Some(Section::Performance) | None => &[Latency, Sleeps, Frequency, Work],
            Some(Section::Scheduling) => &[Switches, Placement],
        },
    }
}

/// The aspects without which a metric cannot be judged; of the others it is enough that no figure is off.
pub fn needs(name: &str) -> &'static [Aspect] {
    use Aspect::{CpuTime, Frames, Frequency, Idle, Latency, Migrations, Sleeps, Switches, Work};
    match name {
        "elapsed" | "warmup" => &[],
        "work" | "replayed_work" => &[Work],
        "replayed_frame_duration" | "replayed_jank" => &[Frames],
        "replayed_sleeps" | "replayed_early_wakeups" => &[Sleeps],
        "migrations" | "balance_passes" | "balance_moved" => &[Migrations],
        "cpu_time" | "utilization" | "cpu_usage" | "overutilized" | "irq_time" => &[CpuTime, Work],
        "contention" => &[Latency],
        _ => match metric::declared(name).map(|metric| metric.section) {
            Some(Section::Latency) => &[Latency],
            Some(Section::Power) => &[Frequency, Idle, Work],
            Some(Section::Idle) => &[Idle],
            Some(Section::Frequency) => &[Frequency],
            Some(Section::Performance) | None => &[Latency, Work],
            Some(Section::Scheduling) => &[Switches],
        },
    }
}

/// How far a row may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The replay shows what was recorded.
    Compare,
    /// It shows something else.
    Doubtful,
    /// Nothing tells.
    NotJudged,
}

impl Standing {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Compare => "compare",
            Standing::Doubtful => "doubtful",
            Standing::NotJudged => "not judged",
        }
    }
}

/// Why rows are not judged whatever their figures say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// It is about power and energy alone.
    pub of_power: bool,
    /// The reason.
    pub text: String,
}

/// How far each row of a replay's comparison can be trusted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// All figures.
    pub figures: Vec<Figure>,
    /// What keeps rows from being judged.
    pub gaps: Vec<Gap>,
    /// What bounds the part of the recording that is replayed, a sentence each, with counts.
    pub bounds: Vec<String>,
}

/// Figures of an aspect that a report in words lists; JSON has all.
const SHOWN: usize = 3;

/// The topics that the heading names: words, and the metric that stands for them.
const TOPICS: [(&str, &str); 9] = [
    ("latencies", "waking_latency"),
    ("job times", "job_duration"),
    ("work done", "replayed_work"),
    ("power and energy", "power"),
    ("idle states", "idle_residency"),
    ("frequencies", "freq_mean"),
    ("switches", "context_switches"),
    ("migrations", "migrations"),
    ("CPU time by CPU", "cpu_time"),
];

impl Trust {
    /// Figures that are off.
    pub fn off(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| figure.within() == Some(false))
    }

    /// Why rows of a metric are doubtful; empty: they are trusted.
    pub fn doubts(&self, metric: &str) -> Vec<&Figure> {
        if self.unjudged(metric).is_empty() { self.doubts_of(metric) } else { Vec::new() }
    }

    fn doubts_of(&self, metric: &str) -> Vec<&Figure> {
        let aspects = depends_on(metric);
        self.off().filter(|figure| aspects.contains(&figure.aspect)).collect()
    }

    /// Why rows of a metric are not judged; empty: they are, or they need nothing.
    pub fn unjudged(&self, metric: &str) -> Vec<String> {
        if needs(metric).is_empty() {
            return Vec::new();
        }
        let power = metric::declared(metric).is_some_and(|of| of.section == Section::Power);
        let gaps = self.gaps.iter().filter(|gap| power || !gap.of_power);
        let mut reasons: Vec<String> = gaps.map(|gap| gap.text.clone()).collect();
        if reasons.is_empty() {
            reasons.extend(needs(metric).iter().filter_map(|aspect| self.lacks(*aspect)));
        }
        reasons
    }

    /// Why no figure of an aspect can be judged.
    fn lacks(&self, aspect: Aspect) -> Option<String> {
        let of_aspect = || self.figures.iter().filter(|figure| figure.aspect == aspect);
        if of_aspect().any(|figure| figure.within().is_some()) {
            return None;
        }
        let word = aspect.word();
        let recorded: Vec<&Figure> =
            of_aspect().filter(|figure| figure.recorded.is_some()).collect();
        Some(match recorded.first() {
            None => format!("the trace does not have {word}"),
            Some(figure) => {
                let samples = figure.samples.map_or(figure.recorded.unwrap_or(0.0), |n| n as f64);
                match samples < COUNT_LEAST {
                    true => format!("{word}: {samples:.0} recorded, fewer than {COUNT_LEAST}"),
                    false => format!("the replay does not have {word}"),
                }
            }
        })
    }

    /// How far rows of a metric may be compared.
    pub fn standing(&self, metric: &str) -> Standing {
        if self.figures.is_empty() {
            return Standing::Compare;
        }
        match (self.unjudged(metric).is_empty(), self.doubts(metric).is_empty()) {
            (false, _) => Standing::NotJudged,
            (true, false) => Standing::Doubtful,
            (true, true) => Standing::Compare,
        }
    }

    /// Returns one sentence that says what may be compared, what not, and what nothing tells of.
    pub fn sentence(&self) -> String {
        let words = |wanted: Standing| {
            let of = TOPICS.iter().filter(|(_, metric)| self.standing(metric) == wanted);
            of.map(|(words, _)| *words).collect::<Vec<_>>().join(", ")
        };
        let good = words(Standing::Compare);
        let (bad, unknown) = (words(Standing::Doubtful), words(Standing::NotJudged));
        let mut parts = Vec::new();
        match (good.is_empty(), bad.is_empty(), unknown.is_empty()) {
            (false, true, true) => {
                return "the replay shows what was recorded: all rows may be compared".to_owned();
            }
            (true, true, _) => {
                let why: Vec<&str> = self.gaps.iter().map(|gap| gap.text.as_str()).collect();
                let why =
                    if why.is_empty() { "too little is recorded".into() } else { why.join("; ") };
                return format!("not judged: all rows ({why})");
            }
            (true, false, true) => {
                return "the replay is not the recording: compare no rows".to_owned();
            }
            _ => {}
        }
        for (lead, topics) in
            [("compare ", good), ("do not compare ", bad), ("not judged: ", unknown)]
        {
            if !topics.is_empty() {
                parts.push(format!("{lead}{topics}"));
            }
        }
        parts.join("; ")
    }

    /// The line under the heading; empty without figures.
    pub fn lead(&self) -> String {
        if self.figures.is_empty() { String::new() } else { format!("trust: {}", self.sentence()) }
    }

    /// What stands above all tables: the line under the heading, what bounds the replay, and why rows are not judged.
    pub fn lead_and_bounds(&self) -> Vec<String> {
        let mut all = vec![self.lead()];
        all.extend(self.bounds.iter().map(|bound| format!("bounded: {bound}")));
        all.extend(self.gaps.iter().map(|gap| format!("not judged: {}", gap.text)));
        all.retain(|sentence| !sentence.is_empty());
        all
    }

    /// The limits, in one sentence.
    pub fn limits() -> String {
        format!(
            "limits, fixed beforehand: counts and shares {} (shares of at most {FEW_CPUS} CPUs: or {POINTS} points), \
             latencies {}, work done {}; from {COUNT_LEAST} samples on",
            Limit::Count.text(),
            Limit::Factor.text(),
            Limit::Least.text()
        )
    }

    /// The heading, the limits, and each aspect's figure that is most off.
    pub fn sentences(&self) -> Vec<String> {
        if self.figures.is_empty() {
            return Vec::new();
        }
        let mut sentences = vec![self.lead()];
        sentences.extend(self.bounds.iter().map(|bound| format!("bounded: {bound}")));
        sentences.push(Trust::limits());
        let mut off: Vec<&Figure> = self.off().collect();
        off.sort_by_key(|figure| figure.aspect);
        for same in off.chunk_by(|a, b| a.aspect == b.aspect) {
            let shown = same.iter().take(SHOWN);
            let mut texts: Vec<String> = shown.map(|figure| figure.text()).collect();
            if same.len() > SHOWN {
                texts.push(format!("and {} more figures", same.len() - SHOWN));
            }
            sentences.push(format!("doubtful {}: {}", same[0].aspect.word(), texts.join("; ")));
        }
        let mut unknown: Vec<(String, Vec<&str>)> = Vec::new();
        for (words, metric) in TOPICS {
            for reason in self.unjudged(metric) {
                match unknown.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, topics)) => topics.push(words),
                    None => unknown.push((reason, vec![words])),
                }
            }
        }
        for (reason, topics) in unknown {
            let all = topics.len() == TOPICS.len();
            let topics = if all { "all rows".to_owned() } else { topics.join(", ") };
            sentences.push(format!("not judged {topics}: {reason}"));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(aspect: Aspect, limit: Limit, recorded: f64, replayed: f64) -> Figure {
        Figure {
            aspect,
            name: "x".into(),
            unit: "us",
            recorded: Some(recorded),
            replayed: Some(replayed),
            limit,
            samples: None,
        }
    }

    #[test]
    fn limits_are_what_they_say() {
        for (limit, recorded, replayed, within) in [
            (Limit::Count, 100.0, 120.0, Some(true)),
            (Limit::Count, 100.0, 121.0, Some(false)),
            (Limit::Count, 100.0, 79.0, Some(false)),
            (Limit::Count, 29.0, 290.0, None),
            (Limit::Share, 5.0, 6.9, Some(true)),
            (Limit::Share, 50.0, 59.0, Some(true)),
            (Limit::Share, 50.0, 61.0, Some(false)),
            (Limit::Factor, 10.0, 15.0, Some(true)),
            (Limit::Factor, 10.0, 15.1, Some(false)),
            (Limit::Factor, 15.1, 10.0, Some(false)),
            (Limit::Factor, 0.0, 10.0, None),
            (Limit::Least, 100.0, 99.0, Some(true)),
            (Limit::Least, 100.0, 98.9, Some(false)),
        ] {
            let figure = figure(Aspect::Work, limit, recorded, replayed);
            assert_eq!(figure.within(), within, "{figure:?}");
        }
        let unknown = Figure { replayed: None, ..figure(Aspect::Work, Limit::Least, 1.0, 1.0) };
        assert_eq!(unknown.within(), None);
    }

    /// Figures of all aspects, each as recorded.
    fn good() -> Vec<Figure> {
        use Aspect::*;
        [Latency, Sleeps, Switches, Migrations, CpuTime, Placement, Frequency, Idle, Work, Frames]
            .map(|aspect| figure(aspect, Limit::Count, 100.0, 100.0))
            .into()
    }

    #[test]
    fn rows_inherit_the_doubt_of_what_they_depend_on() {
        let mut trust = Trust { figures: good(), ..Trust::default() };
        trust.figures[0] = figure(Aspect::Latency, Limit::Factor, 100.0, 262.0);
        assert_eq!(trust.doubts("wakeup_latency").len(), 1);
        assert_eq!(trust.doubts("job_duration")[0].text(), "x is 2.62 times the recorded 100.0 us");
        for trusted in ["migrations", "power", "elapsed", "freq_mean"] {
            assert_eq!(trust.standing(trusted), Standing::Compare, "{trusted}");
        }
        assert_eq!(
            trust.sentence(),
            "compare work done, power and energy, idle states, frequencies, switches, migrations, CPU time by CPU; \
             do not compare latencies, job times"
        );
        assert_eq!(trust.sentences()[2], "doubtful latency: x is 2.62 times the recorded 100.0 us");
        trust.figures[0].replayed = Some(100.0);
        assert_eq!(
            trust.sentence(),
            "the replay shows what was recorded: all rows may be compared"
        );
        assert_eq!(trust.sentences().len(), 2);
        for aspect in
            [Aspect::Sleeps, Aspect::Frequency, Aspect::Migrations, Aspect::Placement, Aspect::Work]
        {
            trust.figures.push(figure(aspect, Limit::Count, 100.0, 500.0));
        }
        assert!(trust.sentence().starts_with("the replay is not the recording"));
    }

    /// What the trace does not have, or has too little of, is not trusted: it is not judged, and says why.
    #[test]
    fn what_nothing_tells_of_is_not_judged() {
        let mut trust = Trust { figures: good(), ..Trust::default() };
        for (aspect, change) in [
            (Aspect::Frequency, figure(Aspect::Frequency, Limit::Share, 0.0, 0.0)),
            (Aspect::Idle, figure(Aspect::Idle, Limit::Share, 50.0, 50.0)),
        ] {
            let at = trust.figures.iter().position(|figure| figure.aspect == aspect).unwrap();
            trust.figures[at] = change;
            match aspect {
                Aspect::Frequency => trust.figures[at].recorded = None,
                _ => trust.figures[at].samples = Some(29),
            }
        }
        assert_eq!(
            trust.sentence(),
            "compare latencies, job times, work done, switches, migrations, CPU time by CPU; \
             not judged: power and energy, idle states, frequencies"
        );
        let why = trust.unjudged("power").join("; ");
        assert_eq!(why, "the trace does not have frequency; idle: 29 recorded, fewer than 30");
        trust.gaps.push(Gap { of_power: false, text: "7 of 10 events were lost".into() });
        assert_eq!(trust.sentence(), "not judged: all rows (7 of 10 events were lost)");
        assert!(
            trust.sentences().contains(&"not judged all rows: 7 of 10 events were lost".into())
        );
        assert_eq!(trust.standing("elapsed"), Standing::Compare);
    }

    /// Power is never judged where it is estimated, and shares of a machine of many CPUs by their relative error.
    #[test]
    fn estimated_power_and_many_cpus() {
        let mut trust = Trust { figures: good(), ..Trust::default() };
        trust.gaps.push(Gap { of_power: true, text: "the machine's power is estimated".into() });
        let standing = |name: &str| trust.standing(name).word();
        assert_eq!((standing("power"), standing("energy")), ("not judged", "not judged"));
        assert_eq!((standing("idle_residency"), standing("cpu_time")), ("compare", "compare"));
        let share = |limit| figure(Aspect::CpuTime, limit, 2.0, 1.0).within();
        assert_eq!((share(Limit::Share), share(Limit::Relative)), (Some(true), Some(false)));
    }

    /// Every declared metric depends on something, but for the lengths of a run.
    #[test]
    fn every_metric_has_its_aspects() {
        for metric in metric::METRICS {
            let without = ["elapsed", "warmup"].contains(&metric.name);
            assert_eq!(depends_on(metric.name).is_empty(), without, "{}", metric.name);
            assert_eq!(needs(metric.name).is_empty(), without, "{}", metric.name);
            let known = |aspect| depends_on(metric.name).contains(aspect);
            assert!(needs(metric.name).iter().all(known), "{}", metric.name);
        }
    }
}
