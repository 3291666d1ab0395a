# SPDX-License-Identifier: GPL-2.0-or-later
"""Many settings: on this computer, or as chunks on any executor."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from datetime import timedelta

from . import _native
from ._errors import CrashWarning
from ._inputs import (
    KernelLike,
    MachineLike,
    WorkloadLike,
    kernel_of,
    machine_of,
    nanoseconds,
    several,
    workload_of,
)
from ._progress import Progress, ProgressLike
from ._table import Table, framed

__all__ = ["Figure", "Sweep", "chunk_spec", "run_chunk", "sweep"]

CHUNK_S = 20.0
"""A chunk takes about so long: long against what an engine needs to hand it out, short against what a lost worker costs."""


def run_chunk(spec: bytes, runs: range) -> bytes:
    """Performs consecutive runs of a sweep, and returns them as a stream of Arrow IPC.

    It depends on its arguments alone: the same bytes in every process on every computer with the same version, so an engine
    may call it anywhere, and again if a worker is lost. It uses one CPU and frees the interpreter's lock.
    """
    if runs.step != 1:
        raise ValueError("a chunk is consecutive runs: range(start, stop)")
    return _native.run_chunk(spec, runs.start, max(runs.start, runs.stop))


def _timed_chunk(spec: bytes, start: int, stop: int) -> tuple[bytes, float]:
    begun = time.perf_counter()
    done = _native.run_chunk(spec, start, stop)
    return done, time.perf_counter() - begun


class Sweep:
    """The runs of a sweep: `runs` has all of them, `front` the best settings, `write` makes the file that the command makes."""

    head: list[str]
    """Where the results come from: version, model, and each input with its hash."""

    def __init__(self, native: _native.Performed, head: Sequence[str]) -> None:
        self._native = native
        self.head = list(head)
        for crash in native.crashes:
            warnings.warn(f"a run panicked, which is a bug: {crash}", CrashWarning, stacklevel=3)

    @property
    def runs(self) -> Table:
        """A row for each run and metric. Columns: `run`, `machine`, `kernel`, `workload`, one for each setting that varies
        (numbers where all its values are), `seed`, `metric`, `stat`, `labels`, `kind`, `of`, `over`, `unit`, `value`, `crash`."""
        return Table(self._native.batch())

    def front(self, x: str, y: str) -> Front:
        """Every setting by two metrics, and which of them no other one beats in both. Columns: `machine`, `kernel`, `workload`,
        one for each setting that varies (numbers where all its values are), each metric's mean and, in the column with
        ` +-` behind its name, half the width of its 95 % interval; `front` (True or False)."""
        return Front(self._native, x, y)

    def file(self, path: str | os.PathLike[str] = "sweep.csv") -> bytes:
        """The content of the file that `schedtwin sweep --output` writes under this name."""
        return self._native.file(os.fspath(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes every run to a file: `.csv`."""
        content = self.file(path)
        with open(path, "wb") as file:
            file.write(content)

    def page(self, x: str | None = None, y: str | None = None) -> str:
        """A whole HTML page with the table of all settings; with two metrics also their figure, whether or not a front is
        wanted."""
        if (x is None) != (y is None):
            raise ValueError("a figure has two metrics: page(x, y)")
        return self._native.page() if x is None or y is None else self._native.page((x, y))

    def figure(self, x: str, y: str) -> Figure:
        """The figure of two metrics, a point for each setting: a notebook shows it."""
        return Figure(self.page(x, y))

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(self.page())


class Figure:
    """A page with a figure: a notebook shows it, `page` is its HTML."""

    def __init__(self, page: str) -> None:
        self.page = page

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)

    def _repr_html_(self) -> str:
        return framed(self.page, 760)


class Front(Table):
    """Settings by two metrics; `best` has those on the front."""

    def __init__(self, native: _native.Performed, x: str, y: str) -> None:
        super().__init__(native.points(x, y))
        self._page = native.page((x, y))

    @property
    def best(self) -> list[dict[str, object]]:
        """The settings that no other one beats in both metrics."""
        return [row for row in self if row["front"]]

    def page(self) -> str:
        """A whole HTML page with a figure of both metrics."""
        return self._page

    def _repr_html_(self) -> str:
        return framed(self._page, 760)


