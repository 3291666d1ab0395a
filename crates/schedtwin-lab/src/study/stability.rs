//! Would another set of seeds give the same verdicts?
//!
//! A study is run again and again, each time with fresh seeds. A row whose verdict depends on which seeds
//! were drawn is not worth much; the share of reruns that have the commonest verdict says how much.
