# SPDX-License-Identifier: GPL-2.0-or-later
"""An evaluator for OpenEvolve and its kin: a file in, a dict with `combined_score` out, more is better.

    openevolve-run initial.bpf.c openevolve_evaluator.py --config config.yaml

The file is a scheduler of sched_ext in C, or a kernel file (.toml). SUITE and SCHEDTWIN_CACHE_DIR name the suite and where the runs
of the baseline are kept. Keep the suite where the loop cannot read it: it has what is held out.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
from typing import Any

BASE = "baseline"


def scored(kernel: str, *more: str, suite: str | None = None) -> dict[str, Any]:
    """What `schedtwin score` says of a kernel; without a suite by SUITE."""
    command = shlex.split(os.environ.get("SCHEDTWIN", "schedtwin"))
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "score.json"
        arguments = ["score", "-q", suite or os.environ.get("SUITE", "default"), kernel, *more, "--json", str(out)]
        if cache := os.environ.get("SCHEDTWIN_CACHE_DIR"):
            arguments += ["--cache", cache]
        done = subprocess.run(command + arguments, capture_output=True, text=True, check=False)
        if done.returncode == 2:
            # The suite or this set-up is wrong: that is no candidate's fault, and a search must not go on.
            raise SystemExit(done.stderr)
        if done.returncode != 0:
            return {"score": 0.0, "runs": 0, "jobs": [], "outcome": {"text": done.stderr[-2000:]}}
        found: dict[str, Any] = json.loads(out.read_text())["candidates"][0]
        return found


def evaluate(program_path: str) -> dict[str, Any]:
    """The score of a candidate, 0 if it breaks a limit, and in words what ended it."""
    path = pathlib.Path(program_path).resolve()
    found = scored(f"{BASE}:scx={path}" if path.name.endswith(".c") else str(path))
    jobs = {job["name"]: job["score"] for job in found["jobs"] if job["score"] is not None}
    return {"combined_score": found["score"], **jobs, "error": found["outcome"]["text"] or ""}
