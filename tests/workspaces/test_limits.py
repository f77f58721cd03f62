"""What commands may use up, held for real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.workspaces.remote.containers import ContainerSettings
from hermes.workspaces.runner import ResourceLimits
from hermes.workspaces.shell import ShellSettings
from tests.workspaces.containers import remove_containers, usable
from tests.workspaces.places import AnyPlace, container_place, local_place


async def test_shells_hold_commands_and_processes_to_their_limits(tmp_path: Path) -> None:
    place = local_place(tmp_path)
    place.shell = ShellSettings(limits=ResourceLimits(file_mb=1, cpu_seconds=60, memory_mb=2048))
    await place.reopen()
    result = await place.run("ulimit -f; ulimit -t; ulimit -v; head -c 3000000 /dev/zero > big")
    assert result.output.split()[:3] == ["1024", "60", str(2048 * 1024)]
    assert result.exit_code != 0
    assert (Path(place.root) / "big").stat().st_size == 1024 * 1024
    info = await place.spawn("ulimit -t")
    assert (await place.ended(info.id)).output == "60\n"
    await place.close()


@pytest.fixture
def settings() -> ContainerSettings:
    found = usable()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
async def boxed(tmp_path: Path, settings: ContainerSettings) -> AsyncIterator[AnyPlace]:
    place = container_place(tmp_path, replace(settings, persistent=False))
    yield place
    await place.close()
    remove_containers()


@pytest.mark.slow
async def test_a_container_has_few_rights_and_fixed_limits(boxed: AnyPlace) -> None:
    status = await boxed.output("grep -E 'NoNewPrivs|CapBnd' /proc/self/status")
    # CHOWN, DAC_OVERRIDE and FOWNER are the bits 0, 1 and 3.
    assert status.split() == ["CapBnd:", "000000000000000b", "NoNewPrivs:", "1"]
    shown = await boxed.output("ls /sys/class/net; df -m --output=size /tmp | tail -1")
    assert shown.split() == ["lo", "512"]
    storm = await boxed.output("for n in $(seq 400); do sleep 3 & done; true")
    assert "Resource temporarily unavailable" in storm


@pytest.mark.slow
async def test_a_throw_away_container_is_gone_and_a_kept_one_is_not(
    tmp_path: Path, settings: ContainerSettings
) -> None:
    kept = container_place(tmp_path, settings)
    await kept.run("echo kept > /root/file")
    await kept.reopen()
    assert await kept.output("cat /root/file") == "kept\n"
    await kept.close()
    thrown = container_place(tmp_path, replace(settings, persistent=False))
    await thrown.run("echo gone > /root/file")
    await thrown.reopen()
    assert "No such file" in await thrown.output("cat /root/file")
    await thrown.close()
    remove_containers()
