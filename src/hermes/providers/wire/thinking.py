"""Takes inline reasoning out of visible text while it streams; no part of a tag is shown."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

TAGS = ("think", "thinking", "reasoning", "reasoning_scratchpad")

_FENCE = "```"
_STRAY = "</think>"
_TOKENS = (*(f"<{tag}>" for tag in TAGS), _STRAY, _FENCE)
_NEXT = re.compile("|".join(re.escape(token) for token in _TOKENS), re.IGNORECASE)
_BEGINNINGS = frozenset(token[:size] for token in _TOKENS for size in range(1, len(token)))
# A tag right after one of these is talked about, not used.
_QUOTES = "`'\"“‘"

Kind = Literal["text", "reasoning", "retract"]


class Piece(NamedTuple):
    """`retract` means: all visible text so far was reasoning whose opening tag never came."""

    kind: Kind
    text: str


class ThinkSplitter:
    """Feed it text as it comes. What could be the beginning of a tag is held back until the next
    characters decide."""

    def __init__(self) -> None:
        self._held = ""
        self._closer = ""
        self._fenced = False
        self._before = "\n"
        self._tagged = False
        self._spoken = False

    def feed(self, text: str) -> list[Piece]:
        pending = self._held + text
        self._held = ""
        pieces: list[Piece] = []
        while pending:
            step = self._in_reasoning if self._closer else self._in_text
            pending = step(pending, pieces)
        return pieces

    def finish(self) -> list[Piece]:
        """What was held back and is no tag after all."""
        rest, self._held = self._held, ""
        pieces: list[Piece] = []
        self._add(pieces, "reasoning" if self._closer else "text", rest)
        return pieces

    def _in_reasoning(self, pending: str, pieces: list[Piece]) -> str:
        at = pending.lower().find(self._closer)
        if at >= 0:
            self._add(pieces, "reasoning", pending[:at])
            rest = pending[at + len(self._closer) :]
            self._closer = ""
            return rest
        at = pending.rfind("<")
        if at < 0 or not self._closer.startswith(pending[at:].lower()):
            at = len(pending)
        self._add(pieces, "reasoning", pending[:at])
        self._held = pending[at:]
        return ""

    def _in_text(self, pending: str, pieces: list[Piece]) -> str:
        found = _NEXT.search(pending)
        if found is None:
            at = _open_end(pending)
            self._add(pieces, "text", pending[:at])
            self._held = pending[at:]
            return ""
        self._add(pieces, "text", pending[: found.start()])
        self._token(found[0], pieces)
        return pending[found.end() :]

    def _token(self, token: str, pieces: list[Piece]) -> None:
        if token == _FENCE:
            self._fenced = not self._fenced
            self._add(pieces, "text", token)
        elif self._fenced or self._before in _QUOTES:
            self._add(pieces, "text", token)
        elif token.lower() == _STRAY:
            self._stray_end(token, pieces)
        else:
            self._closer = f"</{token[1:].lower()}"
            self._tagged = True

    def _stray_end(self, token: str, pieces: list[Piece]) -> None:
        """Some templates open the tag themselves; only its end is part of the answer."""
        if self._tagged or self._before != "\n":
            self._add(pieces, "text", token)
            return
        self._tagged = True
        self._spoken = False
        pieces.append(Piece("retract", ""))

    def _add(self, pieces: list[Piece], kind: Literal["text", "reasoning"], text: str) -> None:
        if kind == "text" and self._tagged and not self._spoken:
            # The lines between a thought and the answer belong to neither.
            text = text.lstrip()
        if not text:
            return
        if kind == "text":
            self._spoken = True
            self._before = text[-1]
        pieces.append(Piece(kind, text))


def _open_end(text: str) -> int:
    """Where at the end of the text something begins that more characters could make a token."""
    at = text.rfind("<")
    if at >= 0 and text[at:].lower() in _BEGINNINGS:
        return at
    return len(text.rstrip("`")) if text.endswith("`") else len(text)
