# SPDX-License-Identifier: GPL-2.0-or-later
"""What scx's agent (tools/scx_forge_agent) tells its planner of a candidate, from the twin in place of the machine: no root.

    python scx_agent_verdict.py scheds/rust/scx_bpfland

prints its verdict as JSON: `ok`, `stage`, `metric`, `runs`, `median`, `stddev`, `errors`. The candidate is a crate as it is in the
working tree: its BPF, and the defaults of options that were changed in main.rs since REVISION (HEAD). Rust is not run, so any other
change of main.rs is refused, at the stage `spec`, and so is a default that is no plain number or truth value, or of an option that
the twin does not have. RUNS (3) is how often the suite is run, with other seeds each time; SUITE, SCHEDTWIN and SCHEDTWIN_CACHE_DIR
are those of openevolve_evaluator.py. The exit code is 0 for every verdict, and 1 if the set-up is wrong.
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


OPTION = re.compile(r'(#\[(?:clap|arg)\((?:[^\]"]|"[^"]*")*?default_value(?:_t)?\s*=\s*)("[^"]*"|[^,)]+)((?:[^\]"]|"[^"]*")*\]\s*(?:pub\s+)?(\w+)\s*:)')


def defaults(main: str) -> tuple[dict[str, str], str]:
    """The options of a main.rs that have a default, by name, and the text without these."""
    found = {name: default.strip().strip('"') for _, default, _, name in OPTION.findall(main)}
    return found, OPTION.sub(lambda match: f"{match[1]}...{match[3]}", main)


class Refused(Exception):
    """What the twin cannot take of a candidate."""


def changed(crate: pathlib.Path) -> dict[str, str]:
    """The options whose default is not what it was in the revision."""
    main = crate / "src/main.rs"
    if not main.exists():
        return {}
    revision = os.environ.get("REVISION", "HEAD")
    shown = ["git", "-C", str(crate), "show", f"{revision}:./src/main.rs"]
    before = subprocess.run(shown, capture_output=True, text=True, check=False)
    if before.returncode != 0:
        raise SystemExit(f"REVISION={revision}: {before.stderr}")
    (old, old_rest), (new, new_rest) = defaults(before.stdout), defaults(main.read_text())
    if old_rest != new_rest or old.keys() != new.keys():
        raise Refused("main.rs has changes that are no default of an option: the twin runs no Rust, so they would have no effect")
    options = {name: value.replace("_", "") for name, value in new.items() if old[name] != value}
    for name, value in options.items():
        if not re.fullmatch(r"-?[0-9]+|true|false", value):
            raise Refused(f"the default of `{name}` is `{value}`: the twin takes plain whole numbers, true and false")
    return options


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
    try:
        options = "".join(f",scx.{name}={value}" for name, value in changed(crate).items())
    except Refused as why:
        return {**answer, "errors": [str(why)]}
    for run in range(int(os.environ.get("RUNS", "3"))):
        found = scored(f"{BASE}:scx={named[0]}{options}", "--seed", str(1 + run * APART))
        if error := found["outcome"]["text"]:
            # Nothing ran of what does not compile or load, or has an option that the twin does not know.
            stage = "runtime" if found["runs"] else "spec" if "<command line>" in error and "scx." in error else "build"
            return {**answer, "stage": stage, "errors": [error[-4000:]]}
        answer["runs"].append(found["score"])
    middle = statistics.median(answer["runs"])
    answer["metric"]["value"] = middle
    return {**answer, "ok": True, "stage": "complete", "median": middle, "stddev": statistics.pstdev(answer["runs"])}


if __name__ == "__main__":
    print(json.dumps(verdict(sys.argv[1]), indent=1))
