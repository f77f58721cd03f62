"""The life of sandboxes in clouds, against stand-ins of their interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ToolError
from hermes.workspaces.remote.daytona import DaytonaMachine
from hermes.workspaces.remote.modal import ModalMachine
from tests.workspaces.fake_daytona import KEY, FakeDaytona
from tests.workspaces.fake_modal import FakeModal
from tests.workspaces.places import daytona_place, modal_place


@pytest.fixture
def daytona(tmp_path: Path) -> Iterator[FakeDaytona]:
    fake = FakeDaytona(tmp_path / "daytona")
    yield fake
    fake.stop()


@pytest.fixture
def modal(tmp_path: Path) -> Iterator[FakeModal]:
    fake = FakeModal(tmp_path / "modal")
    yield fake
    fake.stop()


async def test_a_daytona_sandbox_is_made_stopped_and_started_again(
    tmp_path: Path, daytona: FakeDaytona
) -> None:
    place = daytona_place(tmp_path, daytona)
    await place.run("echo kept > file; export A=1")
    [name] = daytona.sandboxes
    await place.reopen()
    assert daytona.sandboxes[name]["state"] == "stopped"
    assert await place.output("cat file; echo $A") == "kept\n1\n"
    await place.close()
    asked = [line.replace(name, "NAME") for line in daytona.requests]
    steps = [line for index, line in enumerate(asked) if line not in asked[:index]]
    assert steps == [
        "GET /api/sandbox/NAME",
        "POST /api/sandbox",
        "POST /api/sandbox/NAME/stop",
        "POST /api/sandbox/NAME/start",
    ]


async def test_an_idle_sandbox_sleeps_and_wakes_up(tmp_path: Path, daytona: FakeDaytona) -> None:
    place = daytona_place(tmp_path, daytona, idle_seconds=0.3)
    await place.run("export A=1")
    [sandbox] = daytona.sandboxes.values()
    for _ in range(1_200):
        if sandbox["state"] == "stopped":
            break
        await asyncio.sleep(0.05)
    assert sandbox["state"] == "stopped"
    assert await place.output("echo $A") == "1\n"
    await place.close()


async def test_a_throw_away_sandbox_is_deleted(tmp_path: Path, daytona: FakeDaytona) -> None:
    place = daytona_place(tmp_path, daytona, persistent=False)
    await place.run("true")
    await place.workspace.close()
    assert daytona.sandboxes == {}


async def test_a_command_is_not_repeated_when_the_service_fails(
    tmp_path: Path, daytona: FakeDaytona
) -> None:
    place = daytona_place(tmp_path, daytona)
    await place.run("true")
    running = asyncio.create_task(place.run("echo x >> count; sleep 3"))
    for _ in range(1_200):
        if await place.workspace.stat(f"{place.root}/count"):
            break
        await asyncio.sleep(0.05)
    daytona.refuse_execute = 1
    with pytest.raises(ToolError, match="connection was lost"):
        await running
    assert await place.output("cat count") == "x\n"
    await place.close()


async def test_a_wrong_key_and_no_key_are_told(daytona: FakeDaytona) -> None:
    settings, url = TerminalSettings(backend="daytona"), f"{daytona.url}/api"
    with pytest.raises(ToolError, match="rejected the key"):
        await DaytonaMachine(settings, "x", api_key="wrong", url=url).open()
    with pytest.raises(ToolError, match="DAYTONA_API_KEY"):
        DaytonaMachine(settings, "x", api_key="")
    with pytest.raises(ToolError, match="not reachable"):
        await DaytonaMachine(settings, "x", api_key=KEY, url="http://127.0.0.1:1/api").open()


async def test_limits_are_asked_of_a_built_sandbox(tmp_path: Path, daytona: FakeDaytona) -> None:
    settings = TerminalSettings(
        backend="daytona", daytona_image="debian:12", docker_network=False, container_disk=10_240
    )
    machine = DaytonaMachine(settings, "built", api_key=KEY, url=f"{daytona.url}/api")
    await machine.open()
    [made] = daytona.sandboxes.values()
    assert (made["cpu"], made["memory"], made["disk"]) == (1, 5, 10)
    assert made["buildInfo"] == {"dockerfileContent": "FROM debian:12\n"}
    assert (made["networkBlockAll"], made["autoStopInterval"]) == (True, 5)
    await machine.close()


async def test_a_modal_sandbox_leaves_a_snapshot_and_comes_back_from_it(
    tmp_path: Path, modal: FakeModal
) -> None:
    place = modal_place(tmp_path, modal)
    await place.run("echo kept > ~/file; export A=1")
    await place.reopen()
    assert [one.running for one in modal.sandboxes.values()] == [False]
    assert await place.output("cat ~/file; echo $A") == "kept\n1\n"
    assert [made["image"].object_id for made in modal.made][1:] == ["im-0"]
    await place.close()


async def test_a_modal_sandbox_with_a_running_process_is_left_alone(
    tmp_path: Path, modal: FakeModal
) -> None:
    place = modal_place(tmp_path, modal)
    info = await place.spawn("read x")
    await place.reopen()
    assert [one.running for one in modal.sandboxes.values()] == [True]
    assert [one.id for one in await place.workspace.processes.list()] == [info.id]
    assert await place.output("true") == ""
    assert len(modal.made) == 1
    await place.close()


async def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="extra `modal`"):
        await ModalMachine(TerminalSettings(backend="modal"), tmp_path).open()
