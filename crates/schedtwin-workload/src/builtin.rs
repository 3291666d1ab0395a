//! Workloads that are compiled in.

/// Name, one line of description, text.
const BUILTINS: [(&str, &str, &str); 2] = [
    (
        "w1",
        "40 threads, each 1.28 ms of work every 16 ms: the speed yardstick (60 s)",
        include_str!("../../../workloads/w1.json"),
    ),
    (
        "ui-phone",
        "a phone's user interface at 60 Hz: scrolling with touch, audio and background work (10 s)",
        include_str!("../../../workloads/ui-phone.json"),
    ),
];

/// The names of the built-in workloads with a line of description each.
pub fn builtin_names() -> Vec<(&'static str, &'static str)> {
    BUILTINS.iter().map(|(name, description, _)| (*name, *description)).collect()
}

/// The text of a built-in.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    BUILTINS.iter().find(|(known, _, _)| *known == name).map(|(_, _, text)| *text)
}
