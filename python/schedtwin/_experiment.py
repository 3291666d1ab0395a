# SPDX-License-Identifier: GPL-2.0-or-later
"""One run, and kernels against each other."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from . import _native
from ._errors import CrashWarning
from ._inputs import (
    KernelLike,
    MachineLike,
    WorkloadLike,
    expanded,
    kernel_of,
    machine_of,
    nanoseconds,
    several,
    workload_of,
)
from ._progress import Progress, ProgressLike
from ._table import Table, framed

__all__ = ["Comparison", "Explanation", "FirstDifference", "Run", "Value", "compare", "run"]

Duration: TypeAlias = str | float | timedelta | None


class Value(NamedTuple):
    """A number and how well it is known."""

    value: float
    error: float | None
    """Half the width of the 95 % interval; None from one run."""
    unit: str


class Explanation:
    """What happened, and why: `print` it, or read its `entries`."""

    def __init__(self, native: _native.Explanation) -> None:
        self._native = native

    @property
    def matched(self) -> int:
        """How many entries matched, listed or not."""
        return self._native.matched

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Facts, decisions and chains in time order."""
        entries: list[dict[str, Any]] = json.loads(self._native.json())["entries"]
        return entries

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return str(self)


class FirstDifference(Explanation):
    """The first decision where two kernels diverge."""

    def __init__(self, native: _native.Explanation, each: Sequence[tuple[str, _native.Experiment]]) -> None:
        super().__init__(native)
        self._each = each

    @property
    def at_ns(self) -> int:
        """When, in nanoseconds since the start."""
        at_ns = self._native.at_ns
        assert at_ns is not None
        return at_ns

    def explain(self, window: Duration = "20us") -> str:
        """The difference, then what each kernel did and decided within `window` of that moment."""
        window_ns = nanoseconds(window) or 0
        parts = [str(self)]
        for name, experiment in self._each:
            told = experiment.explain(at_ns=self.at_ns, window_ns=window_ns)
            parts.append(f"{name}, {window_ns / 1000:g} us around it:\n{told}")
        return "\n".join(parts)


class _Measured:
    """An experiment with its table."""

    def __init__(self, experiment: _native.Experiment, progress: ProgressLike) -> None:
        self._experiment = experiment
        with Progress(progress) as shown:
            self._table = experiment.run(shown.told)
        self._page: str | None = None
        for seed, kernel, message, command in self._table.crashes():
            text = f"{kernel} with seed {seed} panicked: {message}; this is a bug, please report it; again: {command}"
            warnings.warn(text, CrashWarning, stacklevel=4)

    @property
    def runs(self) -> Table:
        """A row for each run and metric. Columns: `machine`, `kernel`, `workload` (text), `seed` (whole number), `metric`,
        `stat`, `unit`, `kind` (text), `of`, `over` (parts that a row sums up), `better` (lower, higher or None), one for each
        kind of label such as `label.task` or `label.domain` (text, None where the row has none), and `value` (number, None
        where it is undefined). `schedtwin list metrics` says what each metric is."""
        return Table(self._table.batch())

    def select(self, selector: str) -> Table:
        """The rows of `runs` that a selector means: `"power"`, `"wakeup_latency.p99,task=ui"`, `"power,domain=*"`."""
        return Table(self._table.select(selector))

    @property
    def notices(self) -> list[str]:
        """What runs had to say: what was ignored, which limit ended them."""
        return self._table.notices()

    def page(self) -> str:
        """A whole HTML page with tables, intervals and figures, to be written to a file."""
        if self._page is None:
            self._page = self._experiment.page(self._table)
        return self._page

    def _repr_html_(self) -> str:
        return framed(self.page())


