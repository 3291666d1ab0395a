// SPDX-License-Identifier: GPL-2.0-or-later
//! `sched_getattr()` and `sched_setattr()` of any thread.
//!
//! glibc has no function for them, and this crate has no unsafe code. So a small interpreter that nearly every Linux has
//! makes the calls: Perl, else Python. It is started once, reads a line for each call and answers with a line; a call takes
//! some 20 µs, and between calls the interpreter sleeps.

use schedtwin_types::{DlReservation, Ns, Policy, SchedAttr};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `struct sched_attr` in Perl's words and in Python's: size, policy, flags, nice, priority, runtime, deadline, period, clamps.
///
/// Both take the name of schedtwin, so that a recording does not count them as work.
const PERL: &str = r#"
$| = 1;
$0 = "schedtwin";
my ($set, $get) = @ARGV;
while (<STDIN>) {
    my ($call, $tid, @v) = split;
    if ($call eq "set") {
        my $attr = pack("L L Q l L Q Q Q L L", 56, @v);
        print syscall($set + 0, $tid + 0, $attr, 0) == 0 ? "ok\n" : "error " . ($! + 0) . "\n";
    } else {
        my $attr = "\0" x 56;
        if (syscall($get + 0, $tid + 0, $attr, 56, 0) == 0) {
            my @v = unpack("L L Q l L Q Q Q L L", $attr);
            print join(" ", @v[1 .. 9]), "\n";
        } else {
            print "error ", $! + 0, "\n";
        }
    }
}
"#;

const PYTHON: &str = r#"
import ctypes, struct, sys
open("/proc/self/comm", "w").write("schedtwin")
set_nr, get_nr = int(sys.argv[1]), int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    call, tid, *v = line.split()
    if call == "set":
        attr = ctypes.create_string_buffer(struct.pack("=LLQlLQQQLL", 56, *map(int, v)))
        failed = libc.syscall(set_nr, int(tid), attr, 0) != 0
        print("error %d" % ctypes.get_errno() if failed else "ok", flush=True)
    else:
        attr = ctypes.create_string_buffer(56)
        if libc.syscall(get_nr, int(tid), attr, 56, 0) != 0:
            print("error %d" % ctypes.get_errno(), flush=True)
        else:
            print(*struct.unpack("=LLQlLQQQLL", attr.raw[:56])[1:], flush=True)
"#;

/// Numbers of the two calls, `set` and `get`; `None`: an architecture that nobody has asked for yet.
const CALLS: Option<[u32; 2]> = if cfg!(target_arch = "x86_64") {
    Some([314, 315])
} else if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) {
    Some([274, 275])
} else if cfg!(target_arch = "arm") {
    Some([380, 381])
} else if cfg!(target_arch = "powerpc64") {
    Some([355, 356])
} else if cfg!(target_arch = "s390x") {
    Some([345, 346])
} else {
    None
};

/// `SCHED_FLAG_UTIL_CLAMP_MIN` and `_MAX` of include/uapi/linux/sched.h.
const UTIL_CLAMP: [u64; 2] = [0x20, 0x40];

