// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments with a user's C: their runs happen in a confined process, and only what they measured comes back.
//!
//! A program never loads the C of a tree in its own process, as the command does not ([`schedtwin_engine::worker`]). Loading an experiment
//! compiles; what runs it is given here as a closure, with the form in which its results travel. Without C the closure is called
//! where it stands. `SCHEDTWIN_CONFINE=off` takes that for all.
//!
//! What comes back may have been forged by the C: it is read as any file is, and what is no result is an error.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use schedtwin_engine::outside::{self, OutsideFiles};
use schedtwin_engine::result::{Breach, Property};
use schedtwin_engine::worker::{self, Service};
use schedtwin_engine::{Difference, Scenario, confine};
use schedtwin_lab::Progress;
use schedtwin_lab::crash::Crash;
use schedtwin_lab::sweep::run::Run as SweepRun;
use schedtwin_lab::verdict::RunTroubles;
use schedtwin_types::metric::{self, Kind, Metric};
use serde_json::{Value, json};

use crate::Error;
use crate::events::{Events, Field};
use crate::explanation::Decision;

/// Kernels that are loaded from now on have their C compiled, and not loaded.
pub(crate) fn prepare() {
    confine::defer();
}

/// Results that travel.
pub(crate) trait Travels: Sized {
    fn pack(&self) -> Value;
    /// `None`: these are no such results.
    fn unpack(value: Value) -> Option<Self>;
}

/// The desk of a program's supervisor: files that were named, and progress.
struct Desk<'p> {
    files: OutsideFiles,
    progress: Option<&'p Progress>,
    /// When nobody waits for it any longer.
    until: Option<Instant>,
}

impl Desk<'_> {
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl Service for Desk<'_> {
    fn request(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.files.serve(request)
    }

    fn progress(&mut self, bytes: &[u8]) {
        if let (Some(progress), Ok(done)) = (self.progress, bytes.try_into()) {
            progress.done_elsewhere(u64::from_le_bytes(done));
        }
    }

    fn end(&mut self, code: u8) -> io::Result<()> {
        match code {
            0 => self.files.finish(true),
            _ => Ok(()),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.is_late() || self.progress.is_some_and(Progress::is_cancelled)
    }
}

/// Does the work here, or in a confined process if one of the scenarios has C of the user's. `outputs` are all files that it writes.
pub(crate) fn isolated<'s, T: Travels + Send>(
    scenarios: impl Iterator<Item = &'s Scenario>,
    outputs: &[&Path],
    progress: Option<&Progress>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    isolated_within(None, scenarios, outputs, progress, work)
}

/// The same; a confined process that is not done within `limit` is ended.
pub(crate) fn isolated_within<'s, T: Travels + Send>(
    limit: Option<Duration>,
    scenarios: impl Iterator<Item = &'s Scenario>,
    outputs: &[&Path],
    progress: Option<&Progress>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let (mut has_c, mut has_own) = (false, false);
    scenarios.for_each(|scenario| {
        has_c |= scenario.has_foreign_code();
        has_own |= scenario.has_own_policies();
    });
    if !has_c || !confine::is_on() {
        return work();
    }
    if has_own {
        let message = "policies of this program run in its own process, the C of a tree in another one: compare them in two experiments";
        return Err(io::Error::other(message).into());
    }
    let mut files = OutsideFiles::new();
    outputs.iter().for_each(|path| files.output(path));
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut desk = Desk { files, progress, until };
    let count = rayon::current_num_threads();
    let packed = confine::isolated(&mut desk, || {
        outside::divert(worker::request);
        // The threads of the program are not in this process.
        let threads = rayon::ThreadPoolBuilder::new().num_threads(count).build();
        let threads = threads.map_err(|error| error.to_string())?;
        let done = std::thread::scope(|scope| {
            let (stop, stopped) = mpsc::channel::<()>();
            if let Some(progress) = progress {
                scope.spawn(move || {
                    while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                        worker::progress(&progress.done_runs().to_le_bytes());
                    }
                });
            }
            let done = threads.install(work);
            drop(stop);
            done
        });
        let done = done.map_err(|error| error.to_string())?;
        Ok(done.pack().to_string().into_bytes())
    });
    let packed = packed.map_err(|why| match (desk.is_late(), limit) {
        (true, Some(limit)) => format!("it did not come to its end within {limit:?}"),
        _ => why,
    });
    let packed = packed.map_err(io::Error::other)?;
    let value: Option<Value> = serde_json::from_slice(&packed).ok();
    value.and_then(T::unpack).ok_or_else(|| {
        io::Error::other("the process that runs the C of a tree returned no results").into()
    })
}

/// How often progress is told.
const PERIOD: Duration = Duration::from_millis(100);

impl Travels for () {
    fn pack(&self) -> Value {
        Value::Null
    }

    fn unpack(value: Value) -> Option<()> {
        value.is_null().then_some(())
    }
}

impl Travels for String {
    fn pack(&self) -> Value {
        json!(self)
    }

    fn unpack(value: Value) -> Option<String> {
        text(&value)
    }
}

