// SPDX-License-Identifier: GPL-2.0-or-later
//! Scores of kernels: one number each, for searches.
//!
//! A kernel with C of the user's runs in a confined process of its own. The baseline is measured in this one, so that C cannot change
//! what it is compared with.

use std::path::Path;

use schedtwin_lab::score::{self as lab, Baseline, Candidate, Conditions, Prepared, Scored};
use schedtwin_lab::sweep::cache::Cache;
use schedtwin_lab::{Progress, report};
use serde_json::Value;

use crate::isolated::{isolated, prepare};
use crate::{Error, GivenKernel};

/// What a kernel has in a suite.
#[derive(Clone, Debug)]
pub struct Score {
    /// 100 is the baseline, more is better, 0 breaks a limit.
    pub score: f64,
    /// Why it ended early, if it did.
    pub reason: Option<String>,
    /// Everything, as `schedtwin.score/1` has it.
    pub document: Value,
}

/// The conditions of scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScoreOptions<'o> {
    /// Runs are kept there, but for those of C.
    pub cache: Option<&'o Path>,
    /// A kernel that cannot reach this score is over.
    pub beat: Option<f64>,
}

/// Scores kernels in a suite: a name, or the path of a file. A kernel that cannot be loaded has 0.
///
/// ```
/// use schedtwin::{Progress, ScoreOptions, score};
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
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("tiny.toml");
/// std::fs::write(&path, suite)?;
/// let kernels = ["linux-7.3".into(), "linux-7.3:hzz=1".into()];
/// let scores = score(path.to_str().unwrap(), &kernels, &ScoreOptions::default(), &Progress::new())?;
/// assert_eq!((scores[0].score, scores[1].score), (100.0, 0.0));
/// assert!(scores[1].reason.as_ref().unwrap().contains("there is no setting `hzz`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn score(
    suite: &str,
    kernels: &[GivenKernel],
    options: &ScoreOptions,
    progress: &Progress,
) -> Result<Vec<Score>, Error> {
    prepare();
    let prepared = Prepared::of(lab::load(suite)?)?;
    let cache = options.cache.map(Cache::open).transpose()?;
    let candidates: Vec<Candidate> = kernels.iter().map(Candidate::given).collect();
    progress.expect_runs(prepared.suite.runs());
    let baseline = prepared.baseline(cache.as_ref(), progress)??;
    let conditions = Conditions {
        beat: options.beat,
        race: false,
        cache: cache.as_ref(),
        baseline: Some(&baseline),
    };
    let has_c = |of: &Candidate| of.kernel.as_ref().is_ok_and(|kernel| !kernel.code.is_empty());
    let (with_c, plain): (Vec<_>, Vec<_>) = candidates.iter().cloned().partition(has_c);
    let mut of_plain = lab::score(&prepared, &plain, &conditions, progress)??
        .into_iter()
        .map(|scored| read(&report::scores(&prepared, &[scored])));
    let mut of_c =
        with_c.iter().map(|of| Ok(confined(&prepared, of, &baseline, options, progress)));
    let next = |of: &Candidate| {
        let found = if has_c(of) { of_c.next() } else { of_plain.next() };
        found.expect("each candidate has one")
    };
    candidates.iter().map(next).collect()
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
        isolated(std::iter::once(&scenario), &[], Some(progress), run).and_then(|text| read(&text))
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
        Some(score) => Ok(Score { score, reason, document }),
        None => Err(std::io::Error::other("what was scored is no score").into()),
    }
}
