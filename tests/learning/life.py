"""A process that works in a session and learns from it: folder, address of the model, point at
which it dies, session to go on with."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.core.world import World
from hermes.learning.rehearsals import ledger_of
from hermes.testing.kill import kill_points
from tests.durability.observing import eventually
from tests.learning.school import School, say


class Elsewhere:
    """A server that another process has."""

    def __init__(self, url: str) -> None:
        self.url = url


async def live(folder: Path, url: str, point: str, session_id: str) -> None:
    school = School(folder, Elsewhere(url))
    app = school.app(World(kill_point=kill_points(point)))
    session = await school.attended(app, session_id)
    if not session_id:
        await say(session, "Build a release.")
    looks = ledger_of(app.context.home)
    (turn,) = {record.turn_id for record in await app.journal.read(session.id)} - {""}

    def is_reviewed() -> bool:
        return any(review.done for review in looks.reviews().get((session.id, turn), []))

    await eventually(is_reviewed, 30)
    if point:
        # It is dead before this is over, wherever the point is.
        await asyncio.sleep(30)
    await app.close()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), *sys.argv[2:5]))
