# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads that tests share."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

APP: dict[str, Any] = {
    "tasks": {
        "ui": {"loop": -1, "run": 4000, "timer": {"ref": "ui", "period": 16667}},
        "worker": {"loop": -1, "run": 9000, "sleep": 12000},
    },
    "global": {"duration": 1},
}


@pytest.fixture
def app() -> dict[str, Any]:
    return APP


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder to work in, with `my-app.json`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-app.json").write_text(json.dumps(APP))
    return tmp_path
