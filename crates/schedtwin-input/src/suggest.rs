// SPDX-License-Identifier: GPL-2.0-or-later
//! "Did you mean": the known word nearest to an unknown one.

/// Words longer than this get no suggestion: nobody mistypes them, and comparing costs their square.
const LONGEST: usize = 64;

/// The candidate that `word` is most likely a slip for, if any is near enough: at most a third of
/// its letters may differ (at least one). Of equally near ones the first is taken.
///
/// ```
/// use schedtwin_input::did_you_mean;
/// assert_eq!(did_you_mean("shedutil", ["performance", "schedutil"]), Some("schedutil"));
/// assert_eq!(did_you_mean("x", ["performance", "schedutil"]), None);
/// ```
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        let allowed = (word.chars().count().max(candidate.chars().count()) / 3).max(1);
        // A word that is only the beginning of a candidate is near it whatever its length.
        let prefix = lower.len() >= 3 && candidate.to_lowercase().starts_with(&lower);
        let distance = if prefix { distance.min(allowed) } else { distance };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Help for an unknown word: the nearest candidate, else what `otherwise` says.
///
/// ```
/// use schedtwin_input::did_you_mean_or;
/// let of = |word| did_you_mean_or(word, ["run", "sleep"], || Some("see the manual".to_string()));
/// assert_eq!(of("slep").unwrap(), "did you mean `sleep`?");
/// assert_eq!(of("dance").unwrap(), "see the manual");
/// ```
pub fn did_you_mean_or<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    otherwise: impl FnOnce() -> Option<String>,
) -> Option<String> {
    match did_you_mean(word, candidates) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => otherwise(),
    }
}

/// Help for an unknown word: the nearest candidate, else all of them (the first eight by name).
pub(crate) fn help_for<'c>(
    word: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    did_you_mean_or(word, candidates.iter().copied(), || {
        let mut sorted = candidates.clone();
        sorted.sort_unstable();
        let shown: Vec<String> = sorted.iter().take(8).map(|c| format!("`{c}`")).collect();
        let more = if sorted.len() > 8 { ", ..." } else { "" };
        (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known =
            ["transition_latency_us", "topology", "coupling", "hz", "idle", "default_policy"];
        for (word, expected) in [
            ("transition_latency_ns", Some("transition_latency_us")),
            ("transition", Some("transition_latency_us")),
            ("Topology", Some("topology")),
            ("cuopling", Some("coupling")),
            ("hx", Some("hz")),
            ("default-policy", Some("default_policy")),
            ("duration", None),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(word, known), expected, "{word}");
        }
        assert_eq!(did_you_mean(&"x".repeat(100_000), known), None);
    }
}
