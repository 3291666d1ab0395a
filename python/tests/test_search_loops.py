# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapters of examples/search-loops, each with a script in the place of a model."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pathlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

LOOPS = pathlib.Path(__file__).parent.parent.parent / "examples/search-loops"

SUITE = """
name = "small"
description = "of this test"
baseline = "linux-7.3"
seeds = 1
properties = ["starvation"]
[[job]]
name = "scrolling"
machines = ["pixel6"]
workloads = ["ui-phone"]
duration = "200ms"
measure = [{ metric = "power.mean" }]
"""


@pytest.fixture
def suite(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A small suite, and the command of this package."""
    (tmp_path / "small.toml").write_text(SUITE)
    monkeypatch.setenv("SUITE", str(tmp_path / "small.toml"))
    monkeypatch.setenv("SCHEDTWIN", f"{sys.executable} -m schedtwin")
    monkeypatch.setenv("SCHEDTWIN_CACHE_DIR", str(tmp_path / "runs"))
    return tmp_path


def load(name: str) -> ModuleType:
    """An adapter as a loop loads it."""
    spec = importlib.util.spec_from_file_location(name, LOOPS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel(folder: pathlib.Path, name: str, line: str) -> str:
    path = folder / f"{name}.toml"
    path.write_text(f'name = "{name}"\ndescription = "of this test"\nextends = "linux-7.3"\n{line}\n')
    return str(path)


def test_openevolve_climbs_and_reads_why(suite: pathlib.Path) -> None:
    evaluate = load("openevolve_evaluator").evaluate
    base, bad = kernel(suite, "base", "hz = 1000"), kernel(suite, "bad", "hz = 0")
    found = evaluate(base)
    assert found["combined_score"] > 0 and found["scrolling"] == found["combined_score"] and not found["error"]
    found = evaluate(bad)
    assert found["combined_score"] == 0 and "hz" in found["error"]


class Trial:
    """A trial that takes the least of everything."""

    def suggest_int(self, name: str, least: int, most: int, log: bool) -> int:
        return least

    def suggest_categorical(self, name: str, choices: list[str]) -> str:
        return choices[0]


def test_optuna_has_a_number_to_maximise(suite: pathlib.Path) -> None:
    objective = load("optuna_objective")
    assert objective.objective(Trial()) == objective.score(objective.suggested(Trial())) > 0
    if importlib.util.find_spec("optuna") is not None:
        import optuna

        study: Any = optuna.create_study(direction="maximize")
        study.optimize(objective.objective, n_trials=3)
        assert study.best_value == max(trial.value for trial in study.trials)


def test_a_command_prints_one_number(suite: pathlib.Path) -> None:
    path = kernel(suite, "base", "hz = 1000")
    command = [str(LOOPS / "one_number"), path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert float(done.stdout) > 0 and done.stdout.count("\n") == 1


def test_a_crate_has_a_verdict(suite: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNS", "2")
    module = load("scx_agent_verdict")
    crate = suite / "scx_mine"
    assert module.verdict(str(crate))["stage"] == "spec"
    (crate / "src/bpf").mkdir(parents=True)
    (crate / "src/bpf/main.bpf.c").write_text("this is no C\n")
    found = module.verdict(str(crate))
    assert (found["ok"], found["stage"], found["metric"]["value"]) == (False, "build", None) and found["errors"]

    main = crate / "src/main.rs"
    main.write_text("#[clap(short = 's', long, default_value = \"1_000\")]\n    slice_us: u64,\n")
    git = ["git", "-C", str(crate), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    assert module.changed(crate) == {}
    main.write_text(main.read_text().replace("1_000", "500"))
    assert module.changed(crate) == {"slice_us": "500"}
    for other in ("fn main() { other() }\n", '#[clap(long, default_value_t = 20 * 1000)]\n    slice_us: u64,\n'):
        kept = main.read_text()
        main.write_text(other)
        assert module.verdict(str(crate))["stage"] == "spec", other
        main.write_text(kept)
    monkeypatch.setenv("REVISION", "nosuch")
    with pytest.raises(SystemExit, match="nosuch"):
        module.verdict(str(crate))
    monkeypatch.delenv("REVISION")

    def scored(kernel: str, *more: str) -> dict[str, Any]:
        """In place of a scheduler that compiles: its number is the seed's."""
        assert kernel.endswith("main.bpf.c,scx.slice_us=500")
        return {"score": 100.0 + float(more[-1]) / 1000, "runs": 40, "outcome": {"text": None}}

    monkeypatch.setattr(module, "scored", scored)
    found = module.verdict(str(crate))
    assert found["ok"] and found["stage"] == "complete" and found["runs"] == [100.001, 101.001]
    assert found["median"] == found["metric"]["value"] == 100.501 and found["stddev"] == 0.5


def test_a_winner_is_ranked_again(suite: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tomllib")
    monkeypatch.setenv("BLOCKS", "2")
    winner = load("winner")
    found = winner.letter("linux-7.3:hz=1000", str(suite / "small.toml"), others=())
    for part in ("# linux-7.3:hz=1000 against linux-7.3\n", "| scrolling |", "--seed 10001", "The first decision that differs", "not known"):
        assert part in found, found
    scores = next(line for line in found.splitlines() if "small.toml |" in line).split(" | ")[2].split(", ")
    assert len(scores) == 2 and all(float(score) > 0 for score in scores)


def test_an_agent_reads_why_and_proposes_again(suite: pathlib.Path) -> None:
    pytest.importorskip("mcp")
    asked: list[str] = []

    def propose(words: str) -> str | None:
        """First a setting that does not exist, then what the server says was meant, then enough."""
        asked.append(words)
        if len(asked) == 1:
            return "linux-7.3:hzz=100"
        if len(asked) == 2:
            assert "did you mean `hz`?" in words
            return "linux-7.3:hz=100"
        return None

    scores = asyncio.run(load("agent").improve(propose, "small.toml", str(suite)))
    assert scores["linux-7.3:hzz=100"] == 0 < scores["linux-7.3:hz=100"]
