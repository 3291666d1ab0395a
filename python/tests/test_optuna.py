# SPDX-License-Identifier: GPL-2.0-or-later
"""The example with Optuna: both searches keep to their budget, and fronts are fronts."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).parent.parent.parent / "examples/optuna/front.py"


def test_the_front(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("optuna")
    spec = importlib.util.spec_from_file_location("front", EXAMPLE)
    assert spec is not None and spec.loader is not None
    front = importlib.util.module_from_spec(spec)
    sys.modules["front"] = front
    spec.loader.exec_module(front)
    assert front.hypervolume([(1.0, 3.0), (2.0, 1.0)], (4.0, 4.0)) == 3.0 + 4.0
    results = [front.both(machine, 24, "100ms") for machine in front.MACHINES]
    for guided, random, of_guided, of_random in results:
        for found, share in ((guided, of_guided), (random, of_random)):
            assert 24 <= found.runs < 24 + front.ALL_SEEDS and 0 <= share <= 100
            assert len(found.settings[0]) == 10
            best = found.front()
            assert best and all(a[0] < b[0] and a[1] > b[1] for a, b in zip(best, best[1:]))
    every = [found for guided, random, *_ in results for found in (guided, random)]
    most = sum(front.ALL_SEEDS * len(found.points) for found in every)
    assert sum(found.runs for found in every) < most, "bad settings got fewer seeds"
    if importlib.util.find_spec("matplotlib") is not None:
        front.draw(results, str(tmp_path / "front.svg"))
        assert (tmp_path / "front.svg").stat().st_size > 10_000
