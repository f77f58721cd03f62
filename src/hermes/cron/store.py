"""The job file of a home. One process at a time changes it; schedulers are woken by changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.file_lock import FileLock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.core.errors import HermesError
from hermes.core.world import World
from hermes.cron.record import find_job
from hermes.cron.schedule import format_time
from hermes.cron.wakeup import wake_schedulers

VERSION = 1
LOCK_SECONDS = 30.0
# A running scheduler writes its heartbeat at least this often.
HEARTBEAT_SECONDS = 180
NO_SCHEDULER = (
    "No scheduler is running in this home: jobs are stored but not started. Start `hermes cron "
    "run` or the gateway."
)


class JobStore:
    """Keeps unknown fields of the file and of each job. Every method rereads the file, because
    other processes change it."""

    def __init__(self, home: Home, world: World) -> None:
        self.folder = home.root / "cron"
        self.scripts = home.root / "scripts"
        self._file = self.folder / "jobs.json"
        self._backup = self.folder / "jobs.json.bak"
        self._world = world

    @property
    def wake_folder(self) -> Path:
        return self.folder / "wake"

    def now(self) -> float:
        return self._world.clock.now()

    def all(self) -> list[JsonObject]:
        return self._jobs(self._read())

    def get(self, job_id: str) -> JsonObject:
        """Raise NotFound."""
        return find_job(self.all(), job_id)

    def problems(self) -> list[str]:
        """Damaged job files that were set aside."""
        found = sorted(self.folder.glob("jobs.json.corrupt-*")) if self.folder.is_dir() else []
        return [
            f"The job file was damaged and its backup was loaded; {path} is the damaged file."
            for path in found
        ]

    @contextmanager
    def edit(self, *, wake: bool = True) -> Iterator[list[JsonObject]]:
        """Lock the file, yield its jobs and write them back if they have changed."""
        with self._locked():
            stored = self._read(is_locked=True)
            jobs = self._jobs(stored)
            before = encode(jobs)
            yield jobs
            if encode(jobs) != before:
                self._write({**stored, "jobs": jobs})
        if wake:
            wake_schedulers(self.wake_folder)

    def update(self, job_id: str, changes: JsonObject) -> JsonObject:
        with self.edit() as jobs:
            job = find_job(jobs, job_id)
            job.update(changes)
        return job

    def beat(self, *, succeeded: bool) -> None:
        """Record that a scheduler lives, and that its last check succeeded."""
        now = f"{self._world.clock.now():.0f}\n".encode()
        names = ("ticker_heartbeat", "ticker_last_success")
        for name in names if succeeded else names[:1]:
            replace_file(self.folder / name, now, mode=PRIVATE, durable=False)

    def heartbeat_age(self) -> float | None:
        """Seconds since a scheduler was seen; None if there was none."""
        try:
            beat = float((self.folder / "ticker_heartbeat").read_text().strip())
        except (OSError, ValueError):
            return None
        return max(0.0, self._world.clock.now() - beat)

    def remove_heartbeat(self) -> None:
        """The last scheduler of this process stops in order."""
        (self.folder / "ticker_heartbeat").unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(self.folder / ".jobs.lock")
        try:
            if not lock.acquire(LOCK_SECONDS):
                seconds = f"{LOCK_SECONDS:.0f} seconds"
                raise HermesError(f"Another process locks the jobs for {seconds}; try again.")
            yield
        except OSError as error:
            raise HermesError(f"{self._file} cannot be written: {error.strerror}.") from error
        finally:
            lock.close()

    def _write(self, stored: JsonObject) -> None:
        stored |= {"version": VERSION, "updated_at": format_time(self._world.clock.now())}
        if self._file.exists():
            replace_file(self._backup, self._file.read_bytes(), mode=PRIVATE, durable=False)
        replace_file(self._file, encode(stored), mode=PRIVATE)

    def _read(self, *, is_locked: bool = False) -> JsonObject:
        """Read the file. A damaged one is set aside, and its backup takes its place."""
        try:
            return _decode(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except DecodeError:
            if not is_locked:
                with self._locked():
                    return self._read(is_locked=True)
        except OSError as error:
            raise HermesError(f"{self._file} cannot be read: {error.strerror}.") from error
        self._file.replace(self._file.with_name(f"jobs.json.corrupt-{time.time_ns() // 10**9}"))
        try:
            data = self._backup.read_bytes()
            stored = _decode(data)
        except (OSError, DecodeError):
            return {}
        replace_file(self._file, data, mode=PRIVATE)
        return stored

    def _jobs(self, stored: JsonObject) -> list[JsonObject]:
        jobs: list[JsonObject] = stored.get("jobs", [])
        return jobs


def _decode(data: bytes) -> JsonObject:
    stored: dict[str, Any] = decode(dict[str, Any], data)
    jobs = stored.get("jobs", [])
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise DecodeError("`jobs` is not a list of objects")
    return stored
