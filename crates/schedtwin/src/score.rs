// SPDX-License-Identifier: GPL-2.0-or-later
//! Scores of kernels: one number each, for searches.
//!
//! A kernel with C of the user's runs in a confined process of its own. The baseline is measured in this one, so that C cannot change
//! what it is compared with.

use std::path::Path;
use std::time::Duration;

use schedtwin_lab::score::{self as lab, Baseline, Candidate, Conditions, Prepared, Scored};
use schedtwin_lab::sweep::cache::Cache;
use schedtwin_lab::{Progress, report};
use serde_json::Value;

use crate::isolated::{isolated_within, prepare};
use crate::{Error, GivenKernel, GivenSuite};

/// What a kernel has in a suite.
#[derive(Clone, Debug)]
pub struct Score {
    /// 100 is the baseline, more is better, 0 breaks a limit.
    pub score: f64,
    /// Why it ended early, if it did.
    pub reason: Option<String>,
    /// Half the width of the 95 % interval over the seeds; `None` from one seed.
    pub half_width: Option<f64>,
    /// Everything, as `schedtwin.score/1` has it.
    pub document: Value,
}

/// One document of all: `schedtwin.score/1` with every candidate.
pub fn score_document(scores: &[Score]) -> String {
    let documents: Vec<Value> = scores.iter().map(|of| of.document.clone()).collect();
    report::joined_scores(&documents).unwrap_or_default()
}

/// The conditions of scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScoreOptions<'o> {
    /// Runs are kept there, but for those of C.
    pub cache: Option<&'o Path>,
    /// A kernel that cannot reach this score is over.
    pub beat: Option<f64>,
    /// A kernel without C that another one without C beats, as far as can be estimated, is over.
    pub race: bool,
    /// The seed of the first run, in the place of the suite's.
    pub first_seed: Option<u64>,
    /// A kernel with C that has not come to its end by then has 0.
    pub limit: Option<Duration>,
}

/// Scores kernels in a suite: a name, the path of a file, or a text. A kernel that cannot be loaded has 0; `baseline` names the suite's.
///
/// ```
/// use schedtwin::{GivenSuite, Progress, ScoreOptions, score};
/// let suite = r#"
/// name = "tiny"
/// description = "one run"
/// baseline = "linux-7.3"
/// seeds = 1
/// [[job]]
/// name = "scrolling"
/// machines = ["uniform8"]
/// workloads = ["ui-phone"]
/// duration = "100ms"
/// measure = [{ metric = "wakeup_latency.mean" }]
/// "#;
/// let kernels = ["linux-7.3".into(), "linux-7.3:hzz=1".into()];
/// let suite = GivenSuite::text("tiny", suite);
/// let scores = score(suite, &kernels, &ScoreOptions::default(), &Progress::new())?;
/// assert_eq!((scores[0].score, scores[1].score), (100.0, 0.0));
/// assert!(scores[1].reason.as_ref().unwrap().contains("there is no setting `hzz`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn score(
    suite: impl Into<GivenSuite>,
    kernels: &[GivenKernel],
    options: &ScoreOptions,
    progress: &Progress,
) -> Result<Vec<Score>, Error> {
    prepare();
    let mut suite = suite.into().load()?;
    suite.first_seed = options.first_seed.unwrap_or(suite.first_seed);
    let prepared = Prepared::of(suite)?;
    let cache = options.cache.map(Cache::open).transpose()?;
    let spelled = |kernel: &GivenKernel| match kernel {
        GivenKernel::Named(name) => GivenKernel::from(prepared.suite.spelled(name)),
        _ => kernel.clone(),
    };
    progress.expect_runs(prepared.suite.runs());
    let baseline = prepared.baseline(cache.as_ref(), progress)??;
    let (mut scores, mut plain): (Vec<Option<Score>>, Vec<Candidate>) = Default::default();
    for kernel in kernels {
        // What is tried when C is loaded is tried in its own process alone: it is loaded when those before are done.
        let candidate = Candidate::given(&spelled(kernel));
        if candidate.kernel.as_ref().is_ok_and(|kernel| !kernel.code.is_empty()) {
            // Announced here, since another process performs them.
            progress.expect_runs(prepared.suite.runs());
            scores.push(Some(confined(&prepared, &candidate, &baseline, options, progress)));
        } else {
            scores.push(None);
            plain.push(candidate);
        }
    }
    let conditions = Conditions {
        beat: options.beat,
        race: options.race,
        cache: cache.as_ref(),
        baseline: Some(&baseline),
    };
    let mut of_plain = lab::score(&prepared, &plain, &conditions, progress)??
        .into_iter()
        .map(|scored| read(&report::scores(&prepared, &[scored])));
    let each = scores.into_iter();
    each.map(|of_c| of_c.map_or_else(|| of_plain.next().expect("each has one"), Ok)).collect()
}

/// A candidate with C, in a process of its own. What comes back may be forged; it is read as any document.
fn confined(
    prepared: &Prepared,
    candidate: &Candidate,
    baseline: &Baseline,
    options: &ScoreOptions,
    progress: &Progress,
) -> Score {
    let kernel = candidate.kernel.as_ref().expect("it has C, so it was loaded");
    let conditions =
        Conditions { beat: options.beat, race: false, cache: None, baseline: Some(baseline) };
    let run = || -> Result<String, Error> {
        let candidates = std::slice::from_ref(candidate);
        let scored = lab::score(prepared, candidates, &conditions, progress)??;
        Ok(report::scores(prepared, &scored))
    };
    let done = prepared.scenario(0, 0, kernel).map_err(Error::from).and_then(|scenario| {
        let done =
            isolated_within(options.limit, std::iter::once(&scenario), &[], Some(progress), run);
        done.and_then(|text| read(&text))
    });
    done.unwrap_or_else(|error| {
        let ended = Scored::ended(&candidate.name, prepared, &error.to_string());
        read(&report::scores(prepared, &[ended])).expect("it was just written")
    })
}

/// The one candidate of a document.
fn read(text: &str) -> Result<Score, Error> {
    let document: Value = serde_json::from_str(text).map_err(std::io::Error::from)?;
    let of = &document["candidates"][0];
    let score = of["score"].as_f64();
    let reason = of["outcome"]["text"].as_str().map(String::from);
    match score {
        Some(score) => {
            let half_width = of["half_width"].as_f64();
            Ok(Score { score, reason, half_width, document })
        }
        None => Err(std::io::Error::other("what was scored is no score").into()),
    }
}
