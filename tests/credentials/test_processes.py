"""Many sessions in several processes share ten keys with each other and with another program."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes.config.home import Home
from hermes.credentials.auth_file import AuthEntry, AuthFile
from hermes.net.http import HttpClient, Timeouts
from tests.credentials.authority import CLIENT, Authority
from tests.credentials.bench import write_login
from tests.credentials.quotas import WINDOW_SECONDS, Kind, Provider
from tests.loopback import serving

ROOT = Path(__file__).parents[2]
KEYS: dict[str, Kind] = {
    "sk-revoked-1": "revoked",
    "sk-unpaid-1": "unpaid",
    "sk-always-limited": "always_limited",
    "sk-quota-1": "quota",
    "sk-quota-2": "quota",
    "sk-quota-3": "quota",
    "sk-quota-4": "quota",
    "sk-endless-1": "endless",
}
REVOKED, SHARED = LOGINS = ("login1", "login2")
LIFETIME_SECONDS = 2.0


class Process:
    """A worker and what came of its requests."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.outcomes: list[str] = []

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.outcomes.append(json.loads(line)["outcome"])
        await self._process.wait()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def worker(settings: dict[str, Any]) -> AsyncIterator[Process]:
    process = Process(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.credentials.worker",
            json.dumps(settings),
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
    )
    try:
        yield process
    finally:
        await process.end()


@contextmanager
def locked(home: Home) -> Iterator[bool]:
    """The lock of auth.json, as any program can take it."""
    descriptor = os.open(home.root / "auth.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


async def refresh_as_a_stranger(home: Home, url: str, http: HttpClient) -> bool:
    """Another program renews a login of the same file, under the same lock, in its own way."""
    path = home.root / "auth.json"
    with locked(home) as inside:
        if not inside:
            return False
        raw = json.loads(path.read_text())
        entry = next(e for e in raw["credential_pool"]["p"] if e["id"] == SHARED)
        body = f"grant_type=refresh_token&client_id={CLIENT}&refresh_token={entry['refresh_token']}"
        headers = {"content-type": "application/x-www-form-urlencoded"}
        exchange = http.post(
            f"{url}/token", body=body.encode(), headers=headers, timeouts=Timeouts()
        )
        async with exchange as answer:
            tokens = json.loads(await answer.read())
        assert answer.status == 200, tokens
        entry |= {
            "access_token": tokens["access_token"],
            "refresh_token": tokens["refresh_token"],
            "expires_at": time.time() + LIFETIME_SECONDS,
        }
        path.write_text(json.dumps(raw))
        return True


async def log_in(home: Home, authority: Authority) -> None:
    for number, name in enumerate(LOGINS):
        tokens = authority.issue(name)
        entry = AuthEntry(
            id=name,
            label=name,
            auth_type="oauth",
            # After the keys with a quota and before the one that has none.
            priority=1 + number,
            source="device_code",
            access_token=tokens["access_token"],
            refresh_token=tokens["refresh_token"],
            expires_at=time.time() + LIFETIME_SECONDS,
        )
        await AuthFile(home).edit(lambda held, entry=entry: held.put("p", entry))  # type: ignore[misc]
    await AuthFile(home).edit(
        lambda held: held.put("p", AuthEntry(id="last", source="env:KEY_7", priority=9))
    )


async def test_every_request_succeeds_while_any_key_is_healthy(home: Home) -> None:
    await _together(home, processes=2, sessions=10, requests=12, pause=0.2, kills=0)


@pytest.mark.slow
async def test_long_work_with_killed_processes(home: Home) -> None:
    await _together(home, processes=4, sessions=20, requests=50, pause=0.4, kills=2)


async def _together(
    home: Home, *, processes: int, sessions: int, requests: int, pause: float, kills: int
) -> None:
    authority = Authority(time.time, lifetime=LIFETIME_SECONDS)
    provider = Provider(KEYS, authority, quota=5)
    http = HttpClient()
    strangers = 0
    async with serving(provider.answer) as url, asyncio.TaskGroup() as group:
        authority.url = url
        write_login(home, "p", url, "device", skew_seconds=0.5)
        await log_in(home, authority)
        settings = {
            "home": str(home.root),
            "url": url,
            "keys": list(KEYS),
            "sessions": sessions,
            "requests": requests,
            "pause": pause,
        }

        async def run(name: str, *, killed: bool = False) -> Process:
            async with worker({**settings, "name": name}) as process:
                listening = asyncio.create_task(process.listen())
                if killed:
                    await _kill_between_renewals(home, process, seconds=requests * pause / 3)
                await listening
            return process

        async def interfere() -> None:
            nonlocal strangers
            while True:
                await asyncio.sleep(0.7)
                strangers += await refresh_as_a_stranger(home, url, http)

        async def revoke() -> None:
            await asyncio.sleep(requests * pause / 2)
            authority.revoke(REVOKED)

        stranger = group.create_task(interfere())
        group.create_task(revoke())
        whole = [group.create_task(run(f"w{number}")) for number in range(processes)]
        cut = [group.create_task(run(f"k{number}", killed=True)) for number in range(kills)]
        await asyncio.wait((*whole, *cut))
        stranger.cancel()
    await http.aclose()
    outcomes = Counter(outcome for task in whole for outcome in task.result().outcomes)
    assert outcomes == {"yes": processes * sessions * requests}
    assert {outcome for task in cut for outcome in task.result().outcomes} <= {"yes"}
    assert strangers > 0
    entry = (await AuthFile(home).read()).entry("p", REVOKED)
    assert entry is not None
    assert entry.is_dead
    _check_logins(authority)
    _check_probes(provider, (processes + kills) * sessions)


async def _kill_between_renewals(home: Home, process: Process, *, seconds: float) -> None:
    """A token that was used up and whose successor was never stored is nobody's fault."""
    await asyncio.sleep(seconds)
    killed = False
    while not killed:
        with locked(home) as inside:
            if inside:
                process.kill()
                killed = True
        await asyncio.sleep(0.01)
    with suppress(ProcessLookupError):
        process.kill()


def _check_logins(authority: Authority) -> None:
    assert len(authority.refreshes) > 2
    assert set(authority.refreshes.values()) == {1}


def _check_probes(provider: Provider, sessions: int) -> None:
    for key, kind in KEYS.items():
        refused = provider.refused.get(key, [])
        if kind in ("revoked", "unpaid"):
            # Whoever asked before it was known; nobody after that.
            assert 1 <= len(refused) <= sessions, key
        if kind == "quota":
            windows = Counter((int(at / WINDOW_SECONDS), session) for at, session in refused)
            assert max(windows.values(), default=0) <= 2, key
    tries = provider.tried_again["sk-always-limited"]
    assert tries
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert min(gaps, default=WINDOW_SECONDS) >= WINDOW_SECONDS - 0.01
