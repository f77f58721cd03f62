"""One process at a time holds a file lock, whatever happens to the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermes.codec.file_lock import FileLock, hold_lock

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from hermes.codec.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock `tmp_path/lock`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")],
        env={"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def is_locked(path: Path) -> bool:
    with hold_lock(path, timeout=0) as is_free:
        return not is_free


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "sub" / "lock"), FileLock(tmp_path / "sub" / "lock")
    with one.hold() as is_held:
        assert is_held and one.is_held
        with other.hold(timeout=0) as is_other:
            assert not is_other
        assert is_locked(one.path)
    with other.hold(timeout=0) as is_other:
        assert is_other
    assert one.path.stat().st_mode & 0o777 == 0o600
    one.close()
    other.close()


def test_a_timeout_ends_the_wait(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    lock = FileLock(tmp_path / "lock")
    began = time.monotonic()
    assert not lock.acquire(timeout=0.1)
    assert 0.1 <= time.monotonic() - began < 30
    end(holder)
    lock.close()


def test_the_lock_of_a_killed_process_is_free(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    lock = FileLock(tmp_path / "lock")
    assert not lock.acquire(timeout=0)
    holder.send_signal(signal.SIGKILL)
    assert lock.acquire(timeout=60)
    end(holder)
    lock.close()


def test_a_forked_child_neither_holds_nor_releases_the_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    child = os.fork()
    if not child:
        is_held = lock.is_held
        lock.close()
        os._exit(int(is_held or FileLock(lock.path).acquire(timeout=0)))
    assert os.waitpid(child, 0)[1] == 0
    assert lock.is_held and is_locked(lock.path)
    lock.close()


def test_a_child_that_lives_on_does_not_keep_the_lock_of_a_dead_parent(tmp_path: Path) -> None:
    script = """
import os, sys, time
from pathlib import Path
from hermes.codec.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
if os.fork() == 0:
    os.close(1)
    time.sleep(float(sys.argv[2]))
os._exit(0)
"""
    path = tmp_path / "lock"
    subprocess.run(
        [sys.executable, "-c", script, str(path), "5"],
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    lock = FileLock(path)
    assert lock.acquire(timeout=2)
    lock.close()


def test_a_file_that_was_removed_is_not_a_lock(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    one.acquire()
    one.remove()
    assert not one.path.exists()
    assert not is_locked(one.path)
    one.acquire()
    # The file that this one had open is gone, so it must not be content with it.
    other._fd = os.open(tmp_path / "old", os.O_RDWR | os.O_CREAT)
    assert not other.acquire(timeout=0)
    one.close()
    other.close()


def test_a_shared_lock_keeps_exclusive_ones_out(tmp_path: Path) -> None:
    readers = [FileLock(tmp_path / "lock") for _ in range(2)]
    writer = FileLock(tmp_path / "lock")
    assert all(lock.acquire(timeout=0, shared=True) for lock in readers)
    assert not writer.acquire(timeout=0)
    for lock in readers:
        lock.close()
    assert writer.acquire(timeout=0)
    writer.close()


def test_threads_take_turns(tmp_path: Path) -> None:
    path, count, inside = tmp_path / "lock", 0, 0

    def work() -> None:
        nonlocal count, inside
        lock = FileLock(path)
        for _ in range(50):
            with lock.hold():
                inside += 1
                assert inside == 1
                count += 1
                inside -= 1
        lock.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == 200
