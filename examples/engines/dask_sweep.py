#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep on Dask: `client.get_executor()` is an executor as any other.

    pip install ./python "dask[distributed]"              in a checkout
    python examples/engines/dask_sweep.py [SCHEDULER_ADDRESS]      without an address: two workers on this computer

Dask hands a chunk out again if its worker is lost; chunks depend on their arguments alone, so the result is the same.
"""

from __future__ import annotations

import sys

from dask.distributed import Client, LocalCluster

import schedtwin as st


def sweep(client: Client, seeds: int = 10) -> st.Sweep:
    workers = sum(client.nthreads().values())
    return st.sweep(
        "pixel6",
        "ui-phone",
        "linux-7.3:hz={100,250,1000},schedutil.rate_limit_us={500,2000}",
        seeds=seeds,
        executor=client.get_executor(retries=3),
        workers=workers,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        client = Client(sys.argv[1])
    else:
        client = Client(LocalCluster(n_workers=2, threads_per_worker=1))
    done = sweep(client)
    print(done)
    print(done.front("power", "wakeup_latency.p99").best)
