"""One gateway per home, and a process is never mistaken for another one with its id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.surfaces.gateway.locks import (
    GatewayLock,
    GatewayProcess,
    is_running,
    parent_ids,
    pid_path,
    process_start,
    read_process,
    running_process,
    send_signal,
)

HOLD = """
import signal, sys
from pathlib import Path
from hermes.config.home import Home
from hermes.surfaces.gateway.locks import GatewayLock

if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
GatewayLock(Home(Path(sys.argv[1]))).acquire(("test",))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def other(home: Home) -> Iterator[subprocess.Popen[str]]:
    with _holder(home) as process:
        yield process
        process.kill()


def _holder(home: Home, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.root), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_gateway_refuses_with_the_id_of_the_first(
    home: Home, other: subprocess.Popen[str]
) -> None:
    with pytest.raises(ConfigError, match=f"process {other.pid}"):
        GatewayLock(home).acquire(())
    found = running_process(home)
    assert found is not None
    assert (found.pid, found.argv) == (other.pid, ("test",))


def test_the_lock_of_a_killed_gateway_is_free(home: Home, other: subprocess.Popen[str]) -> None:
    other.kill()
    other.wait()
    assert running_process(home) is None
    assert read_process(home) is not None
    lock = GatewayLock(home)
    lock.acquire(("next",))
    found = running_process(home)
    assert found is not None
    assert found.pid == os.getpid()
    lock.release()
    assert read_process(home) is None


def test_replacing_ends_the_first_gateway(home: Home, other: subprocess.Popen[str]) -> None:
    lock = GatewayLock(home)
    lock.acquire((), replaces=True)
    assert other.wait(timeout=10) == -signal.SIGTERM
    lock.release()


def test_a_gateway_that_ignores_the_request_is_killed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _holder(home, "deaf") as other:
        monkeypatch.setattr("hermes.surfaces.gateway.locks.end_process.__defaults__", (0.3,))
        lock = GatewayLock(home)
        lock.acquire((), replaces=True)
        assert other.wait(timeout=10) == -signal.SIGKILL
        lock.release()


def test_an_id_that_another_process_has_now_is_not_signalled(home: Home) -> None:
    own = GatewayProcess(pid=os.getpid(), start_time=process_start(os.getpid()))
    assert is_running(own)
    reused = replace(own, start_time="1@an-earlier-boot")
    assert not is_running(reused)
    assert not send_signal(reused, signal.SIGKILL)
    home.ensure_folder(home.root)
    pid_path(home).write_bytes(encode(reused))
    assert running_process(home) is None


def test_a_process_that_ended_has_no_start() -> None:
    done = subprocess.Popen([sys.executable, "-c", "pass"])
    done.wait()
    assert process_start(done.pid) == ""


def test_ancestors_are_found() -> None:
    code = (
        "import os; from hermes.surfaces.gateway.locks import parent_ids;"
        "print(*parent_ids(os.getpid()))"
    )
    script = f"{sys.executable} -c '{code}'"
    out = subprocess.run(
        ["sh", "-c", f"{script}; true"], capture_output=True, text=True, check=True
    )
    assert str(os.getpid()) in out.stdout.split()
    assert os.getpid() in parent_ids(os.getpid())
