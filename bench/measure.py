"""How the benchmarks measure: the best of several runs, as a ratio to a floor of the same run."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
HERMES = str(Path(PYTHON).with_name("hermes"))


class Cost:
    """CPU and wall seconds and the largest resident size of a child process, in MB."""

    def __init__(self, cpu: float, wall: float, rss: float) -> None:
        self.cpu = cpu
        self.wall = wall
        self.rss = rss


def run_cost(command: Sequence[str], env: Mapping[str, str]) -> Cost:
    """What one run of a command costs; it must end well."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def best_cost(command: Sequence[str], env: Mapping[str, str], times: int = 11) -> Cost:
    costs = [run_cost(command, env) for _ in range(times)]
    return Cost(
        min(cost.cpu for cost in costs),
        min(cost.wall for cost in costs),
        min(cost.rss for cost in costs),
    )


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def report(name: str, **facts: object) -> None:
    print(json.dumps({"bench": name, **facts}), flush=True)


def rounded(value: float, digits: int = 4) -> float:
    return round(value, digits)


def timed(work: Callable[[], object], times: int) -> float:
    """Wall seconds of the fastest of several calls."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)
