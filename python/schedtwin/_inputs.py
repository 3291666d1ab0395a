# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines, kernels and workloads: names, files, dicts, traces, and kernels with policies of your own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from . import _native

__all__ = [
    "FrequencyGovernor",
    "IdleGovernor",
    "Kernel",
    "KernelLike",
    "Machine",
    "MachineLike",
    "Placement",
    "Recording",
    "Workload",
    "WorkloadLike",
    "replay",
]

Content: TypeAlias = Mapping[str, Any]
Named: TypeAlias = str | os.PathLike[str]
_Native: TypeAlias = str | tuple[str, str] | _native.Recording | _native.OwnKernel


class IdleGovernor(Protocol):
    """Chooses idle states of one CPU. Slow: for experiments.

    It is made by `idle(cpu=, capacity=, states=)`: the CPU's number, its capacity (of 1024), and its states as below.
    A method `reflect(stay)`, if there is one, hears of the end of each idle period: `state` (the index that was entered),
    `got_tick` (the tick ended it), `now_ns`, `last_residency_ns`.
    """

    def select(self, input: dict[str, Any]) -> tuple[int, bool, str]:
        """Returns the index of a state, whether the tick may stop, and why in a few words.

        `input` has these keys:

        - `states`: a list of dicts, the shallowest state first, with `exit_latency_ns`, `target_residency_ns`, `polling`, `disabled`
        - `sleep_length_ns`: time to the next timer, if the tick stops; `delta_tick_ns`: to the next tick
        - `latency_req_ns`: the longest exit latency that is allowed
        - `tick_stopped`: whether the tick is stopped already; `tick_nsec`: the tick's period
        - `now_ns`: the time; `last_residency_ns`: how long the CPU's last idle period was
        """
        ...


class FrequencyGovernor(Protocol):
    """Chooses the frequency of one domain. Slow: for experiments.

    It is made by `frequency(domain=, cpus=, table_khz=, rate_limit_ns=)`: the domain's number, its CPUs, its frequencies
    rising, and the least time between two changes.
    """

    def update_util(self, view: dict[str, Any]) -> tuple[int, str] | None:
        """Returns the frequency wanted in kHz and why; None: it stays.

        `view` has these keys:

        - `now_ns`: the time; `cpu`: the CPU whose utilisation changed; `iowait`: a task that waited for I/O woke up
        - `limits_changed`: by heat or a user; `max_khz`: the highest frequency that is allowed now
        - `table_khz`: the domain's frequencies, rising; `current_khz`: what was asked for last
        - `cpus`: a list of dicts, one for each CPU of the domain, with `cpu`, `demand` (utilisation with clamps and headroom,
          of `capacity`), `util` (without them), `capacity`, `nr_running`, `idle_ns` (how long it is idle; None: it is
          busy), `khz` (what schedutil would want for its demand)
        """
        ...


class Placement(Protocol):
    """Chooses CPUs of fair tasks that wake up, start or execute. Slow: for experiments.

    It is made by `placement()`, once for the machine.
    """

    def select_task_rq(self, view: dict[str, Any]) -> tuple[int, str] | None:
        """Returns a CPU and why; None: as the kernel would.

        `view` has these keys:

        - `kind`: `"wakeup"`, `"fork"` or `"exec"`
        - `task`: its number; `prev`: the CPU where it ran last; `util_avg`, `util_est`; `nice`
        - `this_cpu`: the waker's; `sync`: the waker is about to sleep; `overutilized`: EAS does not place now
        - `cpus`: a list of dicts, one for each CPU that the task may use, with `cpu`, `idle`, `idle_state` (None: it is busy),
          `nr_running`, `util`, `capacity` (what is left beside RT tasks, interrupts and heat), `capacity_max`
        """
        ...


class _Input:
    """Something that was named, or whose content was given."""

    _kind = "input"
    name: str
    """The name that results give it."""
    _given: _Native

    def __init__(self, what: Named | Content, *, name: str | None = None) -> None:
        if isinstance(what, Mapping):
            self.name = name or self._name_of(what)
            self._given = (self.name, self._text(what))
        else:
            if name is not None:
                raise TypeError("name= is for a dict; a file or a built-in has its own")
            self.name = os.fspath(what)
            self._given = self.name

    def _name_of(self, content: Content) -> str:
        name = content.get("name")
        return name if isinstance(name, str) else self._kind

    def _text(self, content: Content) -> str:
        return _native.toml_text(json.dumps(content))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Machine(_Input):
    """A machine: `"pixel6"`, `"pixel6:ambient_c=4"`, `"my-phone.toml"`, or the content of such a file as a dict."""

    _kind = "machine"


