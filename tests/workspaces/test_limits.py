"""What commands may use up, held for real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.config.execution_settings import TerminalSettings
from tests.workspaces.containers import remove_containers, usable
from tests.workspaces.places import AnyPlace, container_place


@pytest.fixture
def settings() -> TerminalSettings:
    found = usable()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
async def boxed(tmp_path: Path, settings: TerminalSettings) -> AsyncIterator[AnyPlace]:
    place = container_place(tmp_path, replace(settings, container_persistent=False))
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
    tmp_path: Path, settings: TerminalSettings
) -> None:
    kept = container_place(tmp_path, settings)
    await kept.run("echo kept > /root/file")
    await kept.reopen()
    assert await kept.output("cat /root/file") == "kept\n"
    await kept.close()
    thrown = container_place(tmp_path, replace(settings, container_persistent=False))
    await thrown.run("echo gone > /root/file")
    await thrown.reopen()
    assert "No such file" in await thrown.output("cat /root/file")
    await thrown.close()
    remove_containers()
