"""A screen that only remembers what was shown."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.surfaces.cli.chat.screen import Paint


class RecordingScreen:
    animated = False

    def __init__(self, width: int = 61) -> None:
        self.paint = Paint(colours=False)
        self.width = width
        self.draft = ""
        self.text = ""
        self.closed = False

    def show(self, text: str) -> None:
        self.text += f"{text}\n"

    def refresh(self) -> None:
        pass

    def ready(self) -> None:
        pass

    def was_echoed(self, text: str) -> bool:
        return False

    def fold(self, text: str) -> str:
        return text

    def attach(self, path: str) -> None:
        self.draft += path

    def pictures(self, text: str) -> tuple[str, ...]:
        return ()

    def copy(self, text: str) -> bool:
        return False

    def compose(self, draft: str) -> bool:
        return False

    def clear(self) -> None:
        self.text = ""

    def ring(self) -> None:
        self.text += "\a"

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        pass

    def question_closed(self) -> None:
        pass

    async def run(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
