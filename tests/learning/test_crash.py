"""A process that dies while it learns leaves nothing half done, and the next one does it once."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from tests.durability.stage import finished
from tests.learning.school import NAME, Pupil, School

# Before anything has come of it, and in the middle of the change.
POINTS = ("learning.claimed", "skill.written")
MORE = (
    "skill.intended",
    "learning.rehearsed",
    "skill.kept",
    "learning.proposed",
    "skill.settled",
    "skill.settled:2",
    "learning.done",
)


async def life(folder: Path, url: str, point: str = "", session: str = "") -> int:
    words = ("-m", "tests.learning.life", str(folder), url, point, session)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    ended = await finished(process)
    assert ended.err == ""
    return ended.code


@pytest.mark.parametrize(
    "point", [*POINTS, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE)]
)
async def test_whoever_dies_while_learning_has_learned_once(tmp_path: Path, point: str) -> None:
    pupil = Pupil()
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        assert await life(tmp_path, server.url, point) == -signal.SIGKILL
        async with school.app() as app:
            (session,) = [info.id for info in await app.archive.recent()]
            skills = school.skills(app)
            assert skills.store.scan().broken == ()
        assert await life(tmp_path, server.url, "", session) == 0
        async with school.app() as app:
            shelf = school.skills(app).store
            (version,) = shelf.history(NAME)
            active = shelf.active(NAME)
            assert active is not None and active.id == version.id
            assert shelf.proposals() == ()
    # Whoever has proposed something is not asked again.
    assert pupil.reviews == (2 if point == "skill.kept" else 1)
