# SPDX-License-Identifier: GPL-2.0-or-later
"""Linux's scheduler, frequency and idle code as a deterministic twin.

    import schedtwin as st

    r = st.compare("pixel6", "ui-phone", ["linux-7.3", "linux-7.3:hz=1000"])
    print(r)

Machines, kernels and workloads are names of what is built in, paths of files, or dicts. The same arguments give the same result
on every computer.
"""

from __future__ import annotations

from . import _native
from ._errors import CrashWarning, Error, Fault, InputError, PolicyError
from ._experiment import Comparison, Explanation, FirstDifference, Run, Value, compare, run
from ._inputs import (
    FrequencyGovernor,
    IdleGovernor,
    Kernel,
    Machine,
    Placement,
    Recording,
    Workload,
    replay,
)
from ._sweep import Figure, Front, Sweep, chunk_spec, run_chunk, sweep
from ._table import Table

__all__ = [
    "Comparison",
    "CrashWarning",
    "Error",
    "Explanation",
    "Fault",
    "Figure",
    "FirstDifference",
    "FrequencyGovernor",
    "Front",
    "IdleGovernor",
    "InputError",
    "Kernel",
    "Machine",
    "Placement",
    "PolicyError",
    "Recording",
    "Run",
    "Sweep",
    "Table",
    "Value",
    "Workload",
    "built_in",
    "chunk_spec",
    "compare",
    "model_version",
    "replay",
    "run",
    "run_chunk",
    "sweep",
]

__version__: str = _native.VERSION

model_version: str = _native.MODEL_VERSION
"""Results of equal model versions are comparable."""


def built_in(what: str) -> dict[str, str]:
    """What is built in, with descriptions: `"machines"`, `"kernels"`, `"patches"` or `"workloads"`."""
    if what not in ("machines", "kernels", "patches", "workloads"):
        raise ValueError("there are machines, kernels, patches and workloads")
    return dict(_native.built_in(what))
