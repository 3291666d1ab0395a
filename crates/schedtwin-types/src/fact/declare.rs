// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes [`super::FactKind`] and its methods from the table of facts.

/// Declares the kinds of facts. An entry of the table is
///
/// ```text
/// /// What happened.
/// Name "name in records" {
///     /// What the field is.
///     field: Type,
/// } => {
///     digest: [(code, small, word)];               records of the running digest; none: it does not move it
///     words: "event", |words, at| text;            its line in `explain`
///     ftrace: |out, cpu| out.event(...);           ftrace text; `{}`: it has no event there
///     perfetto: |out, cpu| out.event(...);         Perfetto; `{}`: the format has no place for it
/// }
/// ```
///
/// The order of kinds and fields, and the codes of the digest, are part of records and digests.
macro_rules! facts {
    ($(
        $(#[$doc:meta])*
        $name:ident $record:literal $({ $( $(#[$field_doc:meta])* $field:ident: $type:ty ),* $(,)? })? => {
            digest: [$( ($code:literal, $small:expr, $word:expr) ),*];
            words: $event:expr, |$words:pat_param, $at:pat_param| $text:expr;
            ftrace: |$ftrace:pat_param, $ftrace_cpu:pat_param| $ftrace_text:expr;
            perfetto: |$perfetto:pat_param, $perfetto_cpu:pat_param| $packets:expr;
        }
    )*) => {
        /// The kind of event. Names are those of the kernel's trace events where it has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FactKind {
            $( $(#[$doc])* $name $({ $( $(#[$field_doc])* $field: $type ),* })?, )*
        }

        #[allow(unused_variables, reason = "no form of a fact needs all its fields")]
        impl FactKind {
            /// The kinds' names in records, in the order of the table.
            pub const NAMES: &'static [&'static str] = &[$($record),*];

            /// Returns its name in records.
            pub const fn name(&self) -> &'static str {
                match self { $( FactKind::$name { .. } => $record, )* }
            }

            /// Passes on each task that it is about.
            pub fn for_each_task(&self, mut each: impl FnMut(TaskId)) {
                match *self {
                    $( FactKind::$name $({ $($field),* })? => {
                        $($( if let Some(task) = FactField::task($field) { each(task); } )*)?
                    } )*
                }
            }

            /// Passes on what the running digest absorbs: a code, at most 40 bits, and a word.
            #[inline(always)]
            pub fn digest(&self, mut absorb: impl FnMut(u8, u64, u64)) {
                match *self {
                    $( FactKind::$name $({ $($field),* })? => { $( absorb($code, $small, $word); )* } )*
                }
            }

            /// Returns event and details of the fact, which happened at `at`, for a listing.
            pub fn words(&self, words: &impl FactWords, at: Ns) -> (&'static str, String) {
                match *self {
                    $( FactKind::$name $({ $($field),* })? => {
                        let ($words, $at) = (words, at);
                        ($event, $text)
                    } )*
                }
            }

            /// Writes the fact, which happened on `cpu`, as ftrace text.
            pub fn ftrace(&self, out: &mut impl FtraceForm, cpu: CpuId) {
                match *self {
                    $( FactKind::$name $({ $($field),* })? => {
                        let ($ftrace, $ftrace_cpu) = (out, cpu);
                        $ftrace_text
                    } )*
                }
            }

            /// Writes the fact, which happened on `cpu`, into a Perfetto trace.
            #[inline(always)]
            pub fn perfetto(&self, out: &mut impl PerfettoForm, cpu: CpuId) {
                match *self {
                    $( FactKind::$name $({ $($field),* })? => {
                        let ($perfetto, $perfetto_cpu) = (out, cpu);
                        $packets
                    } )*
                }
            }
        }
    };
}

pub(super) use facts;
