"""What a new session is told of memory; where nothing was ever remembered, nothing is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.opening import Opening
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
