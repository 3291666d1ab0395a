# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep has the same bytes by every way: the command, this process, threads, processes, shards, chunks, a cache."""

from __future__ import annotations

import multiprocessing
import pathlib
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

import schedtwin as st
from schedtwin import _sweep

KERNELS = ["linux-{6.12,7.3}:hz={250,1000}"]
HOW: dict[str, Any] = {"seeds": 5, "duration": "10ms", "progress": False}


def command(folder: pathlib.Path, *arguments: str) -> bytes:
    out = folder / "out.csv"
    call = [sys.executable, "-m", "schedtwin", "sweep", "-q", "-m", "pixel6", "-w", "my-app.json", "-k", KERNELS[0]]
    call += ["-n", "5", "--duration", "10ms", "-o", str(out), *arguments]
    subprocess.run(call, check=True, cwd=folder, capture_output=True)
    return out.read_bytes()


def test_every_way(folder: pathlib.Path) -> None:
    def swept(**how: Any) -> bytes:
        return st.sweep("pixel6", "my-app.json", KERNELS, **{**HOW, **how}).file()

    whole = command(folder)
    assert swept() == whole
    with ThreadPoolExecutor(2) as threads:
        assert swept(executor=threads) == whole
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        assert swept(executor=processes, chunk_s=0.05) == whole
    assert swept(cache="kept") == whole
    with ThreadPoolExecutor(2) as threads:
        assert swept(cache="kept", executor=threads) == whole
    assert command(folder, "--cache", "kept") == whole, "the command reads what Python kept"


def test_a_chunk_is_a_function_of_its_arguments(folder: pathlib.Path) -> None:
    spec, runs = st.chunk_spec("pixel6", "my-app.json", KERNELS, seeds=5, duration="10ms")
    assert runs == 20
    here = st.run_chunk(spec, range(3, 8))
    # Elsewhere there is no such file: the bytes have its content.
    (folder / "my-app.json").unlink()
    code = "import sys, schedtwin as st; sys.stdout.buffer.write(st.run_chunk(sys.stdin.buffer.read(), range(3, 8)))"
    there = subprocess.run([sys.executable, "-c", code], input=spec, check=True, capture_output=True).stdout
    assert there == here
    with pytest.raises(st.InputError, match="runs 19 to 21"):
        st.run_chunk(spec, range(19, 21))
    with pytest.raises(st.InputError, match="another sweep"):
        st.run_chunk(spec.replace(b"model ", b"model 9"), range(1))
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.ipc.open_stream(here).read_all()
    assert sorted(set(table["run"].to_pylist())) == [3, 4, 5, 6, 7]


class Counting(Executor):
    """Counts the runs that it is given, and performs them at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sizes.append(args[2] - args[1])
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_a_wider_sweep_performs_only_what_is_new(folder: pathlib.Path) -> None:
    def swept(kernels: str) -> list[int]:
        executor = Counting()
        st.sweep("pixel6", "my-app.json", kernels, executor=executor, workers=2, cache="kept", **HOW)
        return executor.sizes

    assert sum(swept("linux-7.3:hz={250,1000}")) == 10
    assert sum(swept("linux-7.3:hz={100,250,1000}")) == 5
    assert swept("linux-7.3:hz={100,250,1000}") == []


def test_chunks_follow_the_measured_cost() -> None:
    assert _sweep._size(2000, 2, 20.0, None) == 4
    assert _sweep._size(100_000, 2, 20.0, 0.1) == 200
    assert _sweep._size(100, 2, 20.0, 0.1) == 25, "towards the end all workers are busy"
    assert _sweep._size(3, 2, 20.0, 60.0) == 1


def test_own_policies_stay_in_their_process() -> None:
    class Stay:
        def select_task_rq(self, view: dict[str, Any]) -> tuple[int, str] | None:
            return None

    own = st.Kernel("linux-7.3").with_policies("stay", placement=Stay)
    with ThreadPoolExecutor(1) as threads, pytest.raises(st.InputError, match="stays in its process"):
        st.sweep("pixel6", "w1", own, executor=threads, **HOW)
