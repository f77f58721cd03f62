"""Old pictures go; those that messages refer to stay."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.core.world import World
from hermes.images.storage import ImageCache
from hermes.testing.clock import VirtualClock
from tests.images.fakes import PNG

DAY = 86_400


def test_pictures_go_after_days_and_the_oldest_when_there_is_too_much(tmp_path: Path) -> None:
    clock = VirtualClock()
    cache = ImageCache(tmp_path, World(clock=clock))
    paths = [cache.keep(PNG, prefix=f"p{number}") for number in range(4)]
    asked = tmp_path / f"{'0' * 64}.png"
    asked.write_bytes(PNG)
    now = clock.now()
    for age, path in zip((9, 3, 2, 1), paths, strict=True):
        os.utime(path, (now - age * DAY, now - age * DAY))
    os.utime(asked, (now - 99 * DAY, now - 99 * DAY))
    (tmp_path / ".half_20200101_000000_00000000.png.part").write_bytes(b"x")
    os.utime(tmp_path / ".half_20200101_000000_00000000.png.part", (0, 0))
    assert cache.sweep(max_days=7, max_bytes=2 * len(PNG)) == 3
    assert sorted(tmp_path.iterdir()) == sorted([asked, paths[2], paths[3]])
    assert cache.sweep(max_days=7, max_bytes=2 * len(PNG)) == 0


def test_a_folder_that_is_not_there_is_clean(tmp_path: Path) -> None:
    assert ImageCache(tmp_path / "none", World()).sweep() == 0
