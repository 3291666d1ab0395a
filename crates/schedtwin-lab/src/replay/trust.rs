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
//! 3. A row of the comparison depends on aspects, by what it measures ([`depends_on`]). It is `trusted` if no figure of these
//!    is off, else `doubtful`, with the figures that are.
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

/// Counts below are not judged: chance alone moves them.
pub const COUNT_LEAST: f64 = 30.0;

/// Shares that differ by fewer points are not off.
pub const POINTS: f64 = 2.0;

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
        let near = (replayed - recorded).abs() * 100.0 <= WITHIN_PCT * recorded;
        Some(match self.limit {
            Limit::Count if recorded < COUNT_LEAST => return None,
            Limit::Count => near,
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
    use Aspect::{Frames, Frequency, Idle, Latency, Migrations, Placement, Sleeps, Switches, Work};
    match name {
        "elapsed" | "warmup" => &[],
        "work" | "replayed_work" => &[Work],
        "replayed_frame_duration" | "replayed_jank" => &[Frames, Work],
        "replayed_sleeps" | "replayed_early_wakeups" => &[Sleeps, Work],
        "context_switches" | "preemptions" => &[Switches, Sleeps],
        "migrations" | "balance_passes" | "balance_moved" => &[Migrations],
        "cpu_time" | "utilization" | "cpu_usage" | "overutilized" | "irq_time" => {
            &[Placement, Frequency]
        }
        "ipis" | "ticks" => &[Switches, Idle],
        "contention" => &[Latency, Placement],
        _ => match metric::declared(name).map(|metric| metric.section) {
            Some(Section::Latency) => &[Latency, Sleeps, Work],
            Some(Section::Power) => &[Placement, Frequency, Idle, Work],
            Some(Section::Idle) => &[Idle, Sleeps, Placement],
            Some(Section::Frequency) => &[Frequency, Placement],
            Some(Section::Performance) | None => &[Latency, Sleeps, Frequency, Work],
            Some(Section::Scheduling) => &[Switches, Placement],
        },
    }
}

/// How far each row of a replay's comparison can be trusted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// All figures.
    pub figures: Vec<Figure>,
}

/// Figures of an aspect that a report in words lists; JSON has all.
const SHOWN: usize = 3;

/// The topics that the heading names: words, and the metric that stands for them.
const TOPICS: [(&str, &str); 8] = [
    ("latencies", "waking_latency"),
    ("job times", "job_duration"),
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
        let aspects = depends_on(metric);
        self.off().filter(|figure| aspects.contains(&figure.aspect)).collect()
    }

    /// Returns one sentence that says what may be compared and what not.
    pub fn sentence(&self) -> String {
        let (good, bad): (Vec<_>, Vec<_>) =
            TOPICS.iter().partition(|(_, metric)| self.doubts(metric).is_empty());
        let words = |topics: Vec<&(&str, &str)>| {
            topics.iter().map(|(words, _)| *words).collect::<Vec<_>>().join(", ")
        };
        match (good.is_empty(), bad.is_empty()) {
            (_, true) => "the replay shows what was recorded: all rows may be compared".to_owned(),
            (true, false) => "the replay is not the recording: compare no rows".to_owned(),
            (false, false) => format!("compare {}; do not compare {}", words(good), words(bad)),
        }
    }

    /// The line under the heading; empty without figures.
    pub fn lead(&self) -> String {
        if self.figures.is_empty() { String::new() } else { format!("trust: {}", self.sentence()) }
    }

    /// The limits, in one sentence.
    pub fn limits() -> String {
        format!(
            "limits, fixed beforehand: counts and shares {}, latencies {}, work done {}",
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
        let mut sentences = vec![self.lead(), Trust::limits()];
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

    #[test]
    fn rows_inherit_the_doubt_of_what_they_depend_on() {
        let mut trust = Trust {
            figures: vec![
                figure(Aspect::Latency, Limit::Factor, 100.0, 262.0),
                figure(Aspect::Migrations, Limit::Count, 100.0, 100.0),
            ],
        };
        assert_eq!(trust.doubts("wakeup_latency").len(), 1);
        assert_eq!(trust.doubts("job_duration")[0].text(), "x is 2.62 times the recorded 100.0 us");
        for trusted in ["migrations", "power", "elapsed", "freq_mean"] {
            assert!(trust.doubts(trusted).is_empty(), "{trusted}");
        }
        assert_eq!(
            trust.sentence(),
            "compare power and energy, idle states, frequencies, switches, migrations, CPU time by CPU; \
             do not compare latencies, job times"
        );
        assert_eq!(trust.sentences()[2], "doubtful latency: x is 2.62 times the recorded 100.0 us");
        trust.figures[0].replayed = Some(100.0);
        assert_eq!(
            trust.sentence(),
            "the replay shows what was recorded: all rows may be compared"
        );
        assert_eq!(trust.sentences().len(), 2);
        for aspect in [Aspect::Sleeps, Aspect::Frequency, Aspect::Migrations, Aspect::Placement] {
            trust.figures.push(figure(aspect, Limit::Count, 100.0, 500.0));
        }
        assert!(trust.sentence().starts_with("the replay is not the recording"));
    }

    /// Every declared metric depends on something, but for the lengths of a run.
    #[test]
    fn every_metric_has_its_aspects() {
        for metric in metric::METRICS {
            let without = ["elapsed", "warmup"].contains(&metric.name);
            assert_eq!(depends_on(metric.name).is_empty(), without, "{}", metric.name);
        }
    }
}