class Kernel(_Input):
    """A kernel: `"linux-7.3"`, `"linux-5.18+runnable-boost:hz=1000"`, `"mine.toml"`, or the content of such a file as a dict."""

    _kind = "kernel"

    def with_policies(
        self,
        name: str,
        *,
        idle: Callable[..., IdleGovernor] | None = None,
        frequency: Callable[..., FrequencyGovernor] | None = None,
        placement: Callable[..., Placement] | None = None,
    ) -> Kernel:
        """This kernel with policies of your own, which are called once for each CPU, frequency domain, or machine.

        `idle(cpu=, capacity=, states=)` makes an `IdleGovernor`, `frequency(domain=, cpus=, table_khz=, rate_limit_ns=)` a
        `FrequencyGovernor`, `placement()` a `Placement`; `help(schedtwin.IdleGovernor)` and the others list what they are asked
        with. A policy reads nothing but its arguments: then runs repeat. What a policy raises, or returns wrongly, is
        raised by `run` or `compare` as `PolicyError`, with its class and method.

        This is slow, 3 to 16 times slower than a built-in policy, and such runs use one CPU. What shall stay is
        written in Rust: CONTRIBUTING.md, "Write your own policy".
        """

        def named(make: Callable[..., Any] | None) -> tuple[str, Callable[..., Any]] | None:
            return None if make is None else (name, make)

        own = _native.OwnKernel(self._given, named(idle), named(frequency), named(placement))
        kernel = Kernel.__new__(Kernel)
        kernel.name, kernel._given = own.name, own
        return kernel


class Workload(_Input):
    """A workload: `"ui-phone"`, `"messaging -t -g 1"`, an rt-app file `"my-app.json"`, or the content of such a file as a dict."""

    _kind = "workload"

    def _name_of(self, content: Content) -> str:
        return self._kind

    def _text(self, content: Content) -> str:
        return json.dumps(content, indent=1)


class Recording(Workload):
    """The work of a trace, to be run on other kernels."""

    notes: list[str]
    """What was assumed about the recorded device."""


MachineLike: TypeAlias = Machine | Named | Content
KernelLike: TypeAlias = Kernel | Named | Content
WorkloadLike: TypeAlias = Workload | Named | Content


def replay(
    trace: Named,
    *,
    machine: MachineLike,
    recorded_on: MachineLike | None = None,
    duration: str | float | timedelta | None = None,
) -> Recording:
    """The work of a trace (ftrace text, trace.dat, perf.data, Perfetto; packed, in an archive or a folder) as a workload for
    `machine`.

    `recorded_on` names the machine that the trace is of, if it is another one.
    """
    read = _native.Recording(
        os.fspath(trace),
        machine_of(machine),
        None if recorded_on is None else machine_of(recorded_on),
        nanoseconds(duration),
    )
    recording = Recording.__new__(Recording)
    recording.name, recording._given, recording.notes = read.name, read, read.notes
    return recording


def machine_of(machine: MachineLike) -> _Native:
    return (machine if isinstance(machine, Machine) else Machine(machine))._given


def kernel_of(kernel: KernelLike) -> _Native:
    return (kernel if isinstance(kernel, Kernel) else Kernel(kernel))._given


def workload_of(workload: WorkloadLike) -> _Native:
    return (workload if isinstance(workload, Workload) else Workload(workload))._given


def several(given: Any) -> list[Any]:
    """A list of inputs: one input is a list of one."""
    if isinstance(given, (str, os.PathLike, Mapping, _Input)) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def expanded(kernels: Sequence[KernelLike]) -> list[KernelLike]:
    """Kernels, where a name with a list stands for each of its choices."""
    out: list[KernelLike] = []
    for kernel in kernels:
        name = kernel.name if isinstance(kernel, Kernel) else kernel
        own = isinstance(kernel, Kernel) and not isinstance(kernel._given, str)
        if own or isinstance(name, Mapping):
            out.append(kernel)
        else:
            out.extend(_native.choices(os.fspath(name)))
    return out


def nanoseconds(duration: str | float | timedelta | None) -> int | None:
    """Nanoseconds of `"10s"`, of seconds, or of a timedelta."""
    if duration is None:
        return None
    if isinstance(duration, str):
        return _native.duration_ns(duration)
    if isinstance(duration, timedelta):
        return round(duration / timedelta(microseconds=1)) * 1000
    return round(duration * 1e9)
