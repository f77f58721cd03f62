"""What is special about a machine behind ssh, with a real server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ToolError
from hermes.workspaces.remote.ssh import SshMachine
from tests.workspaces.places import AnyPlace, ssh_place
from tests.workspaces.sshd import Sshd


@pytest.fixture
async def there(tmp_path: Path, sshd: Sshd) -> AsyncIterator[AnyPlace]:
    place = ssh_place(tmp_path, sshd)
    yield place
    await place.close()


async def test_a_lost_connection_is_told_and_made_again(there: AnyPlace, sshd: Sshd) -> None:
    await there.run("export A=1; mkdir sub; cd sub")
    running = asyncio.create_task(there.run("echo x >> ../count; sleep 600"))
    for _ in range(3_000):
        if await there.workspace.stat(f"{there.root}/count"):
            break
        await asyncio.sleep(0.02)
    sshd.cut()
    with pytest.raises(ToolError, match="connection was lost"):
        await running
    result = await there.run("echo $A; pwd; cat ../count")
    # Once: a command that may have begun is never run again.
    assert result.output == f"1\n{there.root}/sub\nx\n"


async def test_a_process_is_followed_again_after_a_lost_connection(
    there: AnyPlace, sshd: Sshd
) -> None:
    info = await there.spawn("echo before; until [ -e go ]; do sleep 0.05; done; echo after")
    processes = there.workspace.processes
    seen = ""
    while "before" not in seen:
        seen += (await processes.poll(info.id)).output
        await asyncio.sleep(0.02)
    sshd.cut()
    await asyncio.sleep(0.1)
    await there.workspace.write_bytes(f"{there.root}/go", b"")
    ended = await there.ended(info.id)
    assert (seen + ended.output, ended.exit_code) == ("before\nafter\n", 0)


async def test_more_commands_than_a_connection_takes_run_all_the_same(there: AnyPlace) -> None:
    # A server takes ten sessions over one connection unless told otherwise.
    script = "touch n{}; until [ $(ls n* | wc -l) = 14 ]; do sleep 0.1; done"
    results = await asyncio.gather(*(there.run(script.format(n)) for n in range(14)))
    assert [result.exit_code for result in results] == [0] * 14


async def test_an_unknown_host_key_is_refused(tmp_path: Path, sshd: Sshd) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n")
    with pytest.raises(ToolError, match=r"key of 127\.0\.0\.1 is unknown"):
        await opened(tmp_path, sshd.settings(config=str(config)))


async def test_a_wrong_key_and_a_closed_port_are_told(tmp_path: Path, sshd: Sshd) -> None:
    with pytest.raises(ToolError, match="refused the login"):
        await opened(tmp_path, sshd.settings(key=str(sshd.folder / "host")))
    with pytest.raises(ToolError, match="not reachable"):
        await opened(tmp_path, TerminalSettings(ssh_host="127.0.0.1", ssh_port=1))


async def test_an_alias_keeps_its_port_and_user(tmp_path: Path, sshd: Sshd) -> None:
    config = tmp_path / "config"
    own = f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {sshd.folder}/user\n"
    config.write_text(own + (sshd.folder / "ssh_config").read_text())
    await opened(tmp_path, TerminalSettings(ssh_host="box", ssh_config=str(config)))


async def test_a_host_is_not_an_option(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="dash"):
        SshMachine(TerminalSettings(ssh_host="-oProxyCommand=touch x"), tmp_path, {})


async def opened(folder: Path, settings: TerminalSettings) -> None:
    machine = SshMachine(settings, folder / "ssh", {"PATH": os.defpath})
    try:
        await machine.open()
    finally:
        await machine.close()


async def test_what_the_login_exports_is_hidden_when_it_is_secret(there: AnyPlace) -> None:
    assert await there.output("echo [$PRIVATE_API_KEY]; env | grep -c hidden") == "[]\n0\n"


async def test_noise_of_start_files_does_not_get_into_output_or_files(
    there: AnyPlace, sshd: Sshd
) -> None:
    rc = sshd.home / ".bashrc"
    rc.write_text("echo noise; echo noise >&2\n")
    try:
        path = f"{there.root}/file"
        await there.workspace.write_bytes(path, b"clean")
        assert await there.workspace.read_bytes(path) == b"clean"
        assert await there.output("cat file") == "clean"
    finally:
        rc.unlink()


async def test_nothing_of_ssh_is_left_when_it_is_closed(there: AnyPlace, tmp_path: Path) -> None:
    await there.run("true")
    await there.workspace.close()
    await asyncio.sleep(0.2)
    assert _processes_of(tmp_path) == []


def _processes_of(folder: Path) -> list[str]:
    return [p.name for p in Path("/proc").iterdir() if _is_ours(p, folder)]


def _is_ours(process: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False
