"""Faults inside the program: another time, and no more threads than a file says."""

from __future__ import annotations

import json
import os
import threading
import time

_CONTROL = os.environ.get("HERMES_MATRIX_CONTROL", "")
_time, _time_ns, _start = time.time, time.time_ns, threading._start_new_thread  # type: ignore[attr-defined]


def _setting(name: str) -> float:
    try:
        with open(_CONTROL, encoding="utf-8") as file:  # noqa: PTH123
            return float(json.load(file).get(name, 0))
    except (OSError, ValueError):
        return 0


def _limited(*arguments: object, **named: object) -> int:
    most = _setting("threads")
    if most and threading.active_count() > most:
        raise RuntimeError("can't start new thread")
    started: int = _start(*arguments, **named)
    return started


if _CONTROL:
    time.time = lambda: _time() + _setting("clock")
    time.time_ns = lambda: _time_ns() + int(_setting("clock")) * 1_000_000_000
    threading._start_new_thread = _limited  # type: ignore[attr-defined]
