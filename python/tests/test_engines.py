# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps on engines as they are: Dask and Ray lose a worker in the middle and no run; templates do what they say."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest

import schedtwin as st

ENGINES = pathlib.Path(__file__).parent.parent.parent / "examples/engines"
KERNELS = "linux-7.3:hz={100,250,1000},schedutil.rate_limit_us={500,2000}"
SEEDS = 10


@pytest.fixture(scope="module")
def whole() -> bytes:
    return st.sweep("pixel6", "ui-phone", KERNELS, seeds=SEEDS, progress=False).file()


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ENGINES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Killer(threading.Thread):
    """Kills a worker once it is at work."""

    def __init__(self, find: Callable[[], list[int]]) -> None:
        super().__init__(daemon=True)
        self._find = find
        self.killed: int | None = None

    def run(self) -> None:
        deadline = time.monotonic() + 30
        while self.killed is None and time.monotonic() < deadline:
            for pid in self._find()[:1]:
                os.kill(pid, 9)
                self.killed = pid
            time.sleep(0.02)


def test_dask_loses_a_worker_and_no_run(whole: bytes) -> None:
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("dask")
    dask_sweep = example("dask_sweep")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            scheduler = cluster.scheduler

            def at_work() -> list[int]:
                busy = [at for at, worker in enumerate(scheduler.workers.values()) if worker.processing]
                return pids[:1] if busy else []

            killer = Killer(at_work)
            killer.start()
            swept = dask_sweep.sweep(client, SEEDS)
            assert killer.killed is not None, "a worker was killed while it worked"
    assert swept.file() == whole


def test_ray_loses_a_worker_and_no_run(whole: bytes) -> None:
    ray = pytest.importorskip("ray")
    psutil = pytest.importorskip("psutil")
    ray_sweep = example("ray_sweep")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:

        def at_work() -> list[int]:
            found = []
            for process in psutil.Process().children(recursive=True):
                try:
                    words = process.cmdline()
                except psutil.Error:
                    continue
                if words and words[0].startswith("ray::_timed_chunk"):
                    found.append(process.pid)
            return found

        killer = Killer(at_work)
        killer.start()
        swept = ray_sweep.sweep(SEEDS)
        assert killer.killed is not None, "a worker was killed while it worked"
    finally:
        ray.shutdown()
    assert swept.file() == whole


def shell(*words: str, cwd: pathlib.Path, **environment: str) -> None:
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def small(tmp_path: pathlib.Path) -> str:
    """The command, with the templates' 100 seeds as one short run each."""
    command = tmp_path / "schedtwin"
    command.write_text(
        f"#!{sys.executable}\nimport os, sys\nwords = sys.argv[1:]\n"
        "if '-n' in words:\n    words[words.index('-n') + 1] = '1'\n    words += ['--duration', '5ms']\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'schedtwin', *words])\n"
    )
    command.chmod(0o755)
    return str(command)


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_shards_with_gnu_parallel(whole: bytes, tmp_path: pathlib.Path) -> None:
    command = tmp_path / "schedtwin"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m schedtwin "$@"\n')
    command.chmod(0o755)
    sweep = ["-m", "pixel6", "-w", "ui-phone", "-k", KERNELS, "-n", str(SEEDS)]
    shell(str(ENGINES / "parallel.sh"), "runs.csv", *sweep, cwd=tmp_path, SCHEDTWIN=str(command), SHARDS="3")
    assert (tmp_path / "runs.csv").read_bytes() == whole
    assert not list(tmp_path.glob("*.parts.*"))


def expected(small: str, folder: pathlib.Path) -> bytes:
    kernels = "linux-7.3:hz={100,250,1000},schedutil.rate_limit_us={500,1000,2000}"
    shell(small, "sweep", "-q", "-m", "pixel6", "-w", "ui-phone", "-k", kernels, "-n", "100", "-o", "whole.csv", cwd=folder)
    return (folder / "whole.csv").read_bytes()


def merged(small: str, folder: pathlib.Path) -> bytes:
    parts = sorted(str(path) for path in (folder / "parts").glob("part-*.csv"))
    shell(small, "merge", *parts, "-o", "runs.csv", cwd=folder)
    return (folder / "runs.csv").read_bytes()


def test_the_template_for_slurm(small: str, tmp_path: pathlib.Path) -> None:
    script = (ENGINES / "slurm-array.sh").read_text()
    options = dict(line[8:].partition("=")[::2] for line in script.splitlines() if line.startswith("#SBATCH "))
    known = {"--job-name", "--array", "--cpus-per-task", "--mem", "--time", "--requeue", "--output"}
    assert set(options) == known and options["--array"].startswith("1-")
    (tmp_path / "parts").mkdir()
    for task in ("1", "2", "3"):
        environment = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MAX": "3", "SLURM_CPUS_PER_TASK": "1"}
        shell("sh", str(ENGINES / "slurm-array.sh"), cwd=tmp_path, SCHEDTWIN=small, **environment)
    assert merged(small, tmp_path) == expected(small, tmp_path)


def test_the_template_for_kubernetes(small: str, tmp_path: pathlib.Path) -> None:
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((ENGINES / "kubernetes-indexed-job.yaml").read_text())
    if importlib.util.find_spec("kubernetes_validate") is not None:
        import kubernetes_validate

        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (script,) = container["args"]
    assert f"/{job['spec']['completions']}\"" in script, "as many shards as indices"
    script = script.replace("/40", "/3").replace("/parts/", "parts/").replace("exec schedtwin", f"exec {small}")
    (tmp_path / "parts").mkdir()
    for index in ("0", "1", "2"):
        shell(*container["command"], script, cwd=tmp_path, JOB_COMPLETION_INDEX=index)
    assert merged(small, tmp_path) == expected(small, tmp_path)
