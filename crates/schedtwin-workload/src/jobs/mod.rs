// SPDX-License-Identifier: GPL-2.0-or-later
//! Jobs of a shell: several workloads beside each other, in sessions and cgroups.
//!
//! **Idea.** On a real machine a program is started from somewhere: a terminal or a service, each with a session of its own, and a
//! service in a cgroup as well. Where the kernel has autogroups or the cgroup has a weight, it matters who is in which. So a workload is
//! spelled as in a shell:
//!
//! ```text
//! -w 'setsid hackbench -g 4 & setsid periodic -f 60'
//! -w 'cgroup=/web cpu.weight=300 messaging -g 2 & cgroup=/batch cpu.idle=1 my/build.json'
//! ```
//!
//! | word before a workload | what it does |
//! |---|---|
//! | `setsid` | the job leads a session of its own, as a terminal's shell or a service does |
//! | `autogroup=NICE` | the nice value of that session's autogroup (`/proc/PID/autogroup`), −20 to 19 |
//! | `cgroup=/PATH` | the job starts in this cgroup, which is made if nobody else does |
//! | `taskset=0-3,6` | the job and all that it starts run on these CPUs, as under `taskset -c` |
//! | `FILE=VALUE` | what is written into a file of that cgroup, as in `"taskgroups"` of an rt-app file; `cpu.max=QUOTA/PERIOD` |
//!
//! Without `setsid` a job stays in the session of the shell, as every workload does that is given alone. Jobs begin together, in their
//! order; the run is over when all are. `--duration` is for each of them.
//!
//! Differences: threads of a benchmark that is over while other jobs go on end with their next step; a real process takes them along at
//! once. What several jobs reserve for `SCHED_DEADLINE` is checked for each by itself.

use crate::builtin::options;
use crate::form::{Field, FieldKind, Place};
use crate::programs::{Shell, Start};
use crate::rtapp::{compile, taskgroups};
use crate::workload::Checked;
use crate::{Host, Programs, Workload, builtin};
use schedtwin_input::{Diagnostics, Located, Source};
use schedtwin_types::draw::{Purpose, draw};
use schedtwin_types::{CpuMask, Ns, SessionId, TaskGroupFiles};
use std::ops::Range;
use std::sync::Arc;

/// Jobs of one line: more than the published comparisons have.
const JOBS_MAX: usize = 8;

/// A job that is checked and knows no machine.
#[derive(Debug)]
struct Job {
    workload: Workload,
    /// The nice value of its own session; `None`: it is in the shell's.
    session: Option<i8>,
    cgroup: Option<String>,
    files: Option<TaskGroupFiles>,
    taskset: Option<Taskset>,
}

/// CPUs that a job is bound to.
#[derive(Debug)]
struct Taskset {
    cpus: CpuMask,
    span: Range<usize>,
}

/// All jobs of a line.
#[derive(Debug)]
struct Line {
    source: Arc<Source>,
    jobs: Vec<Job>,
    notices: Vec<String>,
    pending: Diagnostics,
    bytes: Vec<u8>,
}

/// Whether `spec` is a line of jobs, not the name of one workload.
pub(crate) fn is_line(spec: &str) -> bool {
    let mut words = spec.split_whitespace();
    spec.split_whitespace().any(|word| word == "&") || words.next().is_some_and(is_setting)
}

/// The name of the workload of each job of a line, or the one that is named alone.
pub fn job_names(spec: &str) -> impl Iterator<Item = &str> {
    spec.split('&').filter_map(|job| {
        let first = job.split_whitespace().find(|word| !is_setting(word))?;
        first.split(':').next()
    })
}

fn is_setting(word: &str) -> bool {
    word == "setsid"
        || ["autogroup=", "cgroup=", "taskset=", "cpu.", "cpuset.", "memory.", "io."]
            .iter()
            .any(|begin| word.starts_with(begin))
}

