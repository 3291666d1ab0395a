# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search has found, ranked again, and the draft of a letter about it, as Markdown on stdout.

    python winner.py 'linux-7.3:eevdf.base_slice_unscaled_ns=230000' > letter.md
    python winner.py 'baseline:scx=./my.bpf.c' --searched phone

A search takes the best of many, and so it takes luck, too. Here the kernel is scored with seeds that the search has not seen (BLOCKS
times, 3), on all built-in suites. Of the suite that it was searched on, the jobs where it gained most and least are compared with
the baseline, and the first decision that differs is explained. The letter says what the twin cannot know. SCHEDTWIN is the command.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import shlex
import subprocess
import sys
import tomllib
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from openevolve_evaluator import scored

TWIN = shlex.split(os.environ.get("SCHEDTWIN", "schedtwin"))
# The first seed of a block; searches begin with 1.
SEEDS = [10_001 + 1_000 * block for block in range(int(os.environ.get("BLOCKS", "3")))]


def twin(*arguments: str) -> str:
    """What the command prints; its exit codes 0 and 1 are results."""
    done = subprocess.run([*TWIN, *arguments], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        sys.exit(f"schedtwin {shlex.join(arguments)}:\n{done.stderr}")
    return done.stdout


def mean(scores: list[float]) -> float:
    """The geometric mean; 0 if one of them is."""
    return math.exp(sum(map(math.log, scores)) / len(scores)) if min(scores) > 0 else 0.0


def row(suite: str, results: list[dict[str, Any]]) -> str:
    """A line of the table of suites."""
    scores = [result["score"] for result in results]
    broken = [result["outcome"]["text"] for result in results if result["outcome"]["text"]]
    blocks = ", ".join(f"{score:.1f}" for score in scores)
    return f"| {suite} | {mean(scores):.1f} | {blocks} | {broken[0] if broken else 'nothing'} |"


def jobs(results: list[dict[str, Any]]) -> dict[str, float]:
    """The mean score of each job that all blocks have."""
    names = [job["name"] for job in results[0]["jobs"]]
    of = {name: [job["score"] for result in results for job in result["jobs"] if job["name"] == name] for name in names}
    return {name: mean(scores) for name, scores in of.items() if len(scores) == len(results) and None not in scores}


def compared(job: dict[str, Any], baseline: str, kernel: str) -> list[str]:
    """A job's table, and where the kernels part."""
    what = ["compare", "-q", "-m", job["machines"][0], "-w", job["workloads"][0], "-k", baseline, "-k", kernel]
    what += ["--duration", str(job["duration"])]
    table = twin(*what, "-n", "10", "--seed", str(SEEDS[0]), "--format", "markdown")
    parts = twin(*what, "--seed", str(SEEDS[0]), "--first-difference", "--width", "76")
    command = shlex.join(["schedtwin", *what, "-n", "10", "--seed", str(SEEDS[0])])
    return [f"    {command}", "", table, "The first decision that differs:", "", "```text", parts.rstrip(), "```", ""]


def letter(kernel: str, searched: str, others: tuple[str, ...] = ("default", "phone", "laptop")) -> str:
    """The draft."""
    text = pathlib.Path(searched).read_text() if searched.endswith(".toml") else twin("show", "suite", searched)
    suite = tomllib.loads(text)
    baseline = suite["baseline"]
    shown = kernel.replace("baseline", baseline, 1) if kernel.startswith("baseline:") else kernel
    suites = [searched, *(name for name in others if name != searched)]
    of = {name: [scored(kernel, "--seed", str(seed), suite=name) for seed in SEEDS] for name in suites}
    lines = [
        f"# {shown} against {baseline}", "",
        f"Scores with {len(SEEDS)} blocks of other seeds than the search had. 100 is the baseline of the suite, more is better.", "",
        "| suite | score | by block | broke |", "|---|---|---|---|", *(row(name, results) for name, results in of.items()), "",
    ]  # fmt: skip
    by_job = jobs(of[searched])
    if by_job:
        lines += [f"By job of `{searched}`; what is held out is in the scores above:", "", "| job | score |", "|---|---|"]
        lines += [f"| {name} | {score:.1f} |" for name, score in by_job.items()] + [""]
        known = {job["name"]: job for job in suite["job"]}
        for words, name in {"gains most": max(by_job, key=by_job.__getitem__), "gains least": min(by_job, key=by_job.__getitem__)}.items():
            lines += [f"## Where it {words}: {name}", "", *compared(known[name], baseline, shown)]
    lines += [
        "## What is not known", "",
        "- No number here was measured on a device. They are of schedtwin, a model of the machines with the kernel's arithmetic.",
        "- `schedtwin hunt --against BASELINE KERNEL` looks for work that it hurts; the suites hold only what they hold.",
        "- A booted kernel can rank schedulers of sched_ext, too: conformance/board/ranking of schedtwin's repository.",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("--searched", default="default", help="the suite that it was found on, a name or a .toml file [default]")
    given = parser.parse_args()
    print(letter(given.kernel, given.searched))
