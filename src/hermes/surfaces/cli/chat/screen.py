"""Where a chat is shown and typed, and what it asks of the one who talks."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from hermes.surfaces.cli.chat.paint import Paint

if TYPE_CHECKING:
    from hermes.commands.registry import Suggestion


class Face(Protocol):
    """What a screen shows around its input, and whom it tells what the person does."""

    def rows(self, width: int, height: int) -> list[str]:
        """The live part above the input, each row within the width."""
        ...

    def symbol(self) -> str: ...

    def asking(self) -> bool:
        """A question waits for an answer."""
        ...

    def hiding(self) -> bool:
        """What is typed now is not to be seen."""
        ...

    def waiting(self) -> bool:
        """A message that was sent can still be taken back."""
        ...

    def take_back(self, *, edit: bool) -> None: ...

    def submit(self, text: str) -> bool:
        """Enter was pressed; True when the text is worth keeping in the history."""
        ...

    def key(self, name: str) -> None:
        """A key for the open question: a digit, an arrow or "escape"."""
        ...

    def interrupt(self) -> None: ...

    def leave(self) -> None: ...

    def complete(self, line: str) -> Awaitable[Sequence[Suggestion]]: ...


class Screen(Protocol):
    """One terminal. Finished output is printed once and never drawn again."""

    @property
    def paint(self) -> Paint: ...

    @property
    def animated(self) -> bool:
        """Whether the live part may move by itself."""
        ...

    @property
    def width(self) -> int: ...

    draft: str
    """What is typed and not sent."""

    def show(self, text: str) -> None:
        """Print above the input; colours are part of the text."""
        ...

    def refresh(self) -> None:
        """The live part has changed."""
        ...

    def ready(self) -> None:
        """It is the person's turn to type."""
        ...

    def echoed(self, text: str) -> bool:
        """Whether this text stands on the screen already, because it was typed there."""
        ...

    def attach(self, path: str) -> None:
        """A picture goes with what is sent next."""
        ...

    def pictures(self, text: str) -> tuple[str, ...]:
        """The files of the pictures that go with a text that was sent."""
        ...

    def copy(self, text: str) -> bool:
        """Into the clipboard of the person; False where the terminal has none."""
        ...

    def compose(self, draft: str) -> bool:
        """In the person's own editor; False where that cannot be."""
        ...

    def clear(self) -> None: ...

    def ring(self) -> None: ...

    def asked(self, choices: Sequence[str], *, secret: bool = False) -> None:
        """A question has opened: the draft is put aside until `answered`. The answer to a `secret`
        one is not shown while it is typed."""
        ...

    def answered(self) -> None: ...

    async def run(self, face: Face) -> None:
        """Until `close`, or until the terminal is gone."""
        ...

    def close(self) -> None: ...