/// Reads a line of jobs; all faults of all jobs at once.
pub(crate) fn read(spec: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new("<command line>", spec);
    let mut faults = Diagnostics::new();
    let mut jobs = Vec::new();
    let spans = spans_of_jobs(spec);
    if spans.len() > JOBS_MAX {
        let message = format!("{} jobs, of at most {JOBS_MAX}", spans.len());
        faults.push(&source, spans[JOBS_MAX].clone(), message, None);
        return Err(faults);
    }
    for span in spans {
        jobs.extend(faults.absorb(job(&source, span)));
    }
    // What two benchmarks say of themselves under one name could not be told apart.
    for (at, job) in jobs.iter().enumerate() {
        let metrics = job.workload.own_metrics();
        let before =
            |metric: &&str| jobs[..at].iter().find(|j| j.workload.own_metrics().contains(metric));
        if let Some((metric, other)) = metrics.iter().find_map(|m| Some((m, before(m)?))) {
            let (own, other) = (job.workload.name(), other.workload.name());
            let message = format!("\"{other}\" and \"{own}\" both measure {metric}");
            let help = "one name cannot stand for two jobs: give one of them a run of its own, or take a workload without \
                        results of its own beside the other (periodic, shell, an rt-app file)"
                .to_owned();
            faults.push(&source, 0..spec.len(), message, Some(help));
        }
    }
    // Jobs share one system: the one that their files name.
    let mut systems = jobs.iter().filter_map(|job| job.workload.system());
    let system = systems.next().cloned();
    for other in systems.filter(|other| system.as_ref().is_some_and(|s| s.value != other.value)) {
        faults.push_at(&other.at, "the job before names another system", None);
    }
    faults.into_result(())?;
    Ok(line(source, jobs, system))
}

/// Two workloads as jobs of the same session.
pub(crate) fn beside(first: Workload, second: Workload) -> Workload {
    let source = Source::new("<jobs>", format!("{} & {}", first.name(), second.name()));
    let system = first.system().cloned();
    let job = |workload| Job { workload, session: None, cgroup: None, files: None, taskset: None };
    line(source, vec![job(first), job(second)], system)
}

/// Checked jobs as a workload under their line.
fn line(source: Arc<Source>, jobs: Vec<Job>, system: Option<Located<String>>) -> Workload {
    let mut bytes = Vec::new();
    let mut pending = Diagnostics::new();
    for job in &jobs {
        let start = format!("{:?} {:?} {:?}\n", job.session, job.cgroup, job.files);
        bytes.extend_from_slice(start.as_bytes());
        if let Some(taskset) = &job.taskset {
            bytes.extend_from_slice(format!("taskset {}\n", taskset.cpus).as_bytes());
        }
        bytes.extend_from_slice(job.workload.bytes());
        pending.0.extend(job.workload.pending().0.iter().cloned());
    }
    let notices = jobs.iter().flat_map(|job| job.workload.notices()).collect();
    let name = source.text.split_whitespace().collect::<Vec<_>>().join(" ");
    Workload::of_jobs(name, Arc::new(Line { source, jobs, notices, pending, bytes }), system)
}

/// Where each job stands, the `&` between them left out.
fn spans_of_jobs(spec: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut begin = 0;
    for word in words(spec, 0..spec.len()) {
        if &spec[word.clone()] == "&" {
            spans.push(begin..word.start);
            begin = word.end;
        }
    }
    spans.push(begin..spec.len());
    spans
}

/// The words within `span`.
fn words(spec: &str, span: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let base = spec.as_ptr() as usize;
    spec[span].split_whitespace().map(move |word| {
        let start = word.as_ptr() as usize - base;
        start..start + word.len()
    })
}

