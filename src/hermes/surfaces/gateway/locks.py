"""Ensures that one gateway runs per home: a lock for life, and a file that identifies the process
also after its id was reused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from hermes.codec.file_lock import FileLock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.home import Home, replace_file
from hermes.core.errors import ConfigError
from hermes.version import __version__

REPLACE_SECONDS = 10.0
LOOK_SECONDS = 0.05


class GatewayProcess(Value):
    """The process that holds the lock. `start_time` tells it from a later one with its id."""

    pid: int
    start_time: str
    argv: tuple[str, ...] = ()
    version: str = ""


class GatewayLock:
    """Held by the gateway of a home until it ends. The kernel releases it when the process dies."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = FileLock(home.root / "gateway.lock")

    def acquire(self, argv: tuple[str, ...], *, replaces: bool = False) -> None:
        """Take the lock; raise ConfigError while another gateway runs. `replaces` ends that one
        first."""
        self._home.ensure_folder(self._home.root)
        if not self._lock.acquire(timeout=0):
            other = read_process(self._home)
            if not replaces or other is None:
                who = f" (process {other.pid})" if other else ""
                raise ConfigError(
                    f"A gateway is running in this home already{who}; stop it with `hermes gateway "
                    "stop`, or replace it with `hermes gateway run --replace`."
                )
            end_process(other)
            if not self._lock.acquire(timeout=REPLACE_SECONDS):
                raise ConfigError(f"Process {other.pid} does not end; stop it and try again.")
        own = GatewayProcess(
            pid=os.getpid(),
            start_time=process_start(os.getpid()),
            argv=argv,
            version=__version__,
        )
        replace_file(self._home, pid_path(self._home), encode(own))

    def release(self) -> None:
        pid_path(self._home).unlink(missing_ok=True)
        self._lock.close()


def pid_path(home: Home) -> Path:
    return home.root / "gateway.pid"


def read_process(home: Home) -> GatewayProcess | None:
    """The process that the file names, which may be gone."""
    try:
        return decode(GatewayProcess, pid_path(home).read_bytes())
    except (OSError, DecodeError):
        return None


def running_process(home: Home) -> GatewayProcess | None:
    """The gateway that runs in this home."""
    found = read_process(home)
    return found if found is not None and is_running(found) else None


def is_running(process: GatewayProcess) -> bool:
    return bool(process.start_time) and process_start(process.pid) == process.start_time


def end_process(process: GatewayProcess, seconds: float = REPLACE_SECONDS) -> None:
    """Ask a gateway to stop, and kill it when it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not send_signal(process, number):
            return
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if not is_running(process):
                return
            time.sleep(LOOK_SECONDS)


def send_signal(process: GatewayProcess, number: signal.Signals) -> bool:
    """Whether the signal was sent: never to another process that has the same id by now."""
    if not is_running(process):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)
        return True
    return False


def process_start(pid: int) -> str:
    """When a process started, in a form that is unique across restarts of the machine; "" when it
    does not run."""
    if sys.platform == "linux":
        try:
            # The name in parentheses may contain spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else f"{fields[19]}@{boot}"
    found = subprocess.run(
        ("ps", "-o", "stat=,lstart=", "-p", str(pid)), capture_output=True, text=True, check=False
    ).stdout.strip()
    return "" if found.startswith("Z") else found.partition(" ")[2].strip()


def parent_ids(pid: int) -> tuple[int, ...]:
    """The ids of a process and all its ancestors."""
    found: list[int] = []
    while pid > 1 and pid not in found:
        found.append(pid)
        try:
            if sys.platform == "linux":
                status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                pid = int(status[1])
            else:
                shown = subprocess.run(
                    ("ps", "-o", "ppid=", "-p", str(pid)), capture_output=True, check=False
                ).stdout
                pid = int(shown)
        except (OSError, ValueError):
            break
    return tuple(found)
