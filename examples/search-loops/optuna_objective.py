# SPDX-License-Identifier: GPL-2.0-or-later
"""An objective for Optuna over settings of the kernel: maximise it.

    study = optuna.create_study(direction="maximize")
    study.optimize(optuna_objective.objective, n_trials=100)
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any

BASE = "baseline"


def suggested(trial: Any) -> dict[str, str]:
    """Settings of EEVDF, schedutil and the tick; write your own."""
    return {
        "eevdf.base_slice_unscaled_ns": str(trial.suggest_int("base_slice_ns", 200_000, 6_000_000, log=True)),
        "schedutil.rate_limit_us": str(trial.suggest_int("rate_limit_us", 100, 20_000, log=True)),
        "features.util_est": trial.suggest_categorical("util_est", ["true", "false"]),
        "hz": trial.suggest_categorical("hz", ["100", "250", "1000"]),
    }


def score(settings: dict[str, str]) -> float:
    """The number that `schedtwin score` prints."""
    kernel = BASE + ":" + ",".join(f"{key}={value}" for key, value in settings.items())
    command = shlex.split(os.environ.get("SCHEDTWIN", "schedtwin"))
    command += ["score", "-q", os.environ.get("SUITE", "default"), kernel]
    if cache := os.environ.get("SCHEDTWIN_CACHE_DIR"):
        command += ["--cache", cache]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def objective(trial: Any) -> float:
    """100 is the baseline, more is better."""
    return score(suggested(trial))
