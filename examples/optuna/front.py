#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The front of power against frame time over ten settings of schedutil, EAS and teo, by Optuna and by random search.

    pip install ./python optuna matplotlib                in a checkout
    python examples/optuna/front.py [--runs 600] [--figure front.svg]

Both searches have the same budget, counted in runs of the twin. A setting begins with two seeds; it gets more, up to six, while
it is not worse than some other setting in both metrics beyond the intervals: so a bad setting costs a third of a good one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import optuna

import schedtwin as st

MACHINES = ["pixel6", "sm8250"]
WORKLOAD = "ui-phone"
KERNEL = "linux-7.3-gki"
METRICS = ("power.mean", "frame_duration.p99")
FIRST_SEEDS, ALL_SEEDS = 2, 6

Settings = dict[str, str]


def suggested(trial: optuna.Trial) -> Settings:
    """Ten settings of schedutil, EAS and the idle governors."""
    choice = trial.suggest_categorical
    return {
        "schedutil.rate_limit_us": str(trial.suggest_int("schedutil.rate_limit_us", 100, 20_000, log=True)),
        "sugov_rate_limit": choice("sugov_rate_limit", ["requests", "changes"]),
        "sugov_mapping": choice("sugov_mapping", ["raw", "resolved"]),
        "energy_aware": choice("energy_aware", ["true", "false"]),
        "find_energy_efficient_cpu": choice("find_energy_efficient_cpu", ["margin", "fits"]),
        "runnable_boost": choice("runnable_boost", ["off", "on", "with-task"]),
        "features.util_est": choice("features.util_est", ["true", "false"]),
        "cpuidle": choice("cpuidle", ["teo", "menu"]),
        "teo": choice("teo", ["6.6", "6.12", "7.3"]),
        "hz": choice("hz", ["100", "250", "1000"]),
    }


@dataclass
class Search:
    """Settings that were tried on a machine, and what they cost."""

    machine: str
    duration: str
    budget: int
    runs: int = 0
    points: list[tuple[float, float]] = field(default_factory=list)
    settings: list[Settings] = field(default_factory=list)

    def measured(self, settings: Settings, seeds: range) -> list[tuple[float, float]]:
        """Both metrics of each seed."""
        kernel = KERNEL + ":" + ",".join(f"{key}={value}" for key, value in settings.items())
        out = []
        for seed in seeds:
            run = st.run(self.machine, WORKLOAD, kernel, seed=seed, duration=self.duration, progress=False)
            out.append((run.value(METRICS[0]), run.value(METRICS[1])))
        self.runs += len(out)
        return out

    def tried(self, settings: Settings) -> tuple[float, float]:
        """The means of a setting; more seeds while it may be on the front."""
        samples = self.measured(settings, range(1, FIRST_SEEDS + 1))
        if not self._hopeless(samples):
            samples += self.measured(settings, range(FIRST_SEEDS + 1, ALL_SEEDS + 1))
        point = mean(samples)
        self.points.append(point)
        self.settings.append(settings)
        return point

    def _hopeless(self, samples: list[tuple[float, float]]) -> bool:
        """Whether some setting is better than the best of each metric's samples."""
        best = tuple(min(sample[at] for sample in samples) for at in (0, 1))
        return any(x < best[0] and y < best[1] for x, y in self.points)

    def front(self) -> list[tuple[float, float]]:
        """The points that no other one beats in both."""
        return sorted(p for p in set(self.points) if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in self.points))


def mean(samples: list[tuple[float, float]]) -> tuple[float, float]:
    return sum(x for x, _ in samples) / len(samples), sum(y for _, y in samples) / len(samples)


def search(machine: str, sampler: optuna.samplers.BaseSampler, budget: int, duration: str) -> Search:
    """Tries settings until the budget of runs is used up."""
    found = Search(machine, duration, budget)

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        point = found.tried(suggested(trial))
        if found.runs >= budget:
            trial.study.stop()
        return point

    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective)
    return found


def hypervolume(front: list[tuple[float, float]], worst: tuple[float, float]) -> float:
    """The area that a front dominates, up to the worst point: more is better."""
    area, right = 0.0, worst[1]
    for x, y in front:
        if x < worst[0] and y < right:
            area += (worst[0] - x) * (right - y)
            right = y
    return area


def both(machine: str, budget: int, duration: str, seed: int = 1) -> tuple[Search, Search, float, float]:
    """Optuna's search and a random one with the same budget, and how much of the area each front dominates, in %."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    guided = search(machine, optuna.samplers.TPESampler(seed=seed, n_startup_trials=16, multivariate=True), budget, duration)
    random = search(machine, optuna.samplers.RandomSampler(seed=1000 + seed), budget, duration)
    every = guided.points + random.points
    worst = (max(x for x, _ in every), max(y for _, y in every))
    best = (min(x for x, _ in every), min(y for _, y in every))
    whole = (worst[0] - best[0]) * (worst[1] - best[1]) or 1.0
    shares = [100 * hypervolume(found.front(), worst) / whole for found in (guided, random)]
    return guided, random, shares[0], shares[1]


def draw(results: list[tuple[Search, Search, float, float]], path: str) -> None:
    """Both fronts of each machine."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(results), figsize=(6 * len(results), 4.5), squeeze=False)
    for axis, (guided, random, of_guided, of_random) in zip(axes[0], results, strict=True):
        for found, colour, marker, name in [
            (random, "tab:gray", "x", f"random search, {of_random:.1f} %"),
            (guided, "tab:blue", "o", f"Optuna (TPE), {of_guided:.1f} %"),
        ]:
            axis.scatter(*zip(*found.points, strict=True), s=14, alpha=0.4, color=colour, marker=marker, linewidths=1)
            axis.step(*zip(*found.front(), strict=True), where="post", color=colour, label=name)
        axis.set_title(f"{guided.machine}, {WORKLOAD}: {guided.budget} runs each")
        axis.set_xlabel("power, mW")
        axis.set_ylabel("frame_duration p99, ms")
        axis.legend(title="front, share of the area")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600, help="budget of each search, in runs")
    parser.add_argument("--duration", default="2s", help="simulated time of a run")
    parser.add_argument("--figure", default="front.svg", help="the figure to write")
    given = parser.parse_args()
    results = [both(machine, given.runs, given.duration) for machine in MACHINES]
    for guided, random, of_guided, of_random in results:
        print(f"{guided.machine}: {len(guided.points)} settings in {guided.runs} runs dominate {of_guided:.1f} % of the area,")
        print(f"  {len(random.points)} random ones in {random.runs} runs {of_random:.1f} %")
        for point in guided.front():
            settings = guided.settings[guided.points.index(point)]
            print(f"  {point[0]:8.1f} mW  {point[1]:8.2f} ms  {','.join(f'{k}={v}' for k, v in settings.items())}")
    draw(results, given.figure)
    print(f"figure: {given.figure}")


if __name__ == "__main__":
    main()
