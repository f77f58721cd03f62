"""Counts requests, runs and event-loop lag, in the Prometheus text format."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from pathlib import Path

from hermes.core.world import Clock

TICK_SECONDS = 0.05
STORED_TICKS = 1_200


class Metrics:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.started_at = clock.now()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.streams = 0
        self._lags: deque[float] = deque(maxlen=STORED_TICKS)

    @property
    def worst_lag(self) -> float:
        """The worst lag of the last minute."""
        return max(self._lags, default=0.0)

    @property
    def uptime(self) -> float:
        return self._clock.now() - self.started_at

    async def watch_loop(self) -> None:
        """Measure how late the event loop is."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(TICK_SECONDS)
            self._lags.append(loop.time() - before - TICK_SECONDS)

    def text(self, gauges: dict[str, float], endings: dict[str, int]) -> str:
        lines = ["# TYPE hermes_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"hermes_requests_total{{{labels}}} {count}")
        lines.append("# TYPE hermes_runs_total counter")
        for ending, count in sorted(endings.items()):
            lines.append(f'hermes_runs_total{{status="{ending}"}} {count}')
        own = {
            "hermes_uptime_seconds": self.uptime,
            "hermes_event_loop_worst_lag_seconds": self.worst_lag,
            "hermes_resident_bytes": float(resident_bytes()),
            "hermes_streams": float(self.streams),
        }
        for name, value in (gauges | own).items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """Resident memory in bytes; 0 where the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * 4096