/// Calls the kernel through an interpreter.
#[derive(Debug)]
pub struct Attributes {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Attributes {
    /// Starts the interpreter.
    pub fn start() -> io::Result<Attributes> {
        let [set, get] = CALLS.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "the numbers of sched_setattr() and sched_getattr() are not known for this architecture",
            )
        })?;
        let start = |program: &str, option: &str, text: &str| {
            Command::new(program)
                .args([option, text, &set.to_string(), &get.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        };
        let mut child = start("perl", "-e", PERL)
            .or_else(|_| start("python3", "-c", PYTHON))
            .map_err(|error| {
                let message = format!(
                    "sched_setattr() needs perl or python3, and neither can be started: {error}"
                );
                io::Error::new(error.kind(), message)
            })?;
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        Ok(Attributes { child, to, from: BufReader::new(from) })
    }

    /// The thread's parameters; an own slice cannot be told from the default one, so it is told as one.
    pub fn get(&mut self, tid: u32) -> io::Result<SchedAttr> {
        let answer = self.ask(&format!("get {tid}\n"))?;
        let numbers: Option<Vec<i64>> =
            answer.split_whitespace().map(|word| word.parse().ok()).collect();
        let strange = || io::Error::new(io::ErrorKind::InvalidData, format!("{answer:?}"));
        let Some(&[policy, _, nice, priority, runtime, deadline, period, min, max]) =
            numbers.as_deref()
        else {
            return Err(strange());
        };
        let policy = Policy::of_number(policy).ok_or_else(strange)?;
        let (runtime, deadline, period) = (runtime as Ns, deadline as Ns, period as Ns);
        let is_dl = policy == Policy::Deadline;
        let dl = if is_dl {
            DlReservation { runtime, deadline, period }
        } else {
            DlReservation::default()
        };
        Ok(SchedAttr {
            policy,
            nice: nice as i8,
            rt_priority: priority as u8,
            slice: if is_dl { 0 } else { runtime },
            util_min: Some(min as u16),
            util_max: Some(max as u16),
            dl,
        })
    }

    /// Gives the thread these parameters; clamps of `None` stay.
    pub fn set(&mut self, tid: u32, attr: &SchedAttr) -> io::Result<()> {
        let clamps = [attr.util_min, attr.util_max];
        let flags: u64 = clamps
            .iter()
            .zip(UTIL_CLAMP)
            .filter(|(clamp, _)| clamp.is_some())
            .map(|(_, f)| f)
            .sum();
        let DlReservation { runtime, deadline, period } = match attr.policy {
            Policy::Deadline => attr.dl,
            Policy::Normal | Policy::Batch | Policy::Ext => {
                DlReservation { runtime: attr.slice, ..DlReservation::default() }
            }
            _ => DlReservation::default(),
        };
        // -1 takes a clamp back.
        let [min, max] = clamps.map(|clamp| match clamp {
            Some(SchedAttr::UTIL_CLAMP_RESET) => u32::MAX,
            clamp => u32::from(clamp.unwrap_or(0)),
        });
        let answer = self.ask(&format!(
            "set {tid} {} {flags} {} {} {runtime} {deadline} {period} {min} {max}\n",
            attr.policy.number(),
            attr.nice,
            attr.rt_priority,
        ))?;
        if answer == "ok" { Ok(()) } else { Err(io::Error::other(answer)) }
    }

    fn ask(&mut self, line: &str) -> io::Result<String> {
        let to = self.to.as_mut().expect("it is open until the end");
        to.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.from.read_line(&mut answer)?;
        let answer = answer.trim();
        match answer.strip_prefix("error ") {
            Some(number) => Err(io::Error::from_raw_os_error(number.parse().unwrap_or(0))),
            None if answer.is_empty() => {
                Err(io::Error::other("the interpreter that calls sched_setattr() has ended"))
            }
            None => Ok(answer.to_owned()),
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // It ends with its input.
        self.to = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that sleeps may be given anything; raising priorities needs root.
    #[test]
    #[cfg(target_os = "linux")]
    fn parameters_are_read_back_as_they_were_set() {
        let Ok(mut attributes) = Attributes::start() else {
            eprintln!("SKIPPED: there is neither perl nor python3");
            return;
        };
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        let tid = sleeper.id();
        let plain = SchedAttr { util_min: None, util_max: None, ..SchedAttr::default() };
        let niced = SchedAttr { nice: 7, slice: 5_000_000, ..plain };
        let set = attributes.set(tid, &niced);
        let got = attributes.get(tid);
        let missing = attributes.get(u32::MAX >> 2).unwrap_err();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        set.unwrap();
        let got = got.unwrap();
        assert_eq!((got.policy, got.nice), (Policy::Normal, 7));
        // Kernels before 6.12 have no slices of their own.
        assert!(got.slice == 5_000_000 || got.slice == 0 || got.slice < 5_000_000, "{got:?}");
        assert_eq!(missing.raw_os_error(), Some(3), "ESRCH");
    }
}
