# SPDX-License-Identifier: GPL-2.0-or-later
"""The types are right: strict checkers agree, and the stubs are those of the module."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
USE = '''
import schedtwin as st
r = st.compare("pixel6", {"tasks": {}}, ["linux-7.3", st.Kernel("linux-7.3:hz=1000")], seeds=3, duration="1s")
power: float = r.value("power.mean").value
first = r.first_difference()
text: str = first.explain() if first is not None else ""
events: st.Table = st.run("pixel6", st.Workload("a.json")).events("sched_switch")
best: list[dict[str, object]] = st.sweep("pixel6", "w1").front("power", "energy").best
'''


def checked(*command: str, cwd: pathlib.Path = PACKAGE) -> None:
    # pyright --verifytypes asks the Python that it finds first.
    first = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": first}
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy(tmp_path: pathlib.Path) -> None:
    use = tmp_path / "use.py"
    use.write_text(USE)
    checked("mypy", "--strict", "-p", "schedtwin", cwd=tmp_path)
    checked("mypy", "--strict", str(use), cwd=tmp_path)
    checked("mypy.stubtest", "schedtwin._native", "--ignore-missing-stub", cwd=tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="pyright is not installed")
def test_pyright(tmp_path: pathlib.Path) -> None:
    use = tmp_path / "use.py"
    use.write_text("# pyright: strict\n" + USE)
    checked("pyright", "--pythonpath", sys.executable, str(use), cwd=tmp_path)
    checked("pyright", "--pythonpath", sys.executable, "--verifytypes", "schedtwin", "--ignoreexternal", cwd=tmp_path)
