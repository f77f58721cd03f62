"""Protocols between a chat and its terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from hermes.surfaces.cli.chat.paint import Paint

if TYPE_CHECKING:
    from hermes.commands.registry import Suggestion


class ScreenDelegate(Protocol):
    """What a screen shows around its input, and where it sends the user's actions."""

    def rows(self, width: int, height: int) -> list[str]:
        """The live rows above the input, each within the width."""
        ...

    def symbol(self) -> str: ...

    def asking(self) -> bool:
        """Whether a question is open."""
        ...

    def hiding(self) -> bool:
        """Whether the input is hidden."""
        ...

    def waiting(self) -> bool:
        """Whether a sent message can still be withdrawn."""
        ...

    def take_back(self, *, edit: bool) -> None: ...

    def submit(self, text: str) -> bool:
        """Handle Enter; whether the text belongs in the history."""
        ...

    def key(self, name: str) -> None:
        """A key for the open question: a digit, an arrow or "escape"."""
        ...

    def interrupt(self) -> None: ...

    def leave(self) -> None: ...

    def complete(self, line: str) -> Awaitable[Sequence[Suggestion]]: ...


class ChatScreen(Protocol):
    """One terminal. Finished output is printed once and never drawn again."""

    @property
    def paint(self) -> Paint: ...

    @property
    def animated(self) -> bool:
        """Whether the live rows may be animated."""
        ...

    @property
    def width(self) -> int: ...

    draft: str
    """The unsent input."""

    def show(self, text: str) -> None:
        """Print above the input; colours are part of the text."""
        ...

    def refresh(self) -> None:
        """Redraw the live rows."""
        ...

    def ready(self) -> None:
        """The user can type the next message."""
        ...

    def was_echoed(self, text: str) -> bool:
        """Whether the terminal has already echoed this text."""
        ...

    def attach(self, path: str) -> None:
        """Attach an image to the next message."""
        ...

    def pictures(self, text: str) -> tuple[str, ...]:
        """The images attached to a sent text."""
        ...

    def copy(self, text: str) -> bool:
        """Copy to the clipboard; False if the terminal has none."""
        ...

    def compose(self, draft: str) -> bool:
        """Open the draft in an editor; False if that is not possible."""
        ...

    def clear(self) -> None: ...

    def ring(self) -> None: ...

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        """A question has opened: the draft is set aside until `question_closed`. Input for a
        `secret` one is hidden."""
        ...

    def question_closed(self) -> None: ...

    async def run(self, face: ScreenDelegate) -> None:
        """Run until `close`, or until the terminal is gone."""
        ...

    def close(self) -> None: ...