impl<T: Travels> Travels for Vec<T> {
    fn pack(&self) -> Value {
        self.iter().map(T::pack).collect()
    }

    fn unpack(value: Value) -> Option<Vec<T>> {
        let Value::Array(values) = value else { return None };
        values.into_iter().map(T::unpack).collect()
    }
}

impl<T: Travels> Travels for Option<T> {
    fn pack(&self) -> Value {
        self.iter().map(T::pack).collect()
    }

    fn unpack(value: Value) -> Option<Option<T>> {
        let mut values = Vec::<T>::unpack(value)?;
        Some(values.pop())
    }
}

impl<A: Travels, B: Travels> Travels for (A, B) {
    fn pack(&self) -> Value {
        json!([self.0.pack(), self.1.pack()])
    }

    fn unpack(value: Value) -> Option<(A, B)> {
        let Value::Array(values) = value else { return None };
        let [a, b]: [Value; 2] = values.try_into().ok()?;
        Some((A::unpack(a)?, B::unpack(b)?))
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(String::from)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text).collect()
}

/// What a table takes of a run.
pub(crate) struct Measured {
    pub digest: u64,
    pub simulated_ns: u64,
    pub notices: Vec<String>,
    pub metrics: Vec<Metric>,
    pub troubles: RunTroubles,
}

/// A run that ended, or one that panicked.
pub(crate) type Outcome = Result<Measured, Crash>;

impl Travels for Outcome {
    fn pack(&self) -> Value {
        match self {
            Ok(run) => {
                let metrics: Vec<Value> = run.metrics.iter().map(pack_metric).collect();
                let broken: Vec<Value> = run.troubles.broken.iter().map(pack_breach).collect();
                let ended = &run.troubles.ended;
                json!([run.digest, run.simulated_ns, run.notices, metrics, ended, broken])
            }
            Err(crash) => crash.pack(),
        }
    }

    fn unpack(value: Value) -> Option<Outcome> {
        if value.is_object() {
            return Crash::unpack(value).map(Err);
        }
        let metrics = value.get(3)?.as_array()?.iter().map(unpack_metric);
        Some(Ok(Measured {
            digest: value.get(0)?.as_u64()?,
            simulated_ns: value.get(1)?.as_u64()?,
            notices: texts(value.get(2)?)?,
            metrics: metrics.collect::<Option<_>>()?,
            troubles: RunTroubles {
                ended: texts(value.get(4)?)?,
                broken: value
                    .get(5)?
                    .as_array()?
                    .iter()
                    .map(unpack_breach)
                    .collect::<Option<_>>()?,
            },
        }))
    }
}

fn pack_breach(breach: &Breach) -> Value {
    let Breach { property, count, longest, open, since, who, group, how, bound } = breach;
    json!([property.name(), count, longest, open, since, who, group, how, bound])
}

fn unpack_breach(value: &Value) -> Option<Breach> {
    let name = value.get(0)?.as_str()?;
    Some(Breach {
        property: *Property::ALL.iter().find(|property| property.name() == name)?,
        count: value.get(1)?.as_u64()?,
        longest: value.get(2)?.as_u64()?,
        open: value.get(3)?.as_bool()?,
        since: value.get(4)?.as_u64()?,
        who: text(value.get(5)?)?,
        group: text(value.get(6)?)?,
        how: text(value.get(7)?)?,
        bound: value.get(8)?.as_u64()?,
    })
}

/// A value travels as its bits: no digit of it is lost.
fn pack_metric(metric: &Metric) -> Value {
    let labels: Vec<[&str; 2]> = metric.labels.iter().map(|(key, text)| [*key, text]).collect();
    let value = metric.value.map(f64::to_bits);
    json!([metric.name, metric.stat, labels, metric.kind.to_string(), value])
}

fn unpack_metric(value: &Value) -> Option<Metric> {
    let declared = metric::declared(value.get(0)?.as_str()?)?;
    let label = |pair: &Value| Some((text(pair.get(0)?)?, text(pair.get(1)?)?));
    let labels = value.get(2)?.as_array()?.iter().map(label).collect::<Option<_>>()?;
    let kind = Kind::parse(value.get(3)?.as_str()?)?;
    let number = value.get(4)?.as_u64().map(f64::from_bits);
    declared.read(value.get(1)?.as_str()?, labels, kind, number)
}

impl Travels for Crash {
    fn pack(&self) -> Value {
        let Crash { seed, kernel, message, command } = self;
        json!({ "seed": seed, "kernel": kernel, "message": message, "command": command })
    }

    fn unpack(value: Value) -> Option<Crash> {
        let field = |name: &str| text(value.get(name)?);
        let [kernel, message, command] = ["kernel", "message", "command"].map(field);
        let seed = value.get("seed")?.as_u64()?;
        Some(Crash { seed, kernel: kernel?, message: message?, command: command? })
    }
}

impl Travels for SweepRun {
    fn pack(&self) -> Value {
        json!([self.number, self.fields().collect::<Vec<_>>()])
    }

    fn unpack(value: Value) -> Option<SweepRun> {
        let pair = |pair: &Value| Some((text(pair.get(0)?)?, text(pair.get(1)?)?));
        let fields = value.get(1)?.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?;
        Some(SweepRun::new(value.get(0)?.as_u64()?, fields))
    }
}