/// The words of each job as fields of a form: its settings and its options. Of an rt-app file among the jobs there are none.
pub(crate) fn fields(spec: &str) -> Result<Vec<Field>, Diagnostics> {
    let jobs = spans_of_jobs(spec);
    let mut fields = Vec::new();
    for (at, span) in jobs.iter().enumerate() {
        let Some(word) = words(spec, span.clone()).find(|word| !is_setting(&spec[word.clone()]))
        else {
            continue;
        };
        let name = &spec[word.clone()];
        let of = if jobs.len() > 1 { format!("{}: {name}", at + 1) } else { name.to_owned() };
        for setting in words(spec, span.start..word.start) {
            let Some((key, value)) = spec[setting.clone()].split_once('=') else { continue };
            fields.push(Field {
                of: of.clone(),
                name: key.to_owned(),
                help: format!("`{key}` of this job"),
                value: Some(value.to_owned()),
                default: None,
                kind: FieldKind::Text,
                place: Place {
                    span: setting.end - value.len()..setting.end,
                    before: String::new(),
                    after: "",
                },
            });
        }
        let options = builtin::builtin_options(name).unwrap_or_default();
        let source = Source::new("<command line>", &spec[..span.end]);
        fields.extend(options::fields(&source, word.end, &of, options)?);
    }
    Ok(fields)
}

fn job(source: &Arc<Source>, span: Range<usize>) -> Result<Job, Diagnostics> {
    let spec = &source.text;
    let mut faults = Diagnostics::new();
    let (mut setsid, mut nice, mut cgroup, mut taskset) = (false, None, None, None);
    let mut files: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let mut rest = span.end..span.end;
    for word in words(spec, span.clone()) {
        let text = &spec[word.clone()];
        if !is_setting(text) {
            rest = word.start..span.end;
            break;
        }
        let Some(at) = text.find('=') else {
            match text {
                "setsid" => setsid = true,
                _ => faults.push(source, word, format!("\"{text}\" without a value"), None),
            }
            continue;
        };
        let (key, value) = (word.start..word.start + at, word.start + at + 1..word.end);
        match &spec[key.clone()] {
            "autogroup" => match spec[value.clone()].parse() {
                Ok(number) if (-20..=19).contains(&number) => nice = Some((word, number)),
                _ => {
                    let help = Some("a nice value, -20 to 19".to_owned());
                    faults.push(source, value, "not the nice value of an autogroup", help);
                }
            },
            "cgroup" if cgroup.is_some() => {
                let help = Some("a job is in one cgroup".to_owned());
                faults.push(source, word, "a second cgroup of this job", help);
            }
            "cgroup" => cgroup = Some(value),
            "taskset" => match CpuMask::parse_list(&spec[value.clone()]) {
                Ok(cpus) => taskset = Some(Taskset { cpus, span: value }),
                Err(message) => {
                    let help = Some("write CPUs as 0-3,6".to_owned());
                    faults.push(source, value, message, help);
                }
            },
            _ => files.push((key, value)),
        }
    }
    if let (Some((word, _)), false) = (&nice, setsid) {
        let help = Some("write `setsid autogroup=NICE`".to_owned());
        faults.push(source, word.clone(), "the nice value of a session without the session", help);
    }
    let (cgroup, files) = match (cgroup, files.first()) {
        (Some(path), _) => {
            let read = taskgroups::read_words(source, path.clone(), &files);
            (Some(spec[path].to_owned()), faults.absorb(read).flatten())
        }
        (None, Some((key, _))) => {
            let help = Some("write `cgroup=/PATH` before it".to_owned());
            faults.push(source, key.clone(), "a file of a cgroup without the cgroup", help);
            (None, None)
        }
        (None, None) => (None, None),
    };
    let text = spec[rest.clone()].trim_end();
    if text.is_empty() {
        let help = Some("jobs are workloads with `&` between them".to_owned());
        faults.push(source, rest, "a job without a workload", help);
        return Err(faults);
    }
    // Faults of options point into the whole line.
    let known = text.split_whitespace().next().and_then(builtin::builtin).is_some();
    let padded = format!("{:1$}{text}", "", if known { rest.start } else { 0 });
    let workload = faults.absorb(Workload::from_path_or_name(&padded));
    faults.into_result(())?;
    let workload = workload.expect("its faults have been told");
    let session = setsid.then(|| nice.map_or(0, |(_, nice)| nice));
    Ok(Job { workload, session, cgroup, files, taskset })
}

