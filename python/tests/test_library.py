# SPDX-License-Identifier: GPL-2.0-or-later
"""The library as a user calls it."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import schedtwin as st

SMALL = {"duration": "50ms", "progress": False}
README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_fifteen_lines_run_as_they_stand(folder: pathlib.Path) -> None:
    pytest.importorskip("polars")
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert code is not None
    assert code.group(1) in (README.parent.parent / "docs/python.md").read_text()
    scope: dict[str, Any] = {}
    exec(code.group(1), scope)
    # Who is hurt comes before the headlines.
    assert re.search(r"\nB (against A|hurts) ", str(scope["r"]))
    assert len(scope["r"].runs) > 10_000
    assert scope["ev"].columns[:5] == ["Time", "time_ns", "__cpu", "__pid", "__comm"]
    front = scope["g"].front("power", "wakeup_latency.p99")
    assert len(front) == 3 and len(front.best) >= 1


def test_a_comparison_is_what_the_command_prints(folder: pathlib.Path) -> None:
    kernels = ["linux-7.3", "linux-7.3:hz=1000"]
    r = st.compare("pixel6", "my-app.json", kernels, seeds=3, **SMALL)
    command = [sys.executable, "-m", "schedtwin", "compare", "-m", "pixel6", "-w", "my-app.json"]
    command += ["-k", kernels[0], "-k", kernels[1], "-n", "3", "--duration", "50ms"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Of differences between kernels the command says a note more.
    assert [line for line in printed.splitlines() if not line.startswith("note: linux")] == str(r).splitlines()
    lists = st.compare("pixel6", "my-app.json", "linux-7.3:hz={250,1000}", seeds=2, **SMALL)
    assert lists.kernels == ["linux-7.3:hz=250", "linux-7.3:hz=1000"]
    value = r.value("ticks.sum")
    row = next(row for row in r.table if row["metric"] == "ticks" and row["kernel"] == kernels[1] and not row["labels"])
    assert value.value == pytest.approx(row["diff"]) and value.value > 0
    assert value.error == pytest.approx((row["diff_high"] - row["diff_low"]) / 2)
    assert "| " in r.text("markdown") and r.text("json").startswith("{")


def test_dicts_and_files_are_the_same_input(folder: pathlib.Path, app: dict[str, Any]) -> None:
    kernel = {"name": "mine", "description": "of mine", "extends": "linux-7.3", "hz": 100}
    (folder / "mine.toml").write_text('name = "mine"\ndescription = "of mine"\nextends = "linux-7.3"\nhz = 100\n')
    by_dict = st.run("pixel6", app, kernel, **SMALL)
    by_file = st.run("pixel6", st.Workload("my-app.json"), st.Kernel("./mine.toml"), **SMALL)
    assert by_dict.digest == by_file.digest
    assert st.run("pixel6", app, "linux-7.3", **SMALL).digest != by_dict.digest
    named = st.run("pixel6", st.Workload(app, name="scroll"), **SMALL)
    assert set(named.runs["workload"]) == {"scroll"}


def test_faults_are_exceptions_with_places() -> None:
    workload = {"tasks": {"a": {"rum": 10, "sleep": -5}}}
    with pytest.raises(st.InputError) as caught:
        st.run("pixel7", workload, "linux-7.3:hz=0")
    faults = caught.value.faults
    assert [(fault.file, fault.help) for fault in faults[:1]] == [("<command line>", faults[0].help)]
    assert any("pixel7" in fault.message for fault in faults)
    assert any("`hz`" in fault.message for fault in faults)
    rum = next(fault for fault in faults if "rum" in fault.message)
    assert (rum.file, rum.line, rum.help) == ("workload", 4, "did you mean `run`?")
    assert isinstance(caught.value, ValueError) and "did you mean" in str(caught.value)
    with pytest.raises(st.InputError, match="did you mean power"):
        st.run("pixel6", "w1", **SMALL).select("powre")
    with pytest.raises(st.InputError, match="sched_switch"):
        st.run("pixel6", "w1", **SMALL).events("sched_swich")
    with pytest.raises(ValueError, match="at least two kernels"):
        st.compare("pixel6", "w1", "linux-7.3")
    with pytest.raises(ValueError, match="unknown time unit"):
        st.run("pixel6", "w1", duration="10 bananas")


def test_events_records_and_explanations(folder: pathlib.Path) -> None:
    run = st.run("pixel6", "my-app.json", **SMALL)
    switches = run.events("sched_switch")
    assert switches.columns[5:9] == ["prev_comm", "prev_pid", "prev_prio", "prev_state"]
    times = switches["time_ns"]
    assert times == sorted(times) and "ui-0" in set(switches["next_comm"])
    run.write("out.txt")
    text = (folder / "out.txt").read_text()
    assert len(re.findall(r": sched_switch: ", text)) == len(switches)
    run.write("out.rec")
    told = run.explain(task="ui", at="10ms", window="5ms")
    assert told.matched > 0 and told.entries and "ui" in str(told)
    with pytest.raises(st.InputError, match="pftrace"):
        run.write("out.png")


def test_a_trace_is_a_workload(folder: pathlib.Path) -> None:
    st.run("pixel6", "my-app.json", duration="500ms").write("scroll.pftrace")
    st.run("pixel6", "my-app.json", duration="500ms").write("scroll.txt")
    w = st.replay("scroll.txt", machine="pixel6")
    r = st.compare("pixel6", w, ["linux-7.3", "linux-7.3:hz=1000"], seeds=2, progress=False)
    assert "scroll" in str(r) and len(r.runs) > 100


def test_the_same_result_in_threads_and_processes() -> None:
    """The interpreter's lock is free while runs run: two threads at once take less than one after the other."""
    digests: list[int] = []

    def work() -> None:
        digests.append(st.run("pixel6", "ui-phone", duration="2s", progress=False).digest)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    counted = 0
    while any(thread.is_alive() for thread in threads):
        counted += 1
        time.sleep(0.001)
    assert counted > 5, "this thread went on meanwhile"
    assert digests[0] == digests[1]