def sweep(
    machines: MachineLike | Sequence[MachineLike],
    workloads: WorkloadLike | Sequence[WorkloadLike],
    kernels: KernelLike | Sequence[KernelLike] = "linux-7.3",
    *,
    seeds: int = 3,
    first_seed: int = 1,
    duration: str | float | timedelta | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    chunk_s: float = CHUNK_S,
    cache: str | os.PathLike[str] | None = None,
    progress: ProgressLike = None,
) -> Sweep:
    """Runs every machine with every kernel, workload and seed. A list in a name stands for each of its values:
    `"linux-7.3:schedutil.rate_limit_us={500,1000,2000}"`.

    Without an executor it uses all CPUs of this computer. `executor` is any `concurrent.futures.Executor`: processes, threads,
    Dask's `client.get_executor()`; `workers` says how many calls it takes at once, if it does not say itself. The result is the
    same, to the byte. A chunk takes about `chunk_s` seconds.

    `cache` is a folder of results: a sweep that is repeated or widened performs only what is new, and one that was interrupted
    goes on.
    """
    made = _made(machines, workloads, kernels, seeds, first_seed, duration)
    folder = None if cache is None else os.fspath(cache)
    with Progress(progress) as shown:
        if executor is None:
            return Sweep(made.perform(folder, shown.told), made.head)
        chunks = _performed(made, executor, workers or _workers(executor), chunk_s, folder, shown)
    return Sweep(made.of_chunks(chunks, folder), made.head)


def chunk_spec(
    machines: MachineLike | Sequence[MachineLike],
    workloads: WorkloadLike | Sequence[WorkloadLike],
    kernels: KernelLike | Sequence[KernelLike] = "linux-7.3",
    *,
    seeds: int = 3,
    first_seed: int = 1,
    duration: str | float | timedelta | None = None,
) -> tuple[bytes, int]:
    """The sweep for `run_chunk`, and how many runs it has: for an engine of your own."""
    made = _made(machines, workloads, kernels, seeds, first_seed, duration)
    return made.to_bytes(), made.runs


def _made(
    machines: MachineLike | Sequence[MachineLike],
    workloads: WorkloadLike | Sequence[WorkloadLike],
    kernels: KernelLike | Sequence[KernelLike],
    seeds: int,
    first_seed: int,
    duration: str | float | timedelta | None,
) -> _native.Sweep:
    experiment = _native.Experiment(
        [machine_of(machine) for machine in several(machines)],
        [kernel_of(kernel) for kernel in several(kernels)],
        [workload_of(workload) for workload in several(workloads)],
        first_seed,
        seeds,
        nanoseconds(duration),
    )
    return experiment.sweep()


def _workers(executor: Executor) -> int:
    said = getattr(executor, "_max_workers", None)
    return said if isinstance(said, int) and said > 0 else os.cpu_count() or 1


def _performed(
    made: _native.Sweep,
    executor: Executor,
    workers: int,
    chunk_s: float,
    folder: str | None,
    shown: Progress,
) -> list[bytes]:
    """Hands out chunks, whose size follows from what the runs before took; each finished one goes into the cache."""
    missing = list(range(made.runs)) if folder is None else made.missing(folder)
    total, spec = len(missing), made.to_bytes()
    chunks: list[bytes] = []
    waiting: dict[Future[tuple[bytes, float]], int] = {}
    done, seconds, at = 0, 0.0, 0
    try:
        while at < total or waiting:
            while at < total and len(waiting) < 2 * workers:
                size = _size(total - at, workers, chunk_s, seconds / done if done else None)
                stop = at + 1
                while stop < total and stop - at < size and missing[stop] == missing[stop - 1] + 1:
                    stop += 1
                future = executor.submit(_timed_chunk, spec, missing[at], missing[stop - 1] + 1)
                waiting[future] = stop - at
                at = stop
            finished: Iterable[Future[tuple[bytes, float]]]
            finished, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in finished:
                size = waiting.pop(future)
                chunk, took = future.result()
                chunks.append(chunk)
                done, seconds = done + size, seconds + took
                if folder is not None:
                    made.keep(folder, chunk)
            if shown.told is not None:
                shown.told(done, total, done / total if total else 1.0)
    except BaseException:
        for future in waiting:
            future.cancel()
        raise
    return chunks


def _size(left: int, workers: int, chunk_s: float, run_s: float | None) -> int:
    """Runs of the next chunk: a few until a run's cost is known; towards the end no worker waits long for another."""
    if run_s is None:
        return max(1, min(4, left // (4 * workers)))
    wanted = int(chunk_s / max(run_s, 1e-6))
    return max(1, min(wanted, -(-left // (2 * workers))))
