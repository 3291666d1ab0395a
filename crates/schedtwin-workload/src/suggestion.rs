//! "did you mean ...?": the nearest of the known words to a mistyped one.

/// Words longer than this are not compared: nobody mistypes them, and the comparison is quadratic.
const LONGEST: usize = 40;

/// The known word with the fewest edits to `word` (letters inserted, removed, replaced, or swapped
/// with their neighbour), if it is near enough to be meant: at most one edit per three letters, at
/// least one.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let bound = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            (strsim::osa_distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .filter(|(count, _)| *count <= bound)
        .min_by_key(|(count, _)| *count)
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"?`, or else `otherwise`.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> Option<String>,
) -> Option<String> {
    match nearest(word, known) {
        Some(meant) => Some(format!("did you mean \"{meant}\"?")),
        None => otherwise(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_only_if_it_is_near() {
        let known = ["duration", "default_policy", "calibration", "run"];
        for (word, meant) in [
            ("durration", Some("duration")),
            ("Duration", Some("duration")),
            ("default-policy", Some("default_policy")),
            ("rum", Some("run")),
            ("frequency", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
