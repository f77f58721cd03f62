"""Reads tool calls from the start of their markup; idles while an argument streams."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes.providers.textcalls.offer import OfferedTools
from hermes.providers.textcalls.prose import TextContext
from hermes.providers.textcalls.style import CallStyle
from hermes.providers.textcalls.tape import NoCall, RawCall, Steps, TextTape

_NAME = re.compile(r'"(?:tool_)?name"\s*:\s*"([A-Za-z0-9_.\-]+)"')
_PEEKED = 300


class CallPosition(NamedTuple):
    """What the text before a call implies. `vetoed`: it is an example or a quotation. `boundary`:
    it is not in the middle of a sentence."""

    vetoed: bool
    boundary: bool
    announced: bool
    first: bool

    @staticmethod
    def after(prose: TextContext) -> CallPosition:
        return CallPosition(
            vetoed=prose.has_text and prose.introduces_example,
            boundary=prose.at_boundary,
            announced=prose.announces_call,
            first=not prose.has_text,
        )

    def allows(self, style: CallStyle, trusted: frozenset[str]) -> bool:
        """Marked styles are parsed even when vetoed, to find their end."""
        if style.marked or self.first:
            return True
        return not self.vetoed and (style.name in trusted or self.announced)


class CallAttempt:
    def __init__(
        self,
        text: str,
        opener: str,
        styles: tuple[CallStyle, ...],
        place: CallPosition,
        offer: OfferedTools,
    ) -> None:
        self.opener = opener
        self.place = place
        self.named = False
        self._tape = TextTape(offer)
        self._tape.text = text
        self._steps = _try_styles(self._tape, styles)
        self._new: list[str] = []
        self._wake = ""

    def add(self, text: str) -> bool:
        """Adds text; returns whether `advance` can make progress."""
        self._new.append(text)
        return not self._wake or any(sign in text for sign in self._wake)

    def end(self) -> None:
        """Marks the end of the text."""
        self._tape.ended = True

    def advance(self) -> tuple[CallStyle, tuple[RawCall, ...]] | None:
        """The calls and their style, or None while more text is needed. Raises NoCall."""
        self._tape.text = self.text
        self._new.clear()
        try:
            self._wake = next(self._steps)
        except StopIteration as done:
            found: tuple[CallStyle, tuple[RawCall, ...]] = done.value
            return found
        return None

    @property
    def text(self) -> str:
        """All text so far."""
        return self._tape.text + "".join(self._new) if self._new else self._tape.text

    @property
    def read(self) -> int:
        """The end of the calls in the text."""
        return self._tape.at

    @property
    def begun(self) -> bool:
        """More than a mention of the markup was seen."""
        return self._tape.begun

    @property
    def tool_name(self) -> str:
        """The offered tool that is being called, "" while unclear."""
        if self.place.vetoed or not self.place.boundary:
            return ""
        name = self._tape.named
        if not name:
            found = _NAME.search(self._tape.text[:_PEEKED] + "".join(self._new)[:_PEEKED])
            name = self._tape.offer.strip_namespace(found[1]) if found else ""
        return name if self._tape.offer.knows(name) else ""


def _try_styles(
    tape: TextTape, styles: tuple[CallStyle, ...]
) -> Steps[tuple[CallStyle, tuple[RawCall, ...]]]:
    """Parses with the first style that fits."""
    for style in styles:
        tape.at = 0
        try:
            return style, (yield from style.read(tape))
        except NoCall:
            continue
    raise NoCall
