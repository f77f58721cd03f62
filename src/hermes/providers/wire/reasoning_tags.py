"""Splits inline reasoning off visible text while it streams; no part of a tag is shown."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

TAGS = ("think", "thinking", "thought", "reasoning", "reasoning_scratchpad", "seed:think")

_FENCE = "```"
_STRAY = "</think>"
_CHANNEL, _BODY = "<|channel|>", "<|message|>"
_TURN = "<|start|>assistant"
# Opening token of a reasoning block → closing token, in lower case.
_CLOSERS = {
    **{f"<{tag}>": f"</{tag}>" for tag in TAGS},
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought\n": "<channel|>",
    f"{_CHANNEL}analysis{_BODY}": "<|end|>",
    f"{_TURN}{_CHANNEL}analysis{_BODY}": "<|end|>",
}
# Frame tokens around an answer that the server should have removed.
_FRAMES = frozenset(
    (
        f"{_CHANNEL}final{_BODY}",
        f"{_TURN}{_CHANNEL}final{_BODY}",
        f"{_CHANNEL}commentary{_BODY}",
        f"{_TURN}{_CHANNEL}commentary{_BODY}",
        "<|start_response|>",
        "<|begin_of_solution|>",
    )
)
# A frame end is dropped only after a frame start.
_FRAME_ENDS = frozenset(("<|return|>", "<|end|>", "<|end_response|>", "<|end_of_solution|>"))
_TOKENS = (*_CLOSERS, _STRAY, *_FRAMES, *_FRAME_ENDS, _FENCE)
_BEGINNINGS = frozenset(token[:size] for token in _TOKENS for size in range(1, len(token)))
_FIRSTS = "<[◁"
_ANY = re.compile(f"[{re.escape(_FIRSTS)}`]")
_LONGEST = max(map(len, _TOKENS))
# A tag right after one of these is quoted, not used.
_QUOTES = "`'\"“‘"


@cache
def _next_token() -> re.Pattern[str]:
    """Compiled on use: most replies have no reasoning in their text."""
    longest_first = sorted(_TOKENS, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)


Kind = Literal["text", "reasoning", "retract"]


class SplitPiece(NamedTuple):
    """A piece of the text of a reply. The kind `retract` means that all visible text so far was
    reasoning without an opening tag."""

    kind: Kind
    text: str


class ReasoningSplitter:
    """Splits reasoning in tags from visible text as it arrives. A possible start of a tag is held
    back until the next characters decide."""

    def __init__(self) -> None:
        self._held = ""
        self._closer = ""
        self._fenced = False
        self._before = "\n"
        self._tagged = False
        self._framed = False
        self._spoken = False

    def feed(self, text: str) -> list[SplitPiece]:
        pending = self._held + text
        self._held = ""
        pieces: list[SplitPiece] = []
        while pending:
            step = self._in_reasoning if self._closer else self._in_text
            pending = step(pending, pieces)
        return pieces

    def finish(self) -> list[SplitPiece]:
        """Return held-back text that turned out to be no tag."""
        rest, self._held = self._held, ""
        pieces: list[SplitPiece] = []
        self._add(pieces, "reasoning" if self._closer else "text", rest)
        return pieces

    def _in_reasoning(self, pending: str, pieces: list[SplitPiece]) -> str:
        at = pending.lower().find(self._closer)
        if at >= 0:
            self._add(pieces, "reasoning", pending[:at])
            rest = pending[at + len(self._closer) :]
            self._closer = ""
            return rest
        at = pending.rfind(self._closer[0])
        if at < 0 or not self._closer.startswith(pending[at:].lower()):
            at = len(pending)
        self._add(pieces, "reasoning", pending[:at])
        self._held = pending[at:]
        return ""

    def _in_text(self, pending: str, pieces: list[SplitPiece]) -> str:
        if _ANY.search(pending) is None:
            self._add(pieces, "text", pending)
            return ""
        match = _next_token().search(pending)
        if match is None:
            at = _open_end(pending)
            self._add(pieces, "text", pending[:at])
            self._held = pending[at:]
            return ""
        self._add(pieces, "text", pending[: match.start()])
        self._token(match[0], pieces)
        return pending[match.end() :]

    def _token(self, token: str, pieces: list[SplitPiece]) -> None:
        if token == _FENCE:
            self._fenced = not self._fenced
            self._add(pieces, "text", token)
        elif self._fenced or self._before in _QUOTES:
            self._add(pieces, "text", token)
        elif token.lower() == _STRAY:
            self._stray_end(token, pieces)
        elif token.lower() in _FRAMES:
            self._framed = True
        elif token.lower() in _FRAME_ENDS:
            self._add(pieces, "text", "" if self._framed else token)
        else:
            self._closer = _CLOSERS[token.lower()]
            self._tagged = True

    def _stray_end(self, token: str, pieces: list[SplitPiece]) -> None:
        """Handle an end tag without a start. Some chat templates open the tag themselves; then only
        its end is part of the reply."""
        if self._tagged or self._before != "\n":
            self._add(pieces, "text", token)
            return
        self._tagged = True
        self._spoken = False
        pieces.append(SplitPiece("retract", ""))

    def _add(self, pieces: list[SplitPiece], kind: Literal["text", "reasoning"], text: str) -> None:
        if kind == "text" and self._tagged and not self._spoken:
            # White space between reasoning and answer belongs to neither.
            text = text.lstrip()
        if not text:
            return
        if kind == "text":
            self._spoken = True
            self._before = text[-1]
        pieces.append(SplitPiece(kind, text))


def _open_end(text: str) -> int:
    """Return the position of a possible incomplete token at the end of the text."""
    tail = text[-_LONGEST:].lower()
    for first in _FIRSTS:
        at = tail.find(first)
        while at >= 0:
            if tail[at:] in _BEGINNINGS:
                return len(text) - len(tail) + at
            at = tail.find(first, at + 1)
    return len(text.rstrip("`")) if text.endswith("`") else len(text)
