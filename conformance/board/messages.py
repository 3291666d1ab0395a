#!/usr/bin/env python3
"""Figures of messaging from traces as text, the board's and the twin's, and which of the twin's lie in the board's range.

    messages.py --messages N RECORDING.trace.txt[.xz]... [--twin TRACE.txt...]

A thread is a sender or a receiver by its name (`sender`, `receiver`), or in the twin by what it does most: who writes
is never woken by one that only reads. Everything between the wakeup that lets the first sender go and the last
sender's or receiver's last switch counts.

The rule, fixed before the first comparison: a figure is in if the mean of the twin's runs lies between the least
and the greatest of the recordings, these included. No margin is added.
"""
import argparse
import lzma
import re
from pathlib import Path

FIELD = re.compile(r"(\w+)=(.*?)(?= \w+=| ==>|$)")
KINDS = ("sender", "receiver")


def lines(path):
    text = lzma.open(path, "rt") if path.suffix == ".xz" else open(path)
    with text as file:
        for line in file:
            found = re.match(r"^.*?\[(\d+)\]\s+(?:\S+\s+)?(\d+\.\d+): (\w+): (.*)$", line)
            if found:
                yield int(found[1]), float(found[2]), found[3], found[4].strip()


def fields(text):
    return dict(FIELD.findall(text))


def figures(path, messages, roles, cores):
    """`roles`: of a pid, sender or receiver, if names do not say it; `cores`: how many CPUs a core has."""
    kind, last_cpu, state, since = {}, {}, {}, {}
    running = {}
    time = {(k, s): 0.0 for k in KINDS for s in ("running", "runnable", "sleeping")}
    count = {"switches": 0, "wakeups": 0}
    who = {(a, b): 0 for a in (*KINDS, "other") for b in KINDS}
    placed = {"same CPU": 0, "same core": 0, "other": 0}
    waker_cpu = 0
    began, pending = None, {}

    def role(pid, comm):
        # A thread takes its name only once it runs.
        if not kind.get(pid):
            kind[pid] = roles.get(pid) or next((k for k in KINDS if comm.startswith(k)), None)
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
            if began is None and by == "sender":
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
    out = {f"{name} a message": n / messages for name, n in count.items()}
    wakes = max(1, sum(who.values()))
    for (a, b), n in who.items():
        out[f"{a} wakes {b}, %"] = 100 * n / wakes
    for k in KINDS:
        whole = sum(time[k, s] for s in ("running", "runnable", "sleeping")) or 1
        for s in ("running", "runnable", "sleeping"):
            out[f"{k} {s}, %"] = 100 * time[k, s] / whole
    for name, n in placed.items():
        if name != "same core" or cores > 1:
            out[f"woken on {name}, %"] = 100 * n / max(1, sum(placed.values()))
    out["woken on the waker's CPU, %"] = 100 * waker_cpu / max(1, count["wakeups"])
    return out


def roles_of(path, fds=20):
    """In the twin all are called alike: the tasks of a group are made in order, receivers first."""
    pids = []
    for _, _, event, text in lines(path):
        if event == "sched_wakeup_new":
            pids.append(int(fields(text)["pid"]))
    return {pid: "receiver" if at % (2 * fds) < fds else "sender" for at, pid in enumerate(pids[:-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1, help="CPUs of a core")
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--twin", type=Path, nargs="+", default=[])
    a = parser.parse_args()
    board = [figures(path, a.messages, {}, a.threads) for path in a.recordings]
    twin = [figures(path, a.messages, roles_of(path), a.threads) for path in a.twin]
    inside = 0
    print(f"{'figure':32} {'least':>9} {'greatest':>9} {'twin':>9}")
    for name in board[0]:
        values = [one[name] for one in board]
        line = f"{name:32} {min(values):9.4g} {max(values):9.4g}"
        if twin:
            mean = sum(one[name] for one in twin) / len(twin)
            inside += (ok := min(values) <= mean <= max(values))
            line += f" {mean:9.4g} {'in' if ok else 'out'}"
        print(line)
    if twin:
        print(f"{inside} of {len(board[0])} figures in")


if __name__ == "__main__":
    main()
