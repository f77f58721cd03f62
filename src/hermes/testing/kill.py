"""Kill points: end the process at a named point, or record the points that a run passes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hermes.core.errors import UsageError
from hermes.core.world import no_kill_point


def kill_points(setting: str) -> Callable[[str], None]:
    """The `kill_point` of a World. "" does nothing; "name" or "name:n" kills this process with
    SIGKILL when it reaches the name for the n-th time; "?path" appends every reached name to that
    file."""
    if not setting:
        return no_kill_point
    if setting.startswith("?"):
        return record_points(Path(setting[1:]))
    name, _, number = setting.partition(":")
    if not name or (number and not (number.isdecimal() and int(number) > 0)):
        raise UsageError(f'"{setting}" is not a kill point; write name, name:2 or ?file.')
    return kill_at(name, int(number or 1))


def kill_at(name: str, number: int) -> Callable[[str], None]:
    reached = 0

    def reach(at: str) -> None:
        nonlocal reached
        reached += at == name
        if at == name and reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def record_points(path: Path) -> Callable[[str], None]:
    def reach(at: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{at}\n")

    return reach


def walk(path: Path) -> tuple[str, ...]:
    """One setting for every recorded point, in order: "name:1", "name:2", …"""
    counts: Counter[str] = Counter()
    settings: list[str] = []
    for name in path.read_text(encoding="utf-8").splitlines():
        counts[name] += 1
        settings.append(f"{name}:{counts[name]}")
    return tuple(settings)
