from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time

import pytest

from hermes.workspaces.process_tree import (
    end_tree,
    identity,
    kill_now,
    list_members,
    scan_with_ps,
)


def test_a_living_process_has_an_identity_and_a_dead_one_none() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    first = identity(sleeper.pid)
    assert first
    assert identity(sleeper.pid) == first
    sleeper.kill()
    while identity(sleeper.pid):
        time.sleep(0.001)  # a zombie counts as dead
    sleeper.wait()
    assert identity(sleeper.pid) is None
    assert identity(os.getpid()) != first


def started(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["bash", "-c", script], start_new_session=True, stdout=subprocess.PIPE)


async def test_a_tree_is_found_and_ended_wherever_its_members_went() -> None:
    script = "setsid sleep 60 & sleep 60 & (sleep 60; :) & echo up; wait"
    leader = started(script)
    assert leader.stdout
    assert leader.stdout.readline() == b"up\n"
    for _ in range(6_000):
        if len(list_members(leader.pid)) == 5:
            break
        await asyncio.sleep(0.01)
    tree = list_members(leader.pid)
    assert len(tree) == 5
    await end_tree(leader.pid, grace_seconds=1)
    assert [identity(one.pid) for one in tree] == [None] * 5
    leader.wait()
    leader.stdout.close()


@pytest.mark.skipif(not shutil.which("ps"), reason="ps is not installed")
def test_the_table_of_ps_says_the_same() -> None:
    leader = subprocess.Popen(["bash", "-c", "sleep 60 & wait"], start_new_session=True)
    while len(list_members(leader.pid)) < 2:
        time.sleep(0.01)
    known = {one.pid: (one.parent, one.group) for one in list_members(leader.pid)}
    listed = {one.pid: (one.parent, one.group) for one in scan_with_ps()}
    assert {pid: listed.get(pid) for pid in known} == known
    kill_now(leader.pid)
    while identity(leader.pid):
        time.sleep(0.001)
    assert leader.pid not in {one.pid for one in scan_with_ps()}
    leader.wait()


def test_a_tree_is_never_everybody() -> None:
    for root in (0, 1, os.getpgrp()):
        with pytest.raises(ValueError, match="is not a process that was started here"):
            kill_now(root)