def test_ctrl_c_ends() -> None:
    code = (
        "import schedtwin as st, sys\n"
        "print('begun', flush=True)\n"
        "st.compare('pixel6', 'ui-phone', 'linux-7.3:hz={100,250,1000}', seeds=2000, duration='20s')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    _, told = child.communicate(timeout=30)
    assert child.returncode != 0 and "KeyboardInterrupt" in told


def test_progress_is_told() -> None:
    told: list[tuple[int, int, float]] = []
    st.compare(
        "pixel6",
        "ui-phone",
        "linux-7.3:hz={100,1000}",
        seeds=4,
        duration="4s",
        progress=lambda *now: told.append(now),
    )
    assert told and told[-1][1] == 8
    assert [fraction for *_, fraction in told] == sorted(fraction for *_, fraction in told)

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        st.compare("pixel6", "ui-phone", "linux-7.3:hz={100,1000}", seeds=40, duration="20s", progress=stop)


def test_pages_in_notebooks(folder: pathlib.Path) -> None:
    r = st.compare("pixel6", "my-app.json", "linux-7.3:hz={250,1000}", seeds=2, **SMALL)
    shown = r._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "What changed" in shown
    assert "<svg" in r.page() and r.page().startswith("<!DOCTYPE html>")
    assert "What was measured" in st.run("pixel6", "my-app.json", **SMALL).page()
    assert "<table>" in r.runs._repr_html_() and "more rows" in repr(r.runs)


def test_the_command() -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "schedtwin", *arguments], capture_output=True, text=True)

    assert command("--version").stdout == f"schedtwin {st.__version__}\n"
    assert "pixel6" in command("list", "machines").stdout
    bad = command("run", "-m", "pixel7", "-w", "w1")
    assert bad.returncode == 2 and "there is no machine `pixel7`" in bad.stderr
    assert command("run").returncode == 2 and command("run", "--help").returncode == 0
    assert "pixel6" in st.built_in("machines") and "ui-phone" in st.built_in("workloads")


class Deepest:
    """An idle governor that always takes the deepest state that pays until the timer."""

    def __init__(self, cpu: int, capacity: int, states: list[dict[str, Any]]) -> None:
        self.asked = 0

    def select(self, input: dict[str, Any]) -> tuple[int, bool, str]:
        self.asked += 1
        pays = [
            at
            for at, state in enumerate(input["states"])
            if not state["disabled"] and state["target_residency_ns"] <= max(0, input["sleep_length_ns"])
        ]
        state = pays[-1] if pays else 0
        return state, state > 0, "deepest until the timer"


class Race:
    """A frequency governor: as fast as it goes while anything runs."""

    def __init__(self, domain: int, cpus: list[int], table_khz: list[int], rate_limit_ns: int) -> None:
        self.lowest = table_khz[0]

    def update_util(self, view: dict[str, Any]) -> tuple[int, str] | None:
        busy = any(cpu["nr_running"] for cpu in view["cpus"])
        return (view["max_khz"], "race") if busy else (self.lowest, "idle")


class Packer:
    """A placement: the lowest idle CPU."""

    def select_task_rq(self, view: dict[str, Any]) -> tuple[int, str] | None:
        idle = [cpu["cpu"] for cpu in view["cpus"] if cpu["idle"]]
        return (idle[0], "lowest idle") if idle else None


