#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A random search over settings of EEVDF, schedutil and the tick, with what it overfits beside it.

    worked_search.py --suite phone --candidates 60

Three numbers of the same kernels: over the jobs that the search sees, over those that are held out, and over other seeds. The search
takes the best by the first alone, as a loop would that cannot see the others. Equal arguments print equal tables.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import tempfile
from typing import Any

COMMAND = shlex.split(os.environ.get("SCHEDTWIN", "schedtwin"))


def shown(suite: str) -> str:
    """The text of a suite."""
    return subprocess.run([*COMMAND, "show", "suite", suite], check=True, capture_output=True, text=True).stdout


def baseline(suite: str) -> str:
    """The kernel that has 100 in a suite."""
    found = re.search(r'^baseline = "(.*)"$', shown(suite), re.MULTILINE)
    if not found:
        raise SystemExit(f"the suite {suite} names no baseline")
    return found[1]


def drawn(base: str, draw: random.Random) -> str:
    """A kernel with settings at random."""
    settings = {
        "eevdf.base_slice_unscaled_ns": int(200_000 * 30 ** draw.random()),
        "schedutil.rate_limit_us": int(100 * 200 ** draw.random()),
        "features.util_est": draw.choice(["true", "false"]),
        "hz": draw.choice([100, 250, 1000]),
        "cpuidle": draw.choice(["teo", "menu"]),
    }
    return base + ":" + ",".join(f"{key}={value}" for key, value in settings.items())


def scored(suite: str, kernels: list[str]) -> list[dict[str, Any]]:
    """What `schedtwin score` finds of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "score.json"
        command = [*COMMAND, "score", "-q", suite, *kernels, "--json", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        candidates: list[dict[str, Any]] = json.loads(out.read_text())["candidates"]
        return candidates


def with_other_seeds(suite: str, seed: int, folder: str) -> str:
    """The suite with seeds that no search has seen."""
    path = pathlib.Path(folder) / "other.toml"
    path.write_text(shown(suite).replace("seeds = 4\n", f"seeds = 12\nfirst_seed = {seed}\n", 1))
    return str(path)


def main() -> None:
    """Searches, and prints the best five."""
    options = argparse.ArgumentParser()
    options.add_argument("--suite", default="phone")
    options.add_argument("--candidates", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    draw = random.Random(given.seed)
    base = baseline(given.suite)
    kernels = [drawn(base, draw) for _ in range(given.candidates)]
    found = scored(given.suite, kernels)
    out = sum(of["score"] == 0 for of in found)
    best = sorted((of for of in found if of["score"] > 0), key=lambda of: -of["shown"])[:5]
    with tempfile.TemporaryDirectory() as folder:
        again = scored(with_other_seeds(given.suite, 1000, folder), [of["kernel"] for of in best])
    print(f"{given.suite}: {given.candidates} candidates, {out} of them broke a limit\n")
    print("seen   held out  other seeds   +-    settings")
    for of, other in zip(best, again):
        settings = of["kernel"].removeprefix(f"{base}:")
        print(f"{of['shown']:5.1f}  {of['held_out']:8.1f}  {other['score']:11.1f}  {other['half_width'] or 0:4.1f}  {settings}")


if __name__ == "__main__":
    main()
