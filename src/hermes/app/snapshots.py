"""What a session is told of memory and of its user; where there is nothing, nothing is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.opening import Opening
from hermes.core.events import SessionOpened
from hermes.core.parts import Connect
from hermes.core.recorder import Recorder

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.memory.entries import Snapshot


class Remembered:
    """The text for the prompt, and a guard against what is forgotten before it is written down."""

    def __init__(self, app: App, taken: Snapshot | None) -> None:
        self._app = app
        self._taken = taken
        self.text = taken.text if taken else ""

    def guard(self, recorder: Recorder) -> None:
        if self._taken and self.text:
            self._app.memory.guard(recorder, self._taken)


async def remembered(app: App, opening: Opening) -> Remembered:
    is_new = not app.home.memories.exists()
    return Remembered(app, None if is_new else await app.memory.snapshot(opening))


def through(app: App, session_id: str, opened: SessionOpened, connect: Connect) -> Connect:
    """The way to models, past what models the user, where something is chosen for it."""
    if not app.settings.memory.provider:
        return connect
    return app.memory.modelling.around(session_id, opened, connect)