impl Travels for Difference {
    fn pack(&self) -> Value {
        let Difference { at, left, right, decisions_left, decisions_right, context } = self;
        json!([at, left, right, decisions_left, decisions_right, context])
    }

    fn unpack(value: Value) -> Option<Difference> {
        Some(Difference {
            at: value.get(0)?.as_u64()?,
            left: text(value.get(1)?)?,
            right: text(value.get(2)?)?,
            decisions_left: texts(value.get(3)?)?,
            decisions_right: texts(value.get(4)?)?,
            context: texts(value.get(5)?)?,
        })
    }
}

impl Travels for Decision {
    fn pack(&self) -> Value {
        json!([self.at_ns, self.cpu, self.words])
    }

    fn unpack(value: Value) -> Option<Decision> {
        let cpu = u16::try_from(value.get(1)?.as_u64()?).ok()?;
        Some(Decision { at_ns: value.get(0)?.as_u64()?, cpu, words: text(value.get(2)?)? })
    }
}

impl Travels for Events {
    fn pack(&self) -> Value {
        let Events { time_ns, cpu, pid, comm, fields } = self;
        let comm: Vec<&str> = comm.iter().map(|name| &**name).collect();
        let field = |(name, values): &(String, Field)| match values {
            Field::Numbers(numbers) => json!([name, 0, numbers]),
            Field::Texts(texts) => {
                let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
                json!([name, 1, texts])
            }
        };
        let fields: Vec<Value> = fields.iter().map(field).collect();
        json!([time_ns, cpu, pid, comm, fields])
    }

    fn unpack(value: Value) -> Option<Events> {
        fn column<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
            value.as_array()?.iter().map(read).collect()
        }
        let name = |value: &Value| value.as_str().map(Arc::<str>::from);
        let field = |value: &Value| {
            let values = value.get(2)?;
            let values = match value.get(1)?.as_u64()? {
                0 => Field::Numbers(column(values, |number| {
                    if number.is_null() { Some(None) } else { number.as_i64().map(Some) }
                })?),
                _ => Field::Texts(column(values, |text| {
                    if text.is_null() { Some(None) } else { name(text).map(Some) }
                })?),
            };
            Some((text(value.get(0)?)?, values))
        };
        let events = Events {
            time_ns: column(value.get(0)?, Value::as_u64)?,
            cpu: column(value.get(1)?, |cpu| u32::try_from(cpu.as_u64()?).ok())?,
            pid: column(value.get(2)?, Value::as_i64)?,
            comm: column(value.get(3)?, name)?,
            fields: column(value.get(4)?, field)?,
        };
        let rows = events.time_ns.len();
        let lengths = events.fields.iter().map(|(_, values)| match values {
            Field::Numbers(numbers) => numbers.len(),
            Field::Texts(texts) => texts.len(),
        });
        let own = [events.cpu.len(), events.pid.len(), events.comm.len()];
        own.into_iter().chain(lengths).all(|length| length == rows).then_some(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_the_same_after_their_way() {
        let declared = metric::declared("energy").expect("it is declared");
        let value = declared.value("sum", Vec::new(), Some(0.1 + 0.2));
        let run = Measured {
            digest: u64::MAX,
            simulated_ns: 5,
            troubles: RunTroubles {
                ended: vec!["by itself".to_string()],
                broken: vec![Breach {
                    property: Property::ALL[0],
                    count: 2,
                    longest: 3,
                    open: true,
                    since: 4,
                    who: "a".to_string(),
                    group: String::new(),
                    how: "b".to_string(),
                    bound: 5,
                }],
            },
            notices: vec!["it ended \u{1b}".to_string()],
            metrics: vec![value.clone(), declared.value("sum", Vec::new(), None)],
        };
        let crash = Crash { seed: 3, kernel: "k".into(), message: "m".into(), command: "c".into() };
        let all: Vec<Outcome> = vec![Ok(run), Err(crash.clone())];
        let troubles = all[0].as_ref().ok().map(|run| run.troubles.clone());
        let way = all.pack().to_string();
        let back = Vec::<Outcome>::unpack(serde_json::from_str(&way).expect("JSON"));
        let back = back.expect("they are results");
        let Ok(run) = &back[0] else { panic!("it ended") };
        assert_eq!((run.digest, run.metrics.len()), (u64::MAX, 2));
        assert_eq!(run.metrics[0], value);
        assert_eq!(Some(&run.troubles), troubles.as_ref());
        assert_eq!(back[1].as_ref().err(), Some(&crash));
    }

    #[test]
    fn forged_results_are_refused() {
        for text in ["null", "[]", "[[1]]", "[[1,2,[],[[\"no_metric\",\"sum\",[],\"one\",1]]]]"] {
            let value: Value = serde_json::from_str(text).expect("JSON");
            let read = Vec::<Outcome>::unpack(value);
            assert!(read.is_none_or(|runs| runs.is_empty()), "{text}");
        }
        assert!(Events::unpack(json!([[1], [], [], [], []])).is_none(), "columns differ");
    }
}
