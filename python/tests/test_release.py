# SPDX-License-Identifier: GPL-2.0-or-later
"""What CI runs for a user: the composite action's script, as it stands."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ACTION = pathlib.Path(__file__).parent.parent.parent / "release/compare-action/action.yml"


@pytest.mark.parametrize(("condition", "code"), [("power>+500%\n", 0), ("mean:ticks>-99%\nticks>-99%\n", 1), ("powre>1%", 2)])
def test_the_action(tmp_path: pathlib.Path, condition: str, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load(ACTION.read_text())
    (step,) = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite" and step["shell"] == "bash"
    command = tmp_path / "schedtwin"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m schedtwin "$@" --duration 20ms\n')
    command.chmod(0o755)
    given = {
        "machine": "uniform8",
        "workload": "w1",
        "base": "linux-7.3:hz=1000",
        "head": "linux-7.3",
        "fail-if": condition,
        "runs": "3",
        "command": str(command),
    }
    assert set(given) == set(action["inputs"])
    environment = {name: given[value.split("inputs.")[1].split(" ")[0]] for name, value in step["env"].items()}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={**os.environ, **environment, **files, "RUNNER_TEMP": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    comment = (tmp_path / "schedtwin-comment.md").read_text()
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == comment
    assert "| power" in comment or code == 2
    assert ("**Failed:**" in comment) == (code == 1)
