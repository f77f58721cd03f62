"""A studio without an application: for tests of providers, and for separate processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.world import World
from hermes.images.cache import ImageCache
from hermes.images.faults import ImageFault
from hermes.images.pictures import MAX_BYTES
from hermes.images.studio import Studio
from hermes.policy.rules import Blocked
from hermes.policy.urls.making import make_urls
from hermes.web.fetcher import WebFetcher


def plain_studio(
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    settings: JsonObject | None = None,
    world: World | None = None,
    private: bool = False,
) -> Studio:
    """Images are stored in `folder`, which is also the only one that sources are read from. The web
    policy applies; `private` permits this machine, for test servers."""
    values, world = dict(env or {}), world or World()
    return Studio(
        cache=ImageCache(folder, world),
        world=world,
        fetcher=WebFetcher(make_urls(None, private, Blocked(), time.monotonic)),
        read=_reader(folder),
        secret=lambda name: values.get(name, ""),
        settings=settings,
    )


def _reader(folder: Path) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        place = Path(folder, path).resolve()
        if not place.is_relative_to(folder.resolve()):
            raise ImageFault(f"{path} is not in {folder}.", kind="invalid_argument")
        try:
            with place.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ImageFault(f"{path} cannot be read.", kind="invalid_argument") from error

    return read
