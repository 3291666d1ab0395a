#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkdtb.py BOARD.toml IN.dts OUT.dts: the emulator's device tree, given the board's clusters, capacities, caches, clocks
and idle states.
mkdtb.py BOARD.toml: how many CPUs the board has.

A board (boards/*.toml):

    llc = ["0-3", "4-7"]       # optional: CPUs that share a last-level cache; without it no cache is described
    cluster = ["0-3", "4-7"]   # optional: the clusters of cpu-map; without it every domain is one
    threads = 2                # optional: hardware threads of a core, numbered one after the other
    package = ["0-3", "4-7"]   # optional: the sockets of cpu-map, of whole clusters; without it all are one
    node = ["0-3", "4-7"]      # optional: NUMA nodes, all equally far from each other
    config = ["SCHED_SMT"]     # optional: kernel options without which the kernel does not see what is described
    [[domain]]                 # a clock of its own (cpufreq policy), in the order of the CPUs' numbers
    cpus = 4
    repeat = 1                 # optional: as many such domains
    dmips = 193                # capacity-dmips-mhz: the kernel makes capacity of it times the highest frequency
    opp = [[kHz, microwatts], ...]                                             # ascending
    idle = [{ name = "c2", entry_us = 70, exit_us = 160, residency_us = 2000 }]  # after WFI
"""
import re
import sys

try:
    import tomllib
except ImportError:
    sys.exit("the board's description needs Python 3.11 or newer (tomllib)")

CPUS_MAX = 16  # vdvfs.h


class Board:
    def __init__(self, path):
        with open(path, "rb") as f:
            try:
                text = tomllib.load(f)
            except tomllib.TOMLDecodeError as e:
                sys.exit(f"{path}: {e}")
        self.domains, first = [], 0
        try:
            for d in text["domain"]:
                for _ in range(d.get("repeat", 1)):
                    self.domains.append(dict(d, first=first))
                    first += d["cpus"]
                if any(a[0] >= b[0] for a, b in zip(d["opp"], d["opp"][1:])):
                    sys.exit(f"{path}: operating points must ascend")
                [(s["name"], s["entry_us"], s["exit_us"], s["residency_us"]) for s in d["idle"]]
                d["dmips"]
        except KeyError as e:
            sys.exit(f"{path}: {e.args[0]} is missing")
        self.cpus = first
        if first > CPUS_MAX:
            sys.exit(f"{path}: {first} CPUs, at most {CPUS_MAX}")
        self.llc = [spread(path, r, first) for r in text.get("llc", [])]
        own = [range(d["first"], d["first"] + d["cpus"]) for d in self.domains]
        self.cluster = [spread(path, r, first) for r in text["cluster"]] if "cluster" in text else own
        self.package = [spread(path, r, first) for r in text.get("package", [f"0-{first - 1}"])]
        self.node = [spread(path, r, first) for r in text.get("node", [])]
        self.threads = text.get("threads", 1)
        self.config = text.get("config", [])
        if any(len(c) % self.threads or c.start % self.threads for c in self.cluster):
            sys.exit(f"{path}: a cluster is not of whole cores")
        if any(sum(within(c, p) for p in self.package) != 1 for c in self.cluster):
            sys.exit(f"{path}: a cluster is not in one package")

    def qemu(self):
        """What QEMU has to be told of the CPUs and of the memory, 1 GiB in all."""
        told = ["-smp", str(self.cpus), "-m", "1G"]
        for i, cpus in enumerate(self.node):
            told += ["-object", f"memory-backend-ram,id=m{i},size={1024 // len(self.node)}M"]
            told += ["-numa", f"node,nodeid={i},cpus={cpus.start}-{cpus.stop - 1},memdev=m{i}"]
        return told


def spread(path, text, cpus):
    """The CPUs of "0-3" or "5"."""
    m = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if not m or int(m[2] or m[1]) >= cpus:
        sys.exit(f"{path}: {text} are no CPUs of this board")
    return range(int(m[1]), int(m[2] or m[1]) + 1)


def within(a, b):
    return a.start >= b.start and a.stop <= b.stop


def braces(s, start):
    """Where the block that opens after `start` ends."""
    depth = 0
    for i in range(start, len(s)):
        depth += (s[i] == "{") - (s[i] == "}")
        if s[i] == "}" and depth == 0:
            return i + 1
    raise ValueError("unbalanced")


def numbers(rows):
    return ", ".join("<" + " ".join(map(str, r)) + ">" for r in rows)


def cpu_map(board, handle):
    """The nodes of cpu-map: sockets if there are several, clusters, cores, threads if there are several."""

    def core(cpu):
        if board.threads == 1:
            return f"cpu = <{handle[cpu]}>;"
        return " ".join(f"thread{t} {{ cpu = <{handle[cpu + t]}>; }};" for t in range(board.threads))

    def cluster(c, cpus):
        cores = enumerate(cpus[:: board.threads])
        return f"cluster{c} {{" + "".join(f" core{k} {{ {core(cpu)} }};" for k, cpu in cores) + " };\n"

    def clusters(package):
        return "".join(cluster(c, own) for c, own in enumerate(o for o in board.cluster if within(o, package)))

    if len(board.package) == 1:
        return clusters(board.package[0])
    return "".join(f"socket{i} {{\n{clusters(package)}}};\n" for i, package in enumerate(board.package))


def device_tree(board, s):
    handle = {}
    cache_of = {cpu: i for i, cpus in enumerate(board.llc) for cpu in cpus}
    for d in board.domains:
        for cpu in range(d["first"], d["first"] + d["cpus"]):
            start = s.index(f"cpu@{cpu:x} {{")
            node = s[start:braces(s, start)]
            handle[cpu] = re.search(r"phandle = <(0x[0-9a-f]+)>", node)[1]
            more = f"capacity-dmips-mhz = <{d['dmips']}>;\n"
            if cpu in cache_of:
                more += f"next-level-cache = <&llc{cache_of[cpu]}>;\n"
            s = s.replace(node, node.replace("device_type", more + "device_type", 1))
    sockets = cpu_map(board, handle)
    caches = "".join(
        f"llc{i}: l2-cache{i} {{ compatible = \"cache\"; cache-level = <2>; cache-unified; }};\n"
        for i in range(len(board.llc))
    )
    start = s.index("cpu-map {")
    s = s[:start] + caches + "cpu-map {\n" + sockets + "}" + s[braces(s, start):]
    domains = "".join(
        f"domain@{i} {{ cpus = <{d['first']} {d['cpus']}>; opps = {numbers(d['opp'])};"
        f" idle = {numbers((x['entry_us'], x['exit_us'], x['residency_us']) for x in d['idle'])};"
        f" idle-names = {', '.join(chr(34) + x['name'] + chr(34) for x in d['idle'])}; }};\n"
        for i, d in enumerate(board.domains)
    )
    end = s.rindex("};")
    return s[:end] + "vdvfs {\n" + domains + "};\n" + s[end:]


if __name__ == "__main__":
    board = Board(sys.argv[1])
    if len(sys.argv) == 2:
        print(board.cpus)
    else:
        with open(sys.argv[2]) as f:
            tree = device_tree(board, f.read())
        with open(sys.argv[3], "w") as f:
            f.write(tree)