def test_policies_in_python(app: dict[str, Any]) -> None:
    own = st.Kernel("linux-7.3").with_policies("mine", idle=Deepest, frequency=Race, placement=Packer)
    assert own.name.startswith("linux-7.3 with mine")
    r = st.compare("pixel6", app, ["linux-7.3", own], seeds=2, duration="200ms", progress=False)
    assert r.value("freq_mean.mean,domain=little").value > 0 if "domain=little" in str(r) else True
    again = st.compare("pixel6", app, ["linux-7.3", own], seeds=2, duration="200ms", progress=False)
    assert r.runs["value"] == again.runs["value"]
    told = st.run("pixel6", app, own, duration="100ms").explain()
    assert "deepest until the timer" in str(told) and "lowest idle" in str(told)


def test_a_mistake_of_a_policy_names_its_class_and_method(app: dict[str, Any]) -> None:
    class Raises:
        def select_task_rq(self, view: dict[str, Any]) -> tuple[int, str] | None:
            raise KeyError("no such key")

    class Forgets:
        def select_task_rq(self, view: dict[str, Any]) -> Any:
            return view["prev"]

    class Elsewhere:
        def select_task_rq(self, view: dict[str, Any]) -> tuple[int, str] | None:
            return 99, "far"

    class TooDeep(Deepest):
        def select(self, input: dict[str, Any]) -> tuple[int, bool, str]:
            return len(input["states"]), True, "deeper"

    class NoArguments:
        def __init__(self) -> None:
            pass

    for given, said, cause in [
        ({"placement": Raises}, r"Raises\.select_task_rq: KeyError: 'no such key'", KeyError),
        ({"placement": Forgets}, r"Forgets\.select_task_rq: .* returned \d+; it has to return \(CPU, why\) or None", TypeError),
        ({"placement": Elsewhere}, r"Elsewhere\.select_task_rq: .* may not use a CPU 99", ValueError),
        ({"idle": TooDeep}, r"TooDeep\.select: .* there is no state", ValueError),
        ({"idle": NoArguments}, r"NoArguments\.__call__: TypeError", TypeError),
    ]:
        own = st.Kernel("linux-7.3").with_policies("broken", **given)
        with pytest.raises(st.PolicyError, match=said) as caught:
            st.run("pixel6", app, own, **SMALL)
        assert isinstance(caught.value.__cause__, cause)
        assert caught.value.policy.endswith(said.split("\\")[0]) and caught.value.method in said
        with pytest.raises(st.PolicyError, match=said):
            st.compare("pixel6", app, ["linux-7.3", own], seeds=2, **SMALL)


def test_several_seeds_of_one_kernel(app: dict[str, Any]) -> None:
    r = st.run("pixel6", app, seeds=3, **SMALL)
    assert (r.seeds, len(r.digests), r.digests[0] == r.digest) == ([1, 2, 3], 3, True)
    assert sorted(set(r.runs["seed"])) == [1, 2, 3]
    estimate = r.estimate("power.mean")
    rows = [row["value"] for row in r.select("power.mean")]
    assert estimate.value == pytest.approx(sum(rows) / 3) == pytest.approx(r.value("power.mean"))
    assert estimate.error is not None and estimate.error > 0
    later = st.run("pixel6", app, seeds=range(2, 4), **SMALL)
    assert later.digests == r.digests[1:] and later.seeds == [2, 3]
    assert st.run("pixel6", app, seed=2, **SMALL).digests == later.digests[:1]
    for seeds in (range(1, 5, 2), range(3, 3)):
        with pytest.raises(ValueError, match="consecutive"):
            st.run("pixel6", app, seeds=seeds)


def test_numbers_are_columns_of_numbers_and_a_figure_needs_no_front(app: dict[str, Any]) -> None:
    g = st.sweep("pixel6", app, "linux-7.3:hz={250,1000}", seeds=1, **SMALL)
    names = [name for name in g.front("power", "wakeup_latency.p99").columns if name.endswith("hz")]
    assert len(names) == 1
    assert sorted(g.front("power", "wakeup_latency.p99")[names[0]]) == [250, 1000]
    assert set(g.runs[names[0]]) == {250, 1000}
    figure = g.figure("power", "wakeup_latency.p99")
    assert figure.page.startswith("<!DOCTYPE html>") and "<iframe" in figure._repr_html_()
    with pytest.raises(ValueError, match="two metrics"):
        g.page("power")


def test_help_lists_the_keys_of_policies_and_the_columns() -> None:
    for policy, method, keys in [
        (st.IdleGovernor, "select", ["states", "sleep_length_ns", "tick_stopped", "last_residency_ns"]),
        (st.FrequencyGovernor, "update_util", ["cpus", "demand", "table_khz", "current_khz"]),
        (st.Placement, "select_task_rq", ["kind", "this_cpu", "capacity_max", "idle_state"]),
    ]:
        told = getattr(policy, method).__doc__
        assert all(f"`{key}`" in told for key in keys), told
    for of, columns in [(st.Run.runs, ["label.task", "value"]), (st.Comparison.table, ["diff_pct", "significant"])]:
        assert all(f"`{column}`" in of.__doc__ for column in columns)