impl Checked for Line {
    fn describe(&self) -> String {
        let of = |(at, job): (usize, &Job)| {
            format!("job {} ({}):\n{}", at + 1, job.workload.name(), job.workload.describe())
        };
        self.jobs.iter().enumerate().map(of).collect::<Vec<_>>().join("\n")
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }

    fn pending(&self) -> &Diagnostics {
        &self.pending
    }

    fn endless(&self) -> Diagnostics {
        let mut faults = Diagnostics::new();
        for job in &self.jobs {
            faults.absorb(job.workload.check_that_it_ends());
        }
        faults
    }

    fn gives_clamps(&self) -> bool {
        self.jobs.iter().any(|job| job.workload.gives_clamps())
    }

    fn has_rt_tasks(&self, host: &Host) -> bool {
        self.jobs.iter().any(|job| job.workload.has_rt_tasks(host))
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn instantiate(
        &self,
        host: &Host,
        seed: u64,
        duration: Option<Ns>,
    ) -> Result<Programs, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut programs = Vec::new();
        for (at, job) in self.jobs.iter().enumerate() {
            // The first job is what it is alone; two that are alike draw differently.
            let seed = if at == 0 {
                seed
            } else {
                draw(seed, at as u64, Purpose::Job, 0, 0, u64::MAX - 1)
            };
            let workload = match duration {
                Some(duration) => job.workload.clone().with_duration(duration),
                None => job.workload.clone(),
            };
            programs.extend(faults.absorb(workload.instantiate(host, seed)));
        }
        let nr_cpus = host.cpu_capacity.len();
        for Taskset { cpus, span } in self.jobs.iter().filter_map(|job| job.taskset.as_ref()) {
            if let Some(absent) = cpus.next_from(nr_cpus) {
                let message = format!("there is no CPU {}: the machine has {nr_cpus}", absent.0);
                faults.push(&self.source, span.clone(), message, None);
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut paths = Vec::new();
        for (job, programs) in self.jobs.iter().zip(&programs) {
            paths.extend_from_slice(programs.task_group_paths());
            paths.extend(job.cgroup.clone());
        }
        let (folders, group_of_path) = compile::cgroups(&paths);
        let mut group_of_path = group_of_path.into_iter();
        let mut starts = Vec::new();
        let mut files: Vec<TaskGroupFiles> = Vec::new();
        let mut sessions = vec![0];
        for (job, programs) in self.jobs.iter().zip(&programs) {
            let own = programs.task_group_paths().len();
            let groups: Vec<_> = group_of_path.by_ref().take(own).collect();
            let cgroup = job.cgroup.as_ref().and_then(|_| group_of_path.next());
            let of_file = programs.task_group_files().iter();
            let of_file =
                of_file.map(|f| TaskGroupFiles { group: groups[f.group.0 as usize - 1], ..*f });
            files.extend(of_file);
            files.extend(job.files.zip(cgroup).map(|(f, group)| TaskGroupFiles { group, ..f }));
            let session = job.session.map(|nice| {
                sessions.push(nice);
                SessionId(sessions.len() as u32 - 1)
            });
            let cpus = job.taskset.as_ref().map(|taskset| taskset.cpus);
            starts.push(Start { session, cgroup, cpus, groups });
        }
        for (at, written) in files.iter().enumerate() {
            if files[..at].iter().any(|earlier| earlier.group == written.group) {
                let path = &folders[written.group.0 as usize - 1].1;
                let message = format!("two jobs write files of the cgroup {path}");
                let help = Some("write them once".to_owned());
                faults.push(&self.source, 0..self.source.text.len(), message, help);
            }
        }
        faults.into_result(())?;
        let (above, paths) = folders.into_iter().unzip();
        let shell = Shell { above, paths, files, sessions, next: 0 };
        let mut placed = programs.into_iter().zip(starts);
        let first = placed.next().expect("a line has a job");
        Ok(Programs::beside(first, placed, shell))
    }
}