class Run(_Measured):
    """One run, or several with their seeds: what was measured, and what happened in the first one."""

    seeds: list[int]
    """The seeds, one for each run."""

    def __init__(self, experiment: _native.Experiment, seeds: Sequence[int], progress: ProgressLike) -> None:
        super().__init__(experiment, progress)
        self.seeds = list(seeds)
        self._text: str | None = None

    def events(self, event: str) -> Table:
        """All events of a name, such as `sched_switch`, with the columns of LISA: `Time`, `__cpu`, `__pid`, `__comm`, then the
        event's fields. The run is performed again for it, with the same result."""
        return Table(self._experiment.events(event))

    def explain(
        self,
        *,
        at: Duration = None,
        window: Duration = "500us",
        task: str | None = None,
        cpu: int | None = None,
        events: Sequence[str] = (),
        waits: bool = False,
        limit: int | None = None,
    ) -> Explanation:
        """What happened around a time, to a task or on a CPU, and why. `events` are names of entries (`sched_switch`, `pick`).
        With `waits` the longest waits for a CPU: why each began, and what ran there meanwhile."""
        window_ns = nanoseconds(window) or 0
        asked = (nanoseconds(at), window_ns, task, cpu, limit, list(events), waits)
        return Explanation(self._experiment.explain(*asked))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace (`.pftrace` for ui.perfetto.dev, `.txt` as ftrace text) or a record (`.rec`, `.jsonl`) of the run."""
        self._experiment.write(os.fspath(path))

    def value(self, metric: str) -> float:
        """The value of a metric: `"power.mean"`; of several runs their mean."""
        return self.estimate(metric).value

    def estimate(self, metric: str) -> Value:
        """The mean of a metric over the seeds, with half the width of its 95 % interval."""
        return _value(self._table, metric)

    @property
    def digest(self) -> int:
        """Digest over everything that happened in the first run: equal digests are equal executions."""
        return self._table.digests()[0]

    @property
    def digests(self) -> list[int]:
        """The digest of each run."""
        return self._table.digests()

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._experiment.run_text()
        return self._text

    def __repr__(self) -> str:
        return str(self)


class Comparison(_Measured):
    """Kernels against the first of them, with the same seeds."""

    kernels: list[str]
    """Their names; the first is the baseline."""

    def __init__(
        self,
        experiment: _native.Experiment,
        parts: tuple[Any, Sequence[Any], Any],
        options: tuple[int, int | None],
        progress: ProgressLike,
    ) -> None:
        super().__init__(experiment, progress)
        machine, kernels, workload = parts
        self._parts, self._options = parts, options
        names = _name(machine), _name(workload)
        comparison = self._table.comparison(*names)
        assert comparison is not None
        self._comparison = comparison
        self.kernels = [_name(kernel) for kernel in kernels]

    @property
    def table(self) -> Table:
        """A row for each metric and kernel: mean with its 95 % interval, and the difference to the first kernel with its own.

        Columns: `metric`, `stat`, `unit`, `labels`, `kernel` (text); `n` (runs); `mean`, `low`, `high` (its interval), `diff`,
        `diff_low`, `diff_high` (to the first kernel, in the unit), `diff_pct`, `p` (numbers, None where there is none);
        `significant` (True, False or None)."""
        return Table(self._comparison.batch())

    def text(self, format: str = "text", extent: str = "headlines") -> str:
        """What `schedtwin compare` prints. `format`: text, markdown, json, csv; `extent`: headlines, more, all."""
        return self._comparison.text(format, extent)

    def value(self, metric: str) -> Value:
        """The difference of the second kernel to the first: `"power.mean"`."""
        value, error = self._comparison.value(metric)
        return Value(value, error, Table(self._table.select(metric))["unit"][0])

    def first_difference(self) -> FirstDifference | None:
        """Where the first two kernels part, in the run with the first seed; None: they execute identically."""
        found = self._experiment.first_difference()
        if found is None:
            return None
        machine, kernels, workload = self._parts
        first_seed, duration_ns = self._options
        each = [
            (name, _native.Experiment([machine], [kernel], [workload], first_seed, 1, duration_ns))
            for name, kernel in zip(self.kernels[:2], kernels, strict=False)
        ]
        return FirstDifference(found, each)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()


def _name(given: Any) -> str:
    if isinstance(given, str):
        return given
    name: str = given[0] if isinstance(given, tuple) else given.name
    return name


def _value(table: _native.Table, metric: str) -> Value:
    rows = table.values(metric)
    unit = Table(table.select(metric))["unit"][0]
    samples: dict[str, dict[int, float | None]] = {}
    for kernel, seed, value in rows:
        told = samples.setdefault(kernel, {})
        if seed in told:
            raise ValueError(f"{metric} means several rows; name its stat and labels: 'power.mean,domain=big'")
        told[seed] = value
    known = _native.estimate([value for told in samples.values() for value in told.values()])
    if known is None:
        raise ValueError(f"{metric} has no value")
    return Value(known[0], known[1], unit)


def run(
    machine: MachineLike,
    workload: WorkloadLike,
    kernel: KernelLike = "linux-7.3",
    *,
    seed: int = 1,
    seeds: int | range | None = None,
    duration: Duration = None,
    progress: ProgressLike = None,
) -> Run:
    """Runs a workload on a kernel on a machine.

    `seed` is that of one run. `seeds` asks for several: a number of runs, with seeds from `seed` on, or a range of them. Then
    `runs` has the rows of all, `value()` and `estimate()` are means over them; events, explanations and files are of the first.
    """
    if isinstance(seeds, range):
        if seeds.step != 1 or len(seeds) < 1:
            raise ValueError("seeds are consecutive: range(start, stop)")
        if seed != 1:
            raise ValueError("seed= and a range of seeds= say the same: give one of them")
        first, count = seeds.start, len(seeds)
    else:
        first, count = seed, 1 if seeds is None else seeds
    parts = [machine_of(machine)], [kernel_of(kernel)], [workload_of(workload)]
    experiment = _native.Experiment(*parts, first, count, nanoseconds(duration))
    return Run(experiment, range(first, first + count), progress)


def compare(
    machine: MachineLike,
    workload: WorkloadLike,
    kernels: KernelLike | Sequence[KernelLike],
    *,
    seeds: int = 10,
    first_seed: int = 1,
    duration: Duration = None,
    progress: ProgressLike = None,
) -> Comparison:
    """Runs kernels with the same seeds; each is compared with the first. A name may have a list: `"linux-7.3:hz={250,1000}"`."""
    given = [kernel_of(kernel) for kernel in expanded(several(kernels))]
    if len(given) < 2:
        raise ValueError("a comparison has at least two kernels; for one there is run()")
    parts = machine_of(machine), given, workload_of(workload)
    duration_ns = nanoseconds(duration)
    experiment = _native.Experiment([parts[0]], given, [parts[2]], first_seed, seeds, duration_ns)
    return Comparison(experiment, parts, (first_seed, duration_ns), progress)
