#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sanity.py NAME.N.trace.txt.xz...: does a recording make sense? Exit 1 if events were lost or a check fails.

Of every recording: events lost, waking to switch, busy shares. Of those with probes: does the PELT clock advance, between
two switches without a change of frequency, by clock_task x capacity x frequency / fmax, up to rounding (a ns or two an
update); and do 99 % of the involuntary switches follow an interrupt or a wakeup on their CPU.
"""
import lzma
import re
import sys
from pathlib import Path

LINE = re.compile(r"\s*(.+)-(\d+)\s+\[(\d+)\] (\S+)\s+(\d+)\.(\d+): ([\w.]+): (.*)")
SOON_US = 200  # a path with its printing


def number(text, key):
    return int(re.search(rf"\b{key}=(-?\d+)", text)[1])


def quantiles(values, *at):
    values = sorted(values)
    return "/".join(f"{values[min(len(values) - 1, int(len(values) * x))]:g}" for x in at) if values else "-"


def board_of(path):
    """Capacity and highest frequency of each CPU, from the description."""
    meta = path.with_name(path.name.split(".")[0] + ".meta.txt").read_text()
    capacity = {int(c): int(v) for c, v in re.findall(r"cpu(\d+)/cpu_capacity = (\d+)", meta)}
    fmax = {}
    for policy, key, value in re.findall(r"cpufreq/policy(\d+)/(cpuinfo_max_freq|related_cpus) = (.*)", meta):
        fmax.setdefault(policy, {})[key] = value
    fastest = {int(c): int(p["cpuinfo_max_freq"]) for p in fmax.values() for c in p["related_cpus"].split()}
    lost = [x for x in re.findall(r"per_cpu/cpu\d+/stats = .*?overrun: (\d+)", meta) if x != "0"]
    return capacity, fastest, lost


def check(path):
    capacity, fastest, lost = board_of(path)
    woken, latency, onto_idle, since, busy = {}, [], [], {}, {}
    frequency, queue, segment, lack, why, involuntary = {}, {}, {}, [], {}, {}
    first = last = None
    events = 0
    with (lzma.open(path, "rt") if path.suffix == ".xz" else open(path)) as f:
        for line in f:
            m = LINE.match(line)
            if not m:
                continue
            events += 1
            cpu, flags, t, event, text = int(m[3]), m[4], int(m[5]) * 10**6 + int(m[6]), m[7], m[8]
            first, last = t if first is None else first, t
            if "h" in flags.lower():
                why[cpu] = (t, "interrupt")
            if event == "cpu_frequency":
                c = number(text, "cpu_id")
                frequency[c] = number(text, "state")
                segment.pop(c, None)
            elif event == "sched_waking":
                woken.setdefault(number(text, "pid"), t)
            elif event == "sched_wakeup":
                why[number(text, "target_cpu")] = (t, "wakeup")
            elif event == "p_switch":
                queue[cpu] = (number(text, "ct"), number(text, "cp"))
            elif event == "sched_switch":
                prev, following = number(text, "prev_pid"), number(text, "next_pid")
                if following in woken:
                    d = t - woken.pop(following)
                    latency.append(d)
                    if not prev:
                        onto_idle.append(d)
                if prev and cpu in since:
                    busy[cpu] = busy.get(cpu, 0) + t - since[cpu]
                since[cpu] = t
                if prev and following and "prev_state=R" in text:
                    at, reason = why.get(cpu, (-(10**9), ""))
                    reason = reason if t - at < SOON_US else "nothing"
                    involuntary[reason] = involuntary.get(reason, 0) + 1
                if cpu in queue:
                    now = queue[cpu]
                    # Going idle moves the PELT clock, so only segments that end with a switch to a task.
                    if prev and following and cpu in segment and cpu in frequency and now[0] - segment[cpu][0] > 200_000:
                        speed = capacity[cpu] / 1024 * (frequency[cpu] * 1024 // fastest[cpu]) / 1024
                        lack.append((now[0] - segment[cpu][0]) * speed - (now[1] - segment[cpu][1]))
                    segment[cpu] = now
    span = last - first
    print(f"{path.name}: {events} events, {span / 1e6:.2f} s")
    print("  waking to switch, us, p50/90/99:", quantiles(latency, 0.5, 0.9, 0.99), "onto an idle CPU", quantiles(onto_idle, 0.5, 0.9, 0.99))
    print("  busy %", " ".join(f"{c}:{100 * busy.get(c, 0) / span:.1f}" for c in sorted(capacity)))
    ok = not lost
    if lost:
        print("  events lost:", " ".join(lost))
    if queue:
        print(f"  PELT clock lacks, ns, p1/50/99 of {len(lack)}:", quantiles(lack, 0.01, 0.5, 0.99))
        print("  involuntary switches after", involuntary)
        ok = ok and involuntary.get("nothing", 0) * 100 <= sum(involuntary.values())
        ok = ok and (not lack or abs(sorted(lack)[len(lack) // 2]) < 10)
    return ok


if __name__ == "__main__":
    results = [check(Path(a)) for a in sys.argv[1:]]
    sys.exit(0 if all(results) else 1)
