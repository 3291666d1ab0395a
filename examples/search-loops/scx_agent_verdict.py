# SPDX-License-Identifier: GPL-2.0-or-later
"""What scx's agent (tools/scx_forge_agent) tells its planner of a candidate, from the twin in place of the machine: no root.

    python scx_agent_verdict.py scheds/rust/scx_bpfland

prints its verdict as JSON: `ok`, `stage`, `metric`, `runs`, `median`, `stddev`, `errors`. The candidate is a crate as it is in the
working tree. An option's default that was changed in main.rs since REVISION (HEAD) is given to the scheduler, too. RUNS (3) is how
often the suite is run, with other seeds each time; SUITE, SCHEDTWIN and SCHEDTWIN_CACHE_DIR are those of openevolve_evaluator.py.
The exit code is 0 for every verdict.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from openevolve_evaluator import BASE, scored

# Between the first seeds of two runs: more than a suite has.
APART = 1000


def defaults(main: str) -> dict[str, str]:
    """The options of a main.rs that have a default, by name."""
    found = {}
    for attributes, name in re.findall(r"#\[(?:clap|arg)\(([^\]]*)\)\]\s*(?:pub\s+)?(\w+)\s*:", main):
        if default := re.search(r'default_value(?:_t)?\s*=\s*"?([^",)\s]+)', attributes):
            found[name] = default[1].replace("_", "")
    return found


def changed(crate: pathlib.Path) -> dict[str, str]:
    """The options whose default is not what it was in the revision."""
    main = crate / "src/main.rs"
    if not main.exists():
        return {}
    revision = os.environ.get("REVISION", "HEAD")
    shown = ["git", "-C", str(crate), "show", f"{revision}:./src/main.rs"]
    before = subprocess.run(shown, capture_output=True, text=True, check=False)
    if before.returncode != 0:
        return {}
    old = defaults(before.stdout)
    return {name: value for name, value in defaults(main.read_text()).items() if old.get(name) != value}


def verdict(folder: str) -> dict[str, Any]:
    """The verdict on a crate."""
    crate = pathlib.Path(folder).resolve()
    answer: dict[str, Any] = {
        "ok": False, "stage": "spec", "package": crate.name, "metric": {"name": "score", "goal": "maximize", "value": None},
        "runs": [], "median": None, "stddev": None, "errors": [],
    }  # fmt: skip
    sources = sorted((crate / "src/bpf").glob("*.bpf.c"))
    named = [path for path in sources if path.name in ("main.bpf.c", f"{crate.name.removeprefix('scx_')}.bpf.c")]
    if not named:
        return {**answer, "errors": [f"{crate}/src/bpf has neither main.bpf.c nor a file of the scheduler's name"]}
    options = "".join(f",scx.{name}={value}" for name, value in changed(crate).items())
    for run in range(int(os.environ.get("RUNS", "3"))):
        found = scored(f"{BASE}:scx={named[0]}{options}", "--seed", str(1 + run * APART))
        if error := found["outcome"]["text"]:
            # Nothing ran of what does not compile or load.
            return {**answer, "stage": "runtime" if found["runs"] else "build", "errors": [error[-4000:]]}
        answer["runs"].append(found["score"])
    middle = statistics.median(answer["runs"])
    answer["metric"]["value"] = middle
    return {**answer, "ok": True, "stage": "complete", "median": middle, "stddev": statistics.pstdev(answer["runs"])}


if __name__ == "__main__":
    print(json.dumps(verdict(sys.argv[1]), indent=1))
