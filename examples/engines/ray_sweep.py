#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep on Ray: an executor in ten lines.

    pip install ./python ray                              in a checkout
    python examples/engines/ray_sweep.py [CLUSTER_ADDRESS]      without an address: two workers on this computer

Ray performs a chunk again if its worker is lost; chunks depend on their arguments alone, so the result is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

import schedtwin as st


class RayExecutor(Executor):
    """Hands each call to a worker of Ray, up to `retries` times more if its worker is lost."""

    def __init__(self, retries: int = 3) -> None:
        self._retries = retries

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        remote = ray.remote(num_cpus=1, max_retries=self._retries)(fn)
        return remote.remote(*args, **kwargs).future()


def sweep(seeds: int = 10) -> st.Sweep:
    return st.sweep(
        "pixel6",
        "ui-phone",
        "linux-7.3:hz={100,250,1000},schedutil.rate_limit_us={500,2000}",
        seeds=seeds,
        executor=RayExecutor(),
        workers=int(ray.cluster_resources()["CPU"]),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ray.init(sys.argv[1])
    else:
        ray.init(num_cpus=2)
    done = sweep()
    print(done)
    print(done.front("power", "wakeup_latency.p99").best)
