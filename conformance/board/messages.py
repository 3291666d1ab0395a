#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of benchmarks that talk from traces as text, the board's and the twin's, and which of the twin's lie in the
board's range.

    messages.py --messages N RECORDING.trace.txt[.xz]... [--twin TRACE.txt... [--twin-messages N...]]
                [--kinds FIRST,SECOND] [--fds N] [--threads N]

Two kinds of threads talk: `sender,receiver` of messaging and hackbench, `netperf,netserver`, `schbench,schbench-worker`.
A thread is of a kind by its name; in the twin, where senders and receivers are called alike, by the order in which they
were made. What counts begins when the first kind first wakes somebody and ends with the last switch of either. N
is what the figures are divided by: messages, transactions, requests.

The rule, fixed before the first comparison: a figure is in if the mean of the twin's runs lies between the least
and the greatest of the recordings, these included. No margin is added.

Fixed before the twin's figures of pipes, hackbench, netperf and schbench were looked at: the same figures and rule; the
twin's machine has the costs that the board prints; its paths cost so many times more as CPUs are busy on the average in the
recordings where threads do nothing but calls (messaging, hackbench, netperf), for the emulator runs one CPU at a time; where they
work (schbench) as they are. Figures that are zero on both sides do not count towards the bar, and are told apart.
"""
import argparse
import lzma
import re
from pathlib import Path

FIELD = re.compile(r"(\w+)=(.*?)(?= \w+=| ==>|$)")


def lines(path):
    text = lzma.open(path, "rt") if path.suffix == ".xz" else open(path)
    with text as file:
        for line in file:
            found = re.match(r"^.*?\[(\d+)\]\s+(?:\S+\s+)?(\d+\.\d+): (\w+): (.*)$", line)
            if found:
                yield int(found[1]), float(found[2]), found[3], found[4].strip()


def fields(text):
    return dict(FIELD.findall(text))


def figures(path, messages, roles, cores, kinds):
    """`roles`: of a pid, its kind, if names do not say it; `cores`: how many CPUs a core has."""
    kind, last_cpu, state, since = {}, {}, {}, {}
    running = {}
    time = {(k, s): 0.0 for k in kinds for s in ("running", "runnable", "sleeping")}
    count = {"switches": 0, "wakeups": 0}
    who = {(a, b): 0 for a in (*kinds, "other") for b in kinds}
    placed = {"same CPU": 0, "same core": 0, "other": 0}
    waker_cpu, busy, last = 0, 0.0, 0.0
    began, pending = None, {}

    def role(pid, comm):
        # A thread takes its name only once it runs.
        if not kind.get(pid):
            kind[pid] = roles.get(pid) or next((k for k in kinds if comm == k), None)
        return kind[pid]

    def become(pid, new, at):
        if kind.get(pid) and began is not None:
            if pid in state:
                time[kind[pid], state[pid]] += at - max(since[pid], began)
            state[pid], since[pid] = new, at
        elif kind.get(pid):
            state[pid], since[pid] = new, at

    for cpu, at, event, text in lines(path):
        if event == "sched_waking":
            f = fields(text)
            pid = int(f["pid"])
            if not role(pid, f["comm"]):
                continue
            waker = running.get(cpu)
            by = kind.get(waker) or "other"
            if began is None and by == kinds[0]:
                began = at
                for known in state:
                    since[known] = at
            if began is not None:
                count["wakeups"] += 1
                who[by, kind[pid]] += 1
                pending[pid] = cpu
            become(pid, "runnable", at)
        elif event == "sched_wakeup" and began is not None:
            f = fields(text)
            pid, target = int(f["pid"]), int(f["target_cpu"])
            if pid in pending:
                waker_cpu += target == pending.pop(pid)
                before = last_cpu.get(pid)
                if before is not None:
                    near = target // cores == before // cores
                    placed["same CPU" if target == before else "same core" if near else "other"] += 1
        elif event == "sched_switch":
            before, after = text.split(" ==> ")
            f, g = fields(before), fields(after)
            prev, after = int(f["prev_pid"]), int(g["next_pid"])
            if began is not None and (role(prev, f["prev_comm"]) or role(after, g["next_comm"])):
                count["switches"] += 1
            if role(prev, f["prev_comm"]):
                last_cpu[prev] = cpu
                if f["prev_state"][0] in "XZ":
                    become(prev, "sleeping", at)
                    state.pop(prev, None)
                else:
                    become(prev, "runnable" if f["prev_state"][0] == "R" else "sleeping", at)
            if role(after, g["next_comm"]):
                last_cpu[after] = cpu
                become(after, "running", at)
            running[cpu] = after
            if began is not None and (kind.get(prev) or kind.get(after)):
                last = at
    busy = sum(time[k, "running"] for k in kinds) / max(last - (began or 0), 1e-9)
    out = {f"{name} a message": n / messages for name, n in count.items()}
    wakes = max(1, sum(who.values()))
    for (a, b), n in who.items():
        out[f"{a} wakes {b}, %"] = 100 * n / wakes
    for k in kinds:
        whole = sum(time[k, s] for s in ("running", "runnable", "sleeping")) or 1
        for s in ("running", "runnable", "sleeping"):
            out[f"{k} {s}, %"] = 100 * time[k, s] / whole
    for name, n in placed.items():
        if name != "same core" or cores > 1:
            out[f"woken on {name}, %"] = 100 * n / max(1, sum(placed.values()))
    out["woken on the waker's CPU, %"] = 100 * waker_cpu / max(1, count["wakeups"])
    return out, busy


def roles_of(path, fds):
    """In the twin senders and receivers are called alike: the tasks of a group are made in order, receivers first."""
    pids = []
    for _, _, event, text in lines(path):
        if event == "sched_wakeup_new":
            pids.append(int(fields(text)["pid"]))
    return {pid: "receiver" if at % (2 * fds) < fds else "sender" for at, pid in enumerate(pids[:-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=float, required=True, help="of each recording")
    parser.add_argument("--twin-messages", type=float, nargs="+", help="of each of the twin's runs; default: as many")
    parser.add_argument("--kinds", default="sender,receiver")
    parser.add_argument("--fds", type=int, default=20, help="senders, and receivers, of a group")
    parser.add_argument("--threads", type=int, default=1, help="CPUs of a core")
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--twin", type=Path, nargs="+", default=[])
    a = parser.parse_args()
    kinds = a.kinds.split(",")
    board = [figures(path, a.messages, {}, a.threads, kinds) for path in a.recordings]
    twin = []
    for path, messages in zip(a.twin, a.twin_messages or [a.messages] * len(a.twin)):
        roles = roles_of(path, a.fds) if kinds == ["sender", "receiver"] else {}
        twin.append(figures(path, messages, roles, a.threads, kinds))
    inside = zero = 0
    print(f"{'figure':40} {'least':>9} {'greatest':>9} {'twin':>9}")
    for name in board[0][0]:
        values = [one[name] for one, _ in board]
        line = f"{name:40} {min(values):9.4g} {max(values):9.4g}"
        if twin:
            mean = sum(one[name] for one, _ in twin) / len(twin)
            nothing = max(values) == mean == 0
            zero += nothing
            inside += not nothing and min(values) <= mean <= max(values)
            word = "zero" if nothing else "in" if min(values) <= mean <= max(values) else "out"
            line += f" {mean:9.4g} {word}"
        print(line)
    for who, runs in (("board", board), ("twin", twin)):
        if runs:
            print(f"CPUs busy, {who}: {sum(busy for _, busy in runs) / len(runs):.2f}")
    if twin:
        all_of = len(board[0][0])
        print(f"{inside} of {all_of - zero} figures in; with those that are zero on both sides {inside + zero} of {all_of}")


if __name__ == "__main__":
    main()
