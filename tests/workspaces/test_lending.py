"""A secret that is lent to commands by name is with them wherever they run, and stays nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.workspaces.places import AnyPlace

SHOWN = "${WEATHER_TOKEN-none}"
# How many processes have it in their words; asked so that none of the askers has.
SEEN = f'grep -alF -f <(printf %s "{SHOWN}") /proc/[0-9]*/cmdline 2>/dev/null | wc -l'


def lend(place: AnyPlace) -> str:
    """A value that bash would like to read in its own way, and that no other test uses."""
    place.lent["WEATHER_TOKEN"] = value = f"pU9'x$HOME\"-`id`\\ {place.long}"
    return value


def files_with(value: str, folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if value.encode() in path.read_bytes()]


@pytest.mark.parametrize("pty", [False, True])
async def test_a_command_has_what_is_lent(anyplace: AnyPlace, pty: bool) -> None:
    value = lend(anyplace)
    assert (await anyplace.output(f'printf %s "{SHOWN}"', pty=pty)).strip() == value
    assert await anyplace.output(f"bash -c 'printf %s \"{SHOWN}\"'") == value
    anyplace.lent.clear()
    assert await anyplace.output(f'echo "{SHOWN}"') == "none\n"


async def test_a_background_process_has_what_was_lent_when_it_began(anyplace: AnyPlace) -> None:
    value = lend(anyplace)
    info = await anyplace.spawn(f'sleep 0.2; printf %s "{SHOWN}" | wc -c')
    anyplace.lent.clear()
    assert int((await anyplace.ended(info.id)).output) == len(value)
    later = await anyplace.spawn(f'echo "{SHOWN}"')
    assert (await anyplace.ended(later.id)).output == "none\n"


async def test_what_is_lent_wins_over_what_a_command_has_set(anyplace: AnyPlace) -> None:
    await anyplace.run("export WEATHER_TOKEN=other")
    value = lend(anyplace)
    assert await anyplace.output(f'printf %s "{SHOWN}"') == value
    assert await anyplace.output("env | grep -c __lent_; compgen -v | grep -c __lent_") == "0\n0\n"


async def test_nothing_of_it_is_written_down_or_seen_in_the_list_of_processes(
    anyplace: AnyPlace, tmp_path: Path
) -> None:
    value = lend(anyplace)
    await anyplace.run("sleep 0.1; f() { :; }; export B=2")
    info = await anyplace.spawn(f"{SEEN}; until [ -e go ]; do sleep 0.05; done")
    assert (await anyplace.output(SEEN)).strip() == "0"
    await anyplace.workspace.write_bytes(f"{anyplace.root}/go", b"")
    assert (await anyplace.ended(info.id)).output.strip() == "0"
    far = f"grep -rlF -e {anyplace.long} ~/.cache/hermes /tmp/.hermes-calls 2>/dev/null"
    assert await anyplace.output(far) == ""
    anyplace.lent.clear()
    await anyplace.reopen()
    assert await anyplace.output(f'echo "{SHOWN}" $B') == "none 2\n"
    assert files_with(value, tmp_path) == []
